// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Which acts come in between while one lasts.

use std::cell::Cell;

use super::{act::What, settings};

/// What has happened beside an act.
#[derive(Default)]
pub(super) struct Overlap {
    alone: Cell<bool>,
    frees: Cell<bool>,
    registers: Cell<bool>,
    /// Something that changes what is to come of a registration, beside frees.
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

    /// `other` has begun or is there.
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

    /// Nothing has come in between.
    pub(super) fn is_alone(&self) -> bool {
        self.alone.get()
    }

    /// Memory was freed, or listed nobody any more.
    pub(super) fn ends_memory(&self) -> bool {
        self.frees.get()
    }

    /// Something was registered.
    pub(super) fn registers(&self) -> bool {
        self.registers.get()
    }

    /// Something else has changed what is to come of a registration.
    pub(super) fn changes(&self) -> bool {
        self.changes.get()
    }

    /// Something could fail.
    pub(super) fn something_fails(&self) -> bool {
        self.fails.get()
    }

    /// Nothing may come in between.
    pub(super) fn do_not_stop(&self) {
        self.never_stops.set(true);
    }

    /// Whether something may come in between.
    pub(super) fn may_stop(&self) -> bool {
        !self.never_stops.get()
    }
}
