// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Locks.

use std::{
    cell::{Cell, UnsafeCell},
    convert::Infallible,
    ops::{Deref, DerefMut},
    ptr::from_ref,
};

use crate::thread::{point, wait, wake};

/// A lock for one thread at a time.
#[derive(Default)]
pub struct Mutex<T> {
    locked: Cell<bool>,
    value: UnsafeCell<T>,
}

impl<T> Mutex<T> {
    /// Makes a lock that is not held.
    pub fn new(value: T) -> Self {
        Self {
            locked: Cell::new(false),
            value: UnsafeCell::new(value),
        }
    }

    /// Waits for the lock and takes it.
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, Infallible> {
        point();
        Ok(self.lock_here())
    }

    fn lock_here(&self) -> MutexGuard<'_, T> {
        while self.locked.replace(true) {
            wait(from_ref(self).addr());
        }
        MutexGuard(self)
    }
}

/// Holds a lock.
pub struct MutexGuard<'a, T>(&'a Mutex<T>);

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        self.0.locked.set(false);
        wake(from_ref(self.0).addr());
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: The guard holds the lock, so no other thread changes the value.
        unsafe { &*self.0.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: The guard holds the lock, so no other reference to the value exists.
        unsafe { &mut *self.0.value.get() }
    }
}

/// A queue of threads that wait for a condition.
#[derive(Default)]
pub struct Condvar {
    /// This field makes each object have its own address. Threads wait for an address, and several
    /// objects of a type without fields could have the same one.
    _place: u8,
}

impl Condvar {
    /// Makes an empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for [`Self::notify_all`], and releases the lock while waiting.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> Result<MutexGuard<'a, T>, Infallible> {
        let mutex = guard.0;
        drop(guard);
        wait(from_ref(self).addr());
        Ok(mutex.lock_here())
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self) {
        wake(from_ref(self).addr());
    }
}

/// Atomic types.
pub mod atomic {
    use std::{cell::Cell, sync::atomic::Ordering};

    use crate::thread::point;

    /// An atomic number.
    pub struct AtomicUsize(Cell<usize>);

    impl AtomicUsize {
        /// Makes a number with this value.
        pub fn new(value: usize) -> Self {
            Self(Cell::new(value))
        }

        /// Returns the value. The memory order is ignored, because only one thread runs at a time.
        pub fn load(&self, _: Ordering) -> usize {
            point();
            self.0.get()
        }

        /// Sets the value.
        pub fn store(&self, value: usize, _: Ordering) {
            point();
            self.0.set(value);
        }
    }
}
