// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the processes of a stress run count together, and what errors are honest.

use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::errno;
use crate::output;
use crate::process;
use crate::sys;

macro_rules! counts {
    ($($count:ident = $name:literal,)*) => {
        #[derive(Clone, Copy)]
        pub enum Count { $($count,)* }

        const COUNTS: &[(Count, &str)] = &[$((Count::$count, $name),)*];
    };
}

counts! {
    Attempted = "registrations",
    Registered = "registered",
    Deregistered = "deregistered",
    FreedUnder = "freed_under",
    FreedWhileRegistering = "freed_while_registering",
    FreedWhileDeregistering = "freed_while_deregistering",
    Taken = "taken_by_driver",
    Collisions = "collisions",
    Transfers = "transfers",
    Refused = "transfers_refused",
    Unanswered = "transfers_unanswered",
    Forks = "forks",
    DeregisteredByChild = "deregistered_by_child",
    ChildKills = "children_killed",
    Passed = "descriptors_passed",
    ClosedElsewhere = "descriptors_closed_elsewhere",
    Workers = "workers",
    Kills = "workers_killed",
    Abandoned = "exits_without_cleaning",
    Defects = "defects",
}

/// One more than the largest error number that is told apart.
const ERRNOS: usize = 600;

/// Errors that a registration may end with: the memory has been taken away, or
/// there is not enough of some kind of memory. Anything else is a defect.
const HONEST: [u32; 2] = [sys::EFAULT, sys::ENOMEM];

/// As many complaints are printed; the first few say it all.
const COMPLAINTS: u64 = 20;

#[derive(Clone, Copy)]
pub struct Tally {
    counts: &'static [AtomicU64],
    errors: &'static [AtomicU64],
}

impl Tally {
    pub fn new() -> io::Result<Self> {
        let all = process::shared_counters(COUNTS.len() + ERRNOS)?;
        let (counts, errors) = all.split_at(COUNTS.len());
        Ok(Self { counts, errors })
    }

    /// Counts one more; how many there were before.
    pub fn count(self, what: Count) -> u64 {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed)
    }

    /// Counts one more unless there are `limit`; whether it did.
    pub fn count_below(self, what: Count, limit: u64) -> bool {
        let counter = &self.counts[what as usize];
        counter
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
                (n < limit).then_some(n + 1)
            })
            .is_ok()
    }

    pub fn of(self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    /// The error that a registration ended with.
    pub fn error(self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or(0);
        let index = usize::try_from(number).map_or(0, |number| number.min(ERRNOS - 1));
        self.errors[index].fetch_add(1, Ordering::Relaxed);
    }

    pub fn defect(self, text: impl Display) {
        if self.count(Count::Defects) < COMPLAINTS {
            eprintln!("gpuverbs: stress: {text}");
        }
    }

    pub fn print(self) {
        for (count, name) in COUNTS {
            output::value(name, self.of(*count));
        }
        for (number, count) in self.errors.iter().enumerate() {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                let name = i32::try_from(number).map_or_else(|_| String::new(), errno::name);
                output::value(&format!("refused_{name}"), count);
            }
        }
    }
}

pub fn is_honest(error: &io::Error) -> bool {
    HONEST.iter().any(|honest| is(error, *honest))
}

pub fn is(error: &io::Error, number: u32) -> bool {
    error.raw_os_error() == Some(number as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_the_place_of_their_name() {
        for (place, (count, _)) in COUNTS.iter().enumerate() {
            assert_eq!(*count as usize, place);
        }
    }

    #[test]
    fn counting() {
        let tally = Tally::new().unwrap();
        assert_eq!(tally.count(Count::Forks), 0);
        assert_eq!(tally.count(Count::Forks), 1);
        assert_eq!(tally.of(Count::Forks), 2);
        assert!(tally.count_below(Count::Forks, 3));
        assert!(!tally.count_below(Count::Forks, 3));
        assert_eq!(tally.of(Count::Forks), 3);
        assert_eq!(tally.of(Count::Kills), 0);
    }

    #[test]
    fn only_two_errors_are_honest() {
        let honest = |number: u32| is_honest(&io::Error::from_raw_os_error(number as i32));
        assert!(honest(sys::EFAULT) && honest(sys::ENOMEM));
        assert!(!honest(sys::EINVAL) && !honest(sys::EIO) && !honest(524));
    }
}
