// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Atomic types for the module's statics. Each world has its own values of the statics.

use std::{any::TypeId, ffi::c_void, rc::Rc};

pub(crate) use std::sync::atomic::Ordering;

use loom::sync::atomic::AtomicUsize;

use crate::world::world;

/// Returns this world's value of a static of the module. If the static has no value in this world
/// yet, its value becomes `first`.
fn in_this_world<T>(it: &T, first: usize) -> Rc<AtomicUsize> {
    world().linux.atomic(std::ptr::from_ref(it) as usize, first)
}

/// Changes this world's value of a counter, and returns the value from before. loom does not
/// explore the order of such changes.
fn count<T>(it: &T, change: impl Fn(u64) -> u64) -> u64 {
    let at = std::ptr::from_ref(it) as usize;
    world().linux.count(at, change)
}

/// An atomic pointer. loom does not explore the order of accesses to a table's pointer, because
/// each access happens under a lock.
pub(crate) struct AtomicPtr<T>(*mut T);

// SAFETY: The field never changes.
unsafe impl<T> Sync for AtomicPtr<T> {}

impl<T: 'static> AtomicPtr<T> {
    pub(crate) const fn new(first: *mut T) -> Self {
        Self(first)
    }

    fn is_explored() -> bool {
        TypeId::of::<T>() == TypeId::of::<c_void>()
    }

    pub(crate) fn store(&self, pointer: *mut T, order: Ordering) {
        if Self::is_explored() {
            in_this_world(self, self.0 as usize).store(pointer as usize, order);
        } else {
            count(self, |_| pointer as u64);
        }
    }

    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        if Self::is_explored() {
            in_this_world(self, self.0 as usize).load(order) as *mut T
        } else {
            count(self, |pointer| pointer) as *mut T
        }
    }
}

/// An atomic bool.
pub(crate) struct AtomicBool(bool);

impl AtomicBool {
    pub(crate) const fn new(first: bool) -> Self {
        Self(first)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        in_this_world(self, self.0.into()).store(value.into(), order);
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        in_this_world(self, self.0.into()).load(order) != 0
    }
}

/// An atomic counter. No thread makes a decision that depends on the value, so loom does not
/// explore the order of accesses.
#[repr(transparent)]
pub(crate) struct AtomicU64(u64);

impl AtomicU64 {
    pub(crate) const fn new(first: u64) -> Self {
        Self(first)
    }

    pub(crate) fn fetch_add(&self, by: u64, _: Ordering) -> u64 {
        count(self, |value| value.wrapping_add(by))
    }
}
