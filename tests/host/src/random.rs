// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Random numbers that can be had again.

use std::{
    env,
    hash::{BuildHasher, Hasher, RandomState},
    thread,
};

/// The environment variable with the seed to repeat.
const VARIABLE: &str = "HOST_SEED";

/// A stream of random numbers (Marsaglia's xorshift). Says how to repeat it if the test fails.
pub(crate) struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// The stream of the seed in `HOST_SEED`, or of a new one.
    pub(crate) fn new() -> Self {
        Self::from_seed(chosen_seed().unwrap_or_else(|| RandomState::new().build_hasher().finish()))
    }

    fn from_seed(seed: u64) -> Self {
        // The state must not be zero. One seed more or less does not matter.
        Self {
            seed,
            state: seed.max(1),
        }
    }

    /// Any number.
    pub(crate) fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        // The low bits of the state are the weaker ones.
        self.state.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    /// A number less than `bound`, which is not zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let wide = u128::from(self.next()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// A number of which each count of bits is as likely as any other.
    pub(crate) fn of_any_size(&mut self) -> u64 {
        let bits = self.below(65);
        self.next().checked_shr(64 - bits as u32).unwrap_or(0)
    }

    /// One of `choices`.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("to repeat this: {VARIABLE}={:#x}", self.seed);
        }
    }
}

/// The seed that the environment asks for.
fn chosen_seed() -> Option<u64> {
    let text = env::var(VARIABLE).ok()?;
    let seed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    Some(seed.unwrap_or_else(|error| panic!("{VARIABLE}={text}: {error}")))
}

#[test]
fn a_seed_gives_the_same_numbers_again() {
    let numbers = |seed| {
        let mut random = Random::from_seed(seed);
        [(); 4].map(|()| random.next())
    };
    assert_eq!(numbers(5), numbers(5));
    assert_ne!(numbers(5), numbers(6));
}

#[test]
fn sizes_reach_from_nothing_to_all_bits() {
    let mut random = Random::new();
    let sizes: Vec<u32> = (0..10_000)
        .map(|_| random.of_any_size().leading_zeros())
        .collect();
    assert!(sizes.contains(&64) && sizes.contains(&0));
}
