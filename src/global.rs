// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A table that exists once, behind a spin lock, while the module is loaded.
//!
//! The lock is C's: the kernel crate's `global_lock!` came with 6.13, and wants a table that a constant can
//! make.

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
/// No two tables have the same lock. The pointer is NULL, or from [`KBox::into_raw`] and owned by this; it is
/// read, changed and followed under the lock only. While the table is used the pointer is NULL.
pub(crate) struct Global<T: 'static> {
    lock: abi::nvpm_lock_name,
    table: AtomicPtr<T>,
}

impl<T: Send> Global<T> {
    /// A table that is not installed yet. The lock must be no other table's.
    pub(crate) const fn new(lock: abi::nvpm_lock_name) -> Self {
        assert!(lock < abi::NVPM_LOCKS);
        // INVARIANT: NULL.
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

    /// Uses the table under its lock; [`None`] if it is not installed. `work` neither sleeps nor uses the
    /// table by another call: that would deadlock, or find no table.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        // If there is no table, what `work` has taken along is dropped at the end, without the lock.
        let mut work = Some(work);
        self.locked(|table| {
            let installed = table.load(Ordering::Relaxed);
            // INVARIANT: It is being used.
            table.store(null_mut(), Ordering::Relaxed);
            // SAFETY: By the type's invariant NULL or a valid table, to which nobody has a reference: other
            // threads wait for the lock, and this one, if it uses the table already, has found NULL.
            let in_use = unsafe { installed.as_mut() };
            let result = in_use.and_then(|table| work.take().map(|work| work(table)));
            table.store(installed, Ordering::Relaxed);
            result
        })
    }

    /// Takes the table out, and puts another one in.
    fn replace(&self, new: *mut T) -> Option<KBox<T>> {
        let old = self.locked(|table| {
            let old = table.load(Ordering::Relaxed);
            // INVARIANT: The caller's is NULL or from `into_raw`.
            table.store(new, Ordering::Relaxed);
            old
        });
        if old.is_null() {
            return None;
        }
        // SAFETY: By the type's invariant it is from `into_raw`, and was this object's.
        Some(unsafe { KBox::from_raw(old) })
    }

    fn locked<R>(&self, work: impl FnOnce(&AtomicPtr<T>) -> R) -> R {
        // SAFETY: C has a lock of this name. A thread that takes the lock twice, or sleeps while it holds the
        // lock, deadlocks, which is not unsound.
        unsafe { abi::nvpm_lock(self.lock) };
        let result = work(&self.table);
        // SAFETY: This thread has just taken it.
        unsafe { abi::nvpm_unlock(self.lock) };
        result
    }
}

/// Keeps a table in its [`Global`].
pub(crate) struct Installed<T: Send + 'static>(&'static Global<T>);

impl<T: Send> Drop for Installed<T> {
    fn drop(&mut self) {
        // Dropped without the lock: what is in it may sleep.
        let table = self.0.replace(null_mut());
        drop(table);
    }
}
