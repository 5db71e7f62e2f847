// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the kernel crate lacks, or has only in some versions.

use core::ptr;

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{Arc, SpinLock},
};

use crate::{
    abi,
    atomic::{AtomicPtr, Ordering},
};

/// Prints a warning, rate-limited: for paths that a user can take at will.
macro_rules! pr_warn_ratelimited {
    ($($arg:tt)*) => {
        if $crate::compat::ratelimit() {
            ::kernel::prelude::pr_warn!($($arg)*)
        }
    };
}
pub(crate) use pr_warn_ratelimited;

/// Whether the rate limit lets one more line into the kernel's log.
pub(crate) fn ratelimit() -> bool {
    // SAFETY: Callable from any context.
    unsafe { abi::nvpm_ratelimit() }
}

/// Operation not supported: a constant of the crate since 7.3.
pub(crate) fn eopnotsupp() -> Error {
    Error::from_errno(-95)
}

/// Disk quota exceeded: the limit is this process's or user's, not the system's.
pub(crate) fn edquot() -> Error {
    Error::from_errno(-122)
}

/// A table that exists once, behind a spin lock. (The crate has `global_lock!` since 6.13.)
///
/// # Invariants
///
/// The pointer is NULL, or from [`Arc::into_raw`] and owned by the [`Installed`] of this table.
pub(crate) struct Global<T: 'static>(AtomicPtr<SpinLock<T>>);

impl<T: Send> Global<T> {
    /// A table that is not installed yet.
    pub(crate) const fn new() -> Self {
        // INVARIANT: NULL.
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Installs the table, until the result is dropped.
    ///
    /// # Safety
    ///
    /// This must be called once, and no thread may use the table while the result is dropped, or later.
    pub(crate) unsafe fn install(&'static self, table: T) -> Result<Installed<T>> {
        let table = Arc::pin_init(new_spinlock!(table, "nv_peer_mem::Global"), GFP_KERNEL)?;
        // INVARIANT: `Installed` owns it.
        self.0
            .store(Arc::into_raw(table).cast_mut(), Ordering::Release);
        Ok(Installed(self))
    }

    /// The table, if it is installed. Callers hold its lock for one look-up only.
    pub(crate) fn get(&self) -> Option<&SpinLock<T>> {
        let table = self.0.load(Ordering::Acquire);
        // SAFETY: By the type's invariant it is NULL or a valid pointer; by the requirement of `install` it
        // stays valid for as long as it is used.
        unsafe { table.as_ref() }
    }
}

/// Owns what is in a [`Global`].
pub(crate) struct Installed<T: Send + 'static>(&'static Global<T>);

impl<T: Send> Drop for Installed<T> {
    fn drop(&mut self) {
        let table = self.0 .0.load(Ordering::Relaxed).cast_const();
        self.0 .0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: By the invariant of `Global` it is from `into_raw`, and this object owns it; by the
        // requirement of `install` it is not used any more.
        drop(unsafe { Arc::from_raw(table) });
    }
}
