// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Takes the place of the module's turns.rs: each step of a loop that may give way is refused while a spin
//! lock is held, also in a loop that is too short to give way.

use crate::world::may_sleep;

/// Chunks are so short that the lists of the scenarios have several.
pub(crate) const AT_A_TIME: usize = 2;

pub(crate) struct Turns;

impl Turns {
    pub(crate) const fn new() -> Self {
        Self
    }

    pub(crate) fn step(&mut self) {
        may_sleep("a loop that gives way");
    }
}

pub(crate) fn before_chunk(_: usize) {
    may_sleep("a loop that gives way");
}
