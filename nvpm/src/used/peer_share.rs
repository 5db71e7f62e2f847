// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Finds which of several registrations the RDMA core counts as peer memory. The core counts the bytes and the
//! registrations of the whole node, and often only one choice of lengths gives these numbers.
use std::collections::BTreeMap;

/// More choices than this are not looked at.
const MOST: u64 = 1 << 16;

/// Whether registrations of one length are peer memory in each choice that gives the core's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    All,
    None,
    Some,
}

/// Returns for each length whether its registrations are peer memory. COUNTS has the number of registrations of each
/// length. Returns None if there is no choice, or if there are too many.
pub fn shares(counts: &BTreeMap<u64, u64>, bytes: u64, registrations: u64) -> Option<BTreeMap<u64, Share>> {
    let choices = counts.values().try_fold(1_u64, |product, count| product.checked_mul(count.checked_add(1)?));
    choices.filter(|choices| *choices <= MOST)?;
    let lengths: Vec<(u64, u64)> = counts.iter().map(|(length, count)| (*length, *count)).collect();
    let mut search = Search { ranges: vec![None; lengths.len()], taken: vec![0; lengths.len()], lengths: &lengths };
    search.go_on(0, bytes, registrations);
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
    lengths: &'a [(u64, u64)],
    taken: Vec<u64>,
    /// The least and the greatest number of registrations of each length in the choices that were found.
    ranges: Vec<Option<(u64, u64)>>,
}

impl Search<'_> {
    fn go_on(&mut self, at: usize, bytes: u64, registrations: u64) {
        let Some((length, count)) = self.lengths.get(at).copied() else {
            if bytes == 0 && registrations == 0 {
                for (range, taken) in self.ranges.iter_mut().zip(&self.taken) {
                    let (least, most) = range.unwrap_or((*taken, *taken));
                    *range = Some((least.min(*taken), most.max(*taken)));
                }
            }
            return;
        };
        for taken in 0..=count.min(registrations) {
            let Some(rest) = length.checked_mul(taken).and_then(|taken| bytes.checked_sub(taken)) else { break };
            if let Some(place) = self.taken.get_mut(at) {
                *place = taken;
            }
            self.go_on(at + 1, rest, registrations - taken);
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
        let many: Vec<(u64, u64)> = (0..17).map(|power| (1 << power, 1)).collect();
        assert_eq!(found(&many, 3, 2), None);
        assert!(found(&many[..16], 3, 2).is_some());
    }
}
