// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A table that exists once, from the loading of the module to its unloading. A spin lock protects
//! the table.
//!
//! The lock is in C, because the kernel crate has `global_lock!` only since 6.13, and because
//! `global_lock!` accepts only a constant as the initial table.

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
    /// Makes an object without a table. The caller must not use the same lock for another object.
    pub(crate) const fn new(lock: abi::nvpm_lock_name) -> Self {
        assert!(lock < abi::NVPM_LOCKS);
        // INVARIANT: The pointer is NULL.
        Self {
            lock,
            table: AtomicPtr::new(null_mut()),
        }
    }

    /// Installs the table. Dropping the result removes the table.
    pub(crate) fn install(&'static self, table: T) -> Result<Installed<T>> {
        let table = KBox::into_raw(KBox::new(table, GFP_KERNEL)?);
        let before = self.replace(table);
        drop(before);
        Ok(Installed(self))
    }

    /// Takes the lock, calls `work` with the table, and returns the result of `work`. Returns
    /// [`None`] if there is no table. `work` must not sleep. `work` must not call `with` for the
    /// same table either, because such a call deadlocks or, in a kernel for one processor, finds no
    /// table.
    pub(crate) fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.with_part(|table| Some(table), work)
    }

    /// Does the same as [`Self::with`], but calls `work` with the part of the table that `find`
    /// returns. Returns [`None`] if `find` does.
    pub(crate) fn with_part<P, R>(
        &self,
        find: impl FnOnce(&mut T) -> Option<&mut P>,
        work: impl FnOnce(&mut P) -> R,
    ) -> Option<R> {
        // If there is no part, `work` is not called. The values that it has captured are then
        // dropped at the end of this function, after the lock is released.
        let mut work = Some(work);
        self.locked(|table| {
            let installed = table.load(Ordering::Relaxed);
            // INVARIANT: This thread uses the table, so the pointer becomes NULL.
            table.store(null_mut(), Ordering::Relaxed);
            // SAFETY: By the type's invariant the pointer is NULL or to a valid table. No other
            // reference to the table exists: other threads wait for the lock, and while this thread
            // uses the table, the pointer is NULL.
            let in_use = unsafe { installed.as_mut() };
            let part = in_use.and_then(find);
            let result = part.and_then(|part| work.take().map(|work| work(part)));
            table.store(installed, Ordering::Relaxed);
            result
        })
    }

    /// Replaces the table. Returns the old table, if there was one.
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
        // SAFETY: C has a lock with this number, because `new` has checked the number. A thread
        // that takes the lock twice, or sleeps while it holds the lock, may deadlock, but a
        // deadlock is not undefined behaviour.
        unsafe { abi::nvpm_lock(self.lock) };
        let result = work(&self.table);
        // SAFETY: This thread has taken the lock above.
        unsafe { abi::nvpm_unlock(self.lock) };
        result
    }
}

/// The proof that a table is installed in a [`Global`]. Dropping the proof removes the table.
pub(crate) struct Installed<T: Send + 'static>(&'static Global<T>);

impl<T: Send> Drop for Installed<T> {
    fn drop(&mut self) {
        // The table is dropped after the lock is released, because dropping its contents may sleep.
        let table = self.0.replace(null_mut());
        drop(table);
    }
}
