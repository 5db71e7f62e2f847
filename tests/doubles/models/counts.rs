// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The models' own count of all events that the module's counters count. Each time the module is
//! unloaded, all counters are compared.

use std::cell::RefCell;

use crate::{abi, c, world::world};

/// The events since the module was loaded. The index is an `enum nvpm_counter`.
#[derive(Default)]
pub(crate) struct Counts(RefCell<[u64; abi::NVPM_COUNTERS as usize]>);

impl Counts {
    /// Counts an event.
    pub(crate) fn add(&self, counter: abi::nvpm_counter) {
        self.0.borrow_mut()[counter as usize] += 1;
    }

    /// Counts a call of the core that the module has answered with this error.
    pub(crate) fn failed(&self, errno: i32) {
        self.add(match errno {
            -12 => abi::NVPM_COUNT_FAILED_NO_MEMORY,
            -95 => abi::NVPM_COUNT_FAILED_NOT_SUPPORTED,
            -14 => abi::NVPM_COUNT_FAILED_FREED,
            -122 => abi::NVPM_COUNT_FAILED_ORPHANS,
            _ => abi::NVPM_COUNT_FAILED_DRIVER,
        });
    }

    /// Compares the counter of orphans, when the module has no registration. Each revocable pin is
    /// then that of an orphan.
    pub(crate) fn assert_orphans(&self) {
        let counted = c::counter(abi::NVPM_COUNT_ORPHANS);
        let orphans = world().driver.orphans();
        assert!(
            orphans.contains(&counted),
            "{counted} orphans are counted, but there are {orphans:?}"
        );
    }

    /// Compares the counters of events when the module is gone, and begins again. No region can be
    /// reached any more.
    pub(crate) fn assert_over(&self) {
        let events = self.0.take();
        for (counter, &expected) in (0..).zip(&events) {
            if counter != abi::NVPM_COUNT_ORPHANS {
                let counted = c::counter(counter);
                assert_eq!(counted, expected, "counter {counter} is wrong");
            }
        }
    }
}
