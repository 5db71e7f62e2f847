// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Lets other threads run at regular intervals during a long loop. A loop that uses this file may
//! sleep.
//!
//! The models on the host replace this file by another file, in which a step under a lock makes the
//! test fail, even if the loop is too short to sleep.

use crate::abi::cond_resched;

/// The number of steps that a loop makes before it lets other threads run.
pub(crate) const AT_A_TIME: usize = 1 << 12;

/// The steps that a loop has made.
pub(crate) struct Turns(usize);

impl Turns {
    /// Returns a counter for a loop that begins.
    pub(crate) const fn new() -> Self {
        Self(0)
    }

    /// Counts one step, and lets other threads run after each [`AT_A_TIME`] steps.
    pub(crate) fn step(&mut self) {
        self.0 = self.0.wrapping_add(1);
        if self.0 % AT_A_TIME == 0 {
            cond_resched();
        }
    }
}

/// Lets other threads run before a loop handles the chunk with this number, except before the first
/// chunk. A chunk has at most [`AT_A_TIME`] elements.
pub(crate) fn before_chunk(number: usize) {
    if number > 0 {
        cond_resched();
    }
}
