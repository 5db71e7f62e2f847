// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The lock between pinning and unpinning.
//!
//! The driver identifies a pin by the address of its page table. After the driver has freed a
//! table, a new pin's table may have the same address. While this module checks whether an old pin
//! still exists and unpins it, the lock therefore keeps other threads from making new pins.

use crate::abi;

/// As long as this object exists, the thread holds the lock. Pinning takes the lock in shared mode,
/// and unpinning revocably pinned memory takes it exclusively.
pub(crate) struct UnpinLock {
    exclusive: bool,
}

impl UnpinLock {
    /// Takes the lock for pinning. Any number of threads can pin at the same time.
    pub(crate) fn shared() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock, which `drop` releases.
        unsafe { abi::nvpm_unpin_lock(false) };
        Self { exclusive: false }
    }

    /// Takes the lock for unpinning. Only one thread can hold the lock in this mode, and no thread
    /// can pin in the meantime.
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
