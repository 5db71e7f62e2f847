// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Replaces the module's resched.rs. In a loop that may let other threads run, each step fails if the
//! thread holds a spin lock. The step fails even if the loop is too short to let other threads run.

use crate::world::{may_sleep, world};

/// Chunks are short, so that the lists of the scenarios have several chunks.
pub(crate) const AT_A_TIME: usize = 2;

pub(crate) struct Turns;

impl Turns {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn step(&mut self) {
        may_sleep("a loop that gives way");
        world().linux.turned.set(true);
    }
}

pub(crate) fn before_chunk(_: usize) {
    may_sleep("a loop that gives way");
}
