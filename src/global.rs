// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A table that exists once, under a spin lock, while the module is loaded.
//!
//! The lock is in C, because the kernel crate has `global_lock!` only since 6.13, and it needs a
//! constant as the initial table.

use core::ptr::null_mut;

use kernel::prelude::*;

use crate::{
    abi,
    atomic::{AtomicPtr, Ordering},
};

/// A table, and the lock in C that protects the table.
///
/// # Invariants
///
/// No two tables have the same lock. The pointer is NULL, or from [`KBox::into_raw`] and owned by
/// this object. The pointer is read, changed and followed only under the lock. While a thread uses
/// the table, the pointer is NULL.
pub(crate) struct Global<T: 'static> {
    lock: abi::nvpm_lock_name,
    table: AtomicPtr<T>,
}

impl<T: Send> Global<T> {
    /// Makes an object without a table. No other object may have the same lock.
    pub(crate) const fn new(lock: abi::nvpm_lock_name) -> Self {
        assert!(lock < abi::NVPM_LOCKS);
        // INVARIANT: The pointer is NULL.
        Self {
            lock,
            table: AtomicPtr::new(null_mut()),
        }
    }

    /// Installs the table, until the result is dropped.
    pub(crate) fn install(&'static self, table: T) -> Result<Installed<T>> {
        let table = KBox::into_raw(KBox::new(table, GFP_KERNEL)?);
        let before = self.replace(table);
        drop(before);
        Ok(Installed(self))
    }

    /// Uses the table under its lock. Returns [`None`] if there is no table. `work` must neither
    /// sleep nor use the table by another call, which would deadlock or find no table.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        // If there is no table, the values that `work` has captured are dropped at the end, without
        // the lock.
        let mut work = Some(work);
        self.locked(|table| {
            let installed = table.load(Ordering::Relaxed);
            // INVARIANT: This thread uses the table, so the pointer becomes NULL.
            table.store(null_mut(), Ordering::Relaxed);
            // SAFETY: By the type's invariant the pointer is NULL or to a valid table. No reference
            // to the table exists: other threads wait for the lock, and if this thread uses the
            // table already, the pointer is NULL.
            let in_use = unsafe { installed.as_mut() };
            let result = in_use.and_then(|table| work.take().map(|work| work(table)));
            table.store(installed, Ordering::Relaxed);
            result
        })
    }

    /// Replaces the table, and returns the table that was there before.
    fn replace(&self, new: *mut T) -> Option<KBox<T>> {
        let old = self.locked(|table| {
            let old = table.load(Ordering::Relaxed);
            // INVARIANT: The caller's pointer is NULL or from `into_raw`.
            table.store(new, Ordering::Relaxed);
            old
        });
        if old.is_null() {
            return None;
        }
        // SAFETY: By the type's invariant the pointer is from `into_raw`, and this object owned it.
        Some(unsafe { KBox::from_raw(old) })
    }

    fn locked<R>(&self, work: impl FnOnce(&AtomicPtr<T>) -> R) -> R {
        // SAFETY: C has a lock of this name. A thread that takes the lock twice, or sleeps while it
        // holds the lock, deadlocks, which is not unsound.
        unsafe { abi::nvpm_lock(self.lock) };
        let result = work(&self.table);
        // SAFETY: This thread has taken the lock above.
        unsafe { abi::nvpm_unlock(self.lock) };
        result
    }
}

/// Keeps a table in its [`Global`].
pub(crate) struct Installed<T: Send + 'static>(&'static Global<T>);

impl<T: Send> Drop for Installed<T> {
    fn drop(&mut self) {
        // The table is dropped without the lock, because dropping its contents may sleep.
        let table = self.0.replace(null_mut());
        drop(table);
    }
}
