// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The lock between pinning and unpinning.

use crate::abi;

/// Keeps the driver from giving the address of a page table that it frees to a new pin of ours
/// while we are about to unpin the old one: it knows pins by that address.
pub(super) struct Gate {
    exclusive: bool,
}

impl Gate {
    /// For pinning: any number at a time.
    pub(super) fn shared() -> Self {
        // SAFETY: Called without the gate, where sleeping is allowed; dropping lets it go.
        unsafe { abi::nvpm_gate_enter(false) };
        Self { exclusive: false }
    }

    /// For unpinning: nobody else.
    pub(super) fn exclusive() -> Self {
        // SAFETY: As above.
        unsafe { abi::nvpm_gate_enter(true) };
        Self { exclusive: true }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: Lets go of what this object has taken, in the same way.
        unsafe { abi::nvpm_gate_leave(self.exclusive) };
    }
}
