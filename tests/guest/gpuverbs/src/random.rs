// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Numbers that look random and are a function of a seed: xorshift64*.

pub struct Random {
    state: u64,
}

const START: u64 = 0x9E37_79B9_7F4A_7C15;
const MULTIPLIER: u64 = 0x2545_F491_4F6C_DD1D;

impl Random {
    pub fn new(seed: u64) -> Self {
        // xorshift never leaves the state 0.
        let state = match seed ^ START {
            0 => START,
            state => state,
        };
        Self { state }
    }

    /// One of many sequences of the same seed: neighbours in `stream` have
    /// nothing in common.
    pub fn stream(seed: u64, stream: u64) -> Self {
        let mut random = Self::new(seed ^ stream.wrapping_add(1).wrapping_mul(START));
        random.word();
        random
    }

    pub fn word(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(MULTIPLIER)
    }

    /// Below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The lower bits are the weaker ones.
        (self.word() >> 11) % limit
    }

    /// An index of a slice of this length, which is not 0.
    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("below a usize")
    }

    /// Whether one of `n` chances came true.
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// One of `choices`, each as often as its weight says.
    pub fn weighted<T: Copy>(&mut self, choices: &[(u64, T)]) -> T {
        let mut left = self.below(choices.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in choices {
            if left < *weight {
                return *choice;
            }
            left -= weight;
        }
        unreachable!("below the sum of all weights")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_numbers() {
        let numbers = |mut random: Random| (0..8).map(|_| random.word()).collect::<Vec<_>>();
        assert_eq!(numbers(Random::new(5)), numbers(Random::new(5)));
        assert_eq!(numbers(Random::stream(5, 1)), numbers(Random::stream(5, 1)));
        for stream in 1..100 {
            assert_ne!(
                numbers(Random::stream(5, 0)),
                numbers(Random::stream(5, stream))
            );
        }
    }

    #[test]
    fn every_value_below_the_limit_comes_up() {
        let mut random = Random::new(1);
        let mut seen = [0; 10];
        for _ in 0..1000 {
            seen[random.index(seen.len())] += 1;
        }
        assert!(seen.iter().all(|count| *count > 50), "{seen:?}");
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Random::new(2);
        let mut seen = [0; 3];
        for _ in 0..1000 {
            seen[random.weighted(&[(1, 0), (0, 1), (9, 2)])] += 1;
        }
        assert_eq!(seen[1], 0);
        assert!(seen[0] > 50 && seen[0] < 200, "{seen:?}");
    }
}
