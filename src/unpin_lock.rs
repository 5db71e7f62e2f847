// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The lock between pinning and unpinning.
//!
//! The driver identifies a pin by the address of its page table. When it frees a table, it must not use the
//! address for a new pin while this module is about to unpin the old one.

use crate::abi;

/// The lock, held for pinning (shared) or for unpinning what was pinned revocably (exclusive).
pub(crate) struct UnpinLock {
    exclusive: bool,
}

impl UnpinLock {
    /// For pinning: any number of threads at a time.
    pub(crate) fn shared() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock; `drop` unlocks it.
        unsafe { abi::nvpm_unpin_lock(false) };
        Self { exclusive: false }
    }

    /// For unpinning: one thread, and no thread that pins.
    pub(crate) fn exclusive() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock; `drop` unlocks it.
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
