// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory for the module. The model counts each object, and can let an allocation fail.

use std::ops::{Deref, DerefMut};

use crate::world::{may_sleep, world};

/// The mode of an allocation. The model has only one mode.
#[derive(Clone, Copy)]
pub(crate) struct Flags;
pub(crate) const GFP_KERNEL: Flags = Flags;

/// The error for an allocation that has failed.
#[derive(Debug)]
pub struct AllocError;

/// Counts an object while it exists.
pub(crate) struct Counted;

impl Counted {
    pub(crate) fn new() -> Result<Self, AllocError> {
        may_sleep("allocating memory");
        // `then_some(Self)` would make the object even if the allocation fails, and dropping the
        // object would change the count.
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
        // SAFETY: By this function's requirement the pointer is from `into_raw`. The object was
        // counted when it was made.
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
