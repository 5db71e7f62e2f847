// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory that the model counts, and whose allocation can fail.

use std::ops::{Deref, DerefMut};

use crate::world::{may_sleep, world};

/// Allocation flags. Memory is allocated in one way here.
#[derive(Clone, Copy)]
pub(crate) struct Flags;
pub(crate) const GFP_KERNEL: Flags = Flags;

/// Memory could not be allocated.
#[derive(Debug)]
pub struct AllocError;

/// Counts an object while it exists.
pub(crate) struct Counted;

impl Counted {
    pub(crate) fn new() -> Result<Self, AllocError> {
        may_sleep("allocating memory");
        // With `then_some`, the object would be made and dropped in any case.
        world().linux.allocate().then(|| Self).ok_or(AllocError)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        world().linux.deallocate();
    }
}

/// An object with its own memory.
pub(crate) struct KBox<T>(Box<T>, Counted);

impl<T> KBox<T> {
    pub(crate) fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(Box::new(value), Counted::new()?))
    }

    pub(crate) fn into_raw(this: Self) -> *mut T {
        std::mem::forget(this.1);
        Box::into_raw(this.0)
    }

    /// # Safety
    ///
    /// `raw` must be from [`Self::into_raw`].
    pub(crate) unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: This function's requirement; the object was counted.
        Self(unsafe { Box::from_raw(raw) }, Counted)
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

/// A growing array. Freeing the array may sleep, because an array may have many pages.
pub(crate) struct KVVec<T>(Vec<T>, Counted);

impl<T> KVVec<T> {
    pub(crate) fn with_capacity(capacity: usize, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(Vec::with_capacity(capacity), Counted::new()?))
    }

    pub(crate) fn push(&mut self, value: T, _: Flags) -> Result<(), AllocError> {
        if self.0.len() == self.0.capacity() {
            self.1 = Counted::new()?;
        }
        self.0.push(value);
        Ok(())
    }
}

impl<T> Drop for KVVec<T> {
    fn drop(&mut self) {
        may_sleep("freeing an array");
    }
}

impl<T> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}
