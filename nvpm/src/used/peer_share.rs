// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds which of several registrations the RDMA core counts as peer memory. The core counts the bytes and the
//! registrations of the whole node, and often only one choice of lengths gives these numbers.
use std::collections::BTreeMap;

/// The search gives up after so many steps, and with more lengths than this.
const STEPS: u32 = 1 << 18;
const LENGTHS: usize = 1000;

/// Whether registrations of one length are peer memory in each choice that gives the core's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    All,
    None,
    Some,
}

/// Returns for each length whether its registrations are peer memory. COUNTS has the number of registrations of each
/// length. Returns None if there is no choice, or if the search takes too long.
pub fn shares(counts: &BTreeMap<u64, u64>, bytes: u64, registrations: u64) -> Option<BTreeMap<u64, Share>> {
    let lengths: Vec<(u64, u64)> = counts.iter().rev().map(|(length, count)| (*length, *count)).collect();
    if lengths.len() > LENGTHS {
        return None;
    }
    let taken = vec![0; lengths.len()];
    let mut search = Search { ranges: vec![None; lengths.len()], taken, lengths: &lengths, steps: 0 };
    search.go_on(0, bytes, registrations);
    if search.steps > STEPS {
        return None;
    }
    let share = |(range, (length, count)): (&Option<(u64, u64)>, &(u64, u64))| {
        let share = match (*range)? {
            (least, _) if least == *count => Share::All,
            (_, 0) => Share::None,
            _ => Share::Some,
        };
        Some((*length, share))
    };
    search.ranges.iter().zip(&lengths).map(share).collect()
}

struct Search<'a> {
    /// The lengths with their numbers of registrations, the greatest length first.
    lengths: &'a [(u64, u64)],
    taken: Vec<u64>,
    /// The least and the greatest number of registrations of each length in the choices that were found.
    ranges: Vec<Option<(u64, u64)>>,
    steps: u32,
}

impl Search<'_> {
    /// Looks for choices from the length at this place on.
    fn go_on(&mut self, at: usize, bytes: u64, registrations: u64) {
        self.steps += 1;
        let Some((length, count)) = self.lengths.get(at).copied() else {
            if bytes == 0 && registrations == 0 {
                self.found();
            }
            return;
        };
        let next = self.lengths.get(at + 1).map_or(0, |(length, _)| *length);
        let least = self.lengths.last().map_or(0, |(length, _)| *length);
        if registrations.saturating_mul(least) > bytes {
            return;
        }
        let most = count.min(registrations).min(bytes.checked_div(length).unwrap_or(count));
        for taken in (0..=most).rev() {
            let (rest, left) = (bytes - length * taken, registrations - taken);
            // All that follow are shorter, so fewer of this length leave more bytes than they can have.
            if left.saturating_mul(next) < rest || self.steps > STEPS {
                break;
            }
            if let Some(place) = self.taken.get_mut(at) {
                *place = taken;
            }
            self.go_on(at + 1, rest, left);
        }
    }

    fn found(&mut self) {
        for (range, taken) in self.ranges.iter_mut().zip(&self.taken) {
            let (least, most) = range.unwrap_or((*taken, *taken));
            *range = Some((least.min(*taken), most.max(*taken)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(counts: &[(u64, u64)], bytes: u64, registrations: u64) -> Option<Vec<Share>> {
        let counts: BTreeMap<u64, u64> = counts.iter().copied().collect();
        Some(shares(&counts, bytes, registrations)?.into_values().collect())
    }

    #[test]
    fn one_choice_decides() {
        use Share::{All, None, Some as Part};
        for (counts, bytes, registrations, expected) in [
            (vec![(4, 2), (5, 2), (10, 2)], 30, 4, vec![None, All, All]),
            (vec![(10, 4)], 20, 2, vec![Part]),
            // 10 + 10, or 10 + 5 + 5: the number of registrations decides.
            (vec![(5, 2), (10, 2)], 20, 2, vec![None, All]),
            (vec![(5, 2), (10, 2)], 20, 3, vec![All, Part]),
            (vec![(1, 1), (2, 1), (3, 1), (4, 1)], 5, 2, vec![Part, Part, Part, Part]),
            (vec![(7, 3)], 0, 0, vec![None]),
        ] {
            assert_eq!(found(&counts, bytes, registrations), Some(expected), "{counts:?} {bytes}");
        }
    }

    #[test]
    fn numbers_that_no_choice_gives_decide_nothing() {
        assert_eq!(found(&[(4, 1)], 5, 1), None);
        assert_eq!(found(&[(4, 1)], 4, 2), None);
    }

    #[test]
    fn many_lengths_are_decided() {
        // Lengths like those of UCX in two processes: pools of host memory, and two buffers twice in each.
        let pools = [(8, 2), (544_768, 6), (1_081_344, 14), (2_129_920, 22), (4_227_072, 10), (8_421_376, 6)];
        let counts = [&pools[..], &[(2 << 20, 8)]].concat();
        let shares = shares(&counts.iter().copied().collect(), 16 << 20, 8).unwrap();
        assert_eq!(shares.values().filter(|share| **share == Share::None).count(), 6);
        assert_eq!(shares.get(&(2 << 20)), Some(&Share::All));
    }

    #[test]
    fn a_search_that_takes_too_long_decides_nothing() {
        let many: Vec<(u64, u64)> = (1..=600).map(|length| (length, 40)).collect();
        assert_eq!(found(&many, 90_000, 300), None);
        let too_many: Vec<(u64, u64)> = (1..=1001).map(|length| (length, 1)).collect();
        assert_eq!(found(&too_many, 1, 1), None);
        assert!(found(&too_many[..1000], 1, 1).is_some());
    }
}
