// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Records which other acts run during an act.

use std::cell::Cell;

use super::{act::What, settings};

/// Records what other acts have done while an act was running.
#[derive(Default)]
pub(super) struct Overlap {
    alone: Cell<bool>,
    frees: Cell<bool>,
    registers: Cell<bool>,
    /// Whether another act has changed the result that a registration must have. Freeing memory
    /// does not count here.
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

    /// Records that the act `other` has begun while this act was running, or was already running
    /// when this act began.
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

    /// Tells whether no other act has run during this act.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.get()
    }

    /// Tells whether another act has freed memory, or has removed its process from it.
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

    /// Tells whether a call may have failed because of a fault.
    pub(super) fn something_fails(&self) -> bool {
        self.fails.get()
    }

    /// Makes the act run without a stop from now on.
    pub(super) fn do_not_stop(&self) {
        self.never_stops.set(true);
    }

    /// Tells whether the act may stop so that other acts run.
    pub(super) fn may_stop(&self) -> bool {
        !self.never_stops.get()
    }
}
