// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Records which acts come in between during an act.

use std::cell::Cell;

use super::{act::What, settings};

/// The events during an act.
#[derive(Default)]
pub(super) struct Overlap {
    alone: Cell<bool>,
    frees: Cell<bool>,
    registers: Cell<bool>,
    /// Another act, not a free, has changed the expected result of a registration.
    changes: Cell<bool>,
    fails: Cell<bool>,
    never_stops: Cell<bool>,
}

impl Overlap {
    pub(super) fn new() -> Self {
        let this = Self::default();
        this.alone.set(true);
        this.fails.set(settings::something_fails());
        this
    }

    /// Records that the act `other` has begun or was in progress.
    pub(super) fn add(&self, other: &What) {
        self.alone.set(false);
        match other {
            What::Free { .. } => self.frees.set(true),
            What::Register(_) => self.registers.set(true),
            What::Deregister { .. } | What::Read => {}
            What::Delist { .. } => {
                self.frees.set(true);
                self.changes.set(true);
            }
            What::Allocate { .. }
            | What::Abandon { .. }
            | What::RemoveDevice { .. }
            | What::Answer { .. }
            | What::Unload
            | What::Load { .. }
            | What::Leave { .. } => self.changes.set(true),
            What::Fail { .. } => self.fails.set(true),
        }
    }

    /// Tells whether no act has come in between.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.get()
    }

    /// Tells whether memory was freed, or lost its process.
    pub(super) fn ends_memory(&self) -> bool {
        self.frees.get()
    }

    /// Tells whether memory was registered.
    pub(super) fn registers(&self) -> bool {
        self.registers.get()
    }

    /// Tells whether another act has changed the expected result of a registration.
    pub(super) fn changes(&self) -> bool {
        self.changes.get()
    }

    /// Tells whether a call could fail.
    pub(super) fn something_fails(&self) -> bool {
        self.fails.get()
    }

    /// Keeps other acts from coming in between.
    pub(super) fn do_not_stop(&self) {
        self.never_stops.set(true);
    }

    /// Tells whether other acts may come in between.
    pub(super) fn may_stop(&self) -> bool {
        !self.never_stops.get()
    }
}
