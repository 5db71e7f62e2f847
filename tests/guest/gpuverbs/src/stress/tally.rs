// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the processes of a stress run count together, and what errors are honest.

use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use clap::ValueEnum;

use crate::process;
use crate::value::{name, say};

#[derive(Clone, Copy, clap::ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Count {
    Registrations,
    Registered,
    Deregistered,
    FreedUnder,
    FreedWhileRegistering,
    FreedWhileDeregistering,
    TakenByDriver,
    Collisions,
    Transfers,
    TransfersRefused,
    TransfersUnanswered,
    Forks,
    DeregisteredByChild,
    ChildrenKilled,
    DescriptorsPassed,
    DescriptorsClosedElsewhere,
    Workers,
    WorkersKilled,
    ExitsWithoutCleaning,
    Defects,
}

/// One more than the largest error number that is told apart.
const ERRNOS: usize = 600;

/// As many complaints are printed; the first few say it all.
const COMPLAINTS: u64 = 20;

#[derive(Clone, Copy)]
pub struct Tally {
    counts: &'static [AtomicU64],
    errors: &'static [AtomicU64],
}

impl Tally {
    pub fn new() -> Result<Self> {
        let kinds = Count::value_variants().len();
        let (counts, errors) = process::shared_counters(kinds + ERRNOS)?.split_at(kinds);
        Ok(Self { counts, errors })
    }

    /// Counts one more; how many there were before.
    pub fn count(self, what: Count) -> u64 {
        self.counts[what as usize].fetch_add(1, Ordering::Relaxed)
    }

    /// Counts one more unless there are `limit`; whether it did.
    pub fn count_below(self, what: Count, limit: u64) -> bool {
        let one_more = |n| (n < limit).then_some(n + 1);
        self.counts[what as usize]
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
            .is_ok()
    }

    pub fn of(self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    /// The error that a registration ended with.
    pub fn error(self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or(0) as usize;
        self.errors[number.min(ERRNOS - 1)].fetch_add(1, Ordering::Relaxed);
    }

    pub fn defect(self, text: impl Display) {
        if self.count(Count::Defects) < COMPLAINTS {
            eprintln!("gpuverbs: stress: {text}");
        }
    }

    pub fn print(self) {
        for count in Count::value_variants() {
            let value = count.to_possible_value().expect("none is skipped");
            say(value.get_name(), self.of(*count));
        }
        for (number, count) in (0..).zip(self.errors) {
            match count.load(Ordering::Relaxed) {
                0 => {}
                count => say(&format!("refused_{}", name(number)), count),
            }
        }
    }
}

/// Whether a registration may end with it: the memory has been taken away, or
/// there is not enough of some kind of memory. Anything else is a defect.
pub fn is_honest(error: &io::Error) -> bool {
    is(error, libc::EFAULT) || is(error, libc::ENOMEM)
}

pub fn is(error: &io::Error, number: i32) -> bool {
    error.raw_os_error() == Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting() {
        let tally = Tally::new().unwrap();
        assert_eq!(tally.count(Count::Forks), 0);
        assert_eq!(tally.count(Count::Forks), 1);
        assert!(tally.count_below(Count::Forks, 3));
        assert!(!tally.count_below(Count::Forks, 3));
        assert_eq!(tally.of(Count::Forks), 3);
        assert_eq!(tally.of(Count::WorkersKilled), 0);
    }

    #[test]
    fn only_two_errors_are_honest() {
        let honest = |number| is_honest(&io::Error::from_raw_os_error(number));
        assert!(honest(libc::EFAULT) && honest(libc::ENOMEM));
        assert!(!honest(libc::EINVAL) && !honest(libc::EIO) && !honest(524));
    }
}
