// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Prints results: lines (`lines.rs`), a matrix of rates (`matrix.rs`), or one JSON object (`object.rs`).
use std::io;

use crate::facts::fact::Fact;
use crate::selftest::failure::Absent;
use crate::selftest::trial::Trial;

/// The numbers of a test.
#[derive(Clone, Copy, Default)]
pub struct Outcome {
    pub code: u8,
    pub passed: usize,
    pub failed: usize,
    /// The number of marked rates in the report.
    pub slow: usize,
}

/// Each error comes from the standard output.
pub trait Report {
    fn begin(&mut self, gpus: usize, devices: usize) -> io::Result<()>;
    fn not_tested(&mut self, device: &str, reason: &str) -> io::Result<()>;

    /// Is called before each trial. Prints nothing by default, because a trial that measures no rate takes less than a
    /// second.
    fn progress(&mut self, _trial: &Trial, _done: usize) {}

    fn pair(&mut self, trial: &Trial, facts: &[Fact]) -> io::Result<()>;
    fn absent(&mut self, missing: &[Absent]) -> io::Result<()>;

    /// Is called after all trials, if rates were measured. The rates are judged already.
    fn judged(&mut self, _trials: &[Trial], _is_software: bool) -> io::Result<()> {
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) -> io::Result<()>;
}
