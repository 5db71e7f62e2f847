// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The lock between pinning and unpinning.
//!
//! The driver identifies a pin by the address of its page table. After the driver has freed a
//! table, it may use the address for a new pin. The lock keeps new pins away while this module is
//! about to unpin an old pin.

use crate::abi;

/// Holds the lock: shared for pinning, exclusively for unpinning revocably pinned memory.
pub(crate) struct UnpinLock {
    exclusive: bool,
}

impl UnpinLock {
    /// Takes the lock for pinning, as any number of threads may at a time.
    pub(crate) fn shared() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock, which `drop` releases.
        unsafe { abi::nvpm_unpin_lock(false) };
        Self { exclusive: false }
    }

    /// Takes the lock for unpinning, as only one thread may while no thread pins.
    pub(crate) fn exclusive() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock, which `drop` releases.
        unsafe { abi::nvpm_unpin_lock(true) };
        Self { exclusive: true }
    }
}

impl Drop for UnpinLock {
    fn drop(&mut self) {
        // SAFETY: This object has taken the lock, in the same mode.
        unsafe { abi::nvpm_unpin_unlock(self.exclusive) };
    }
}
