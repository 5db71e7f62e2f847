// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the kernel's: one object, or a growing array.

use core::{
    marker::PhantomData,
    mem::{
        align_of,
        size_of, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
    slice, //
};

use crate::abi;

/// How memory is allocated: in one way, which may sleep.
#[derive(Clone, Copy)]
pub(crate) struct Flags(());
pub(crate) const GFP_KERNEL: Flags = Flags(());

/// There was no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocError;

/// That memory of the kernel's suits a `T`: C asserts that it is aligned to 8 bytes.
pub(super) struct Suits<T>(PhantomData<T>);

impl<T> Suits<T> {
    pub(super) const CHECKED: () = assert!(align_of::<T>() <= 8 && size_of::<T>() > 0);
}

/// An object in memory of its own.
///
/// # Invariants
///
/// Points to a `T` in memory of `nvpm_alloc`, and to both is no other owner.
pub(crate) struct KBox<T>(NonNull<T>, PhantomData<T>);

impl<T> KBox<T> {
    /// Puts `value` into memory of its own.
    pub(crate) fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        let () = Suits::<T>::CHECKED;
        // SAFETY: `Flags` say that sleeping is allowed.
        let memory = unsafe { abi::nvpm_alloc(size_of::<T>()) };
        let place = NonNull::new(memory.cast::<T>()).ok_or(AllocError)?;
        // SAFETY: Nobody else has this memory, which is large enough and suits a `T`.
        unsafe { place.as_ptr().write(value) };
        // INVARIANT: Just allocated and written.
        Ok(Self(place, PhantomData))
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type's invariant.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for KBox<T> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant; nobody uses either again.
        unsafe {
            self.0.as_ptr().drop_in_place();
            abi::nvpm_free(self.0.as_ptr().cast());
        }
    }
}

/// A growing array of elements that need no dropping.
///
/// # Invariants
///
/// `start` points to memory of `nvpm_valloc` for `capacity` elements, which has no other owner;
/// to nothing if `capacity` is 0. The first `len` of them, not more than `capacity`, are written.
pub(crate) struct KVVec<T: Copy> {
    start: NonNull<T>,
    len: usize,
    capacity: usize,
}

// SAFETY: It owns its elements, as a slice does.
unsafe impl<T: Copy + Send> Send for KVVec<T> {}
// SAFETY: As above.
unsafe impl<T: Copy + Sync> Sync for KVVec<T> {}

impl<T: Copy> KVVec<T> {
    /// Empty, with room for `capacity` elements.
    pub(crate) fn with_capacity(capacity: usize, _: Flags) -> Result<Self, AllocError> {
        // INVARIANT: No memory and no elements.
        let mut empty = Self {
            start: NonNull::dangling(),
            len: 0,
            capacity: 0,
        };
        if capacity > 0 {
            empty.enlarge(capacity)?;
        }
        Ok(empty)
    }

    /// Appends `value`.
    #[inline]
    pub(crate) fn push(&mut self, value: T, _: Flags) -> Result<(), AllocError> {
        if self.len == self.capacity {
            // In few steps, since what is not needed in the end goes soon.
            self.enlarge(self.capacity.saturating_mul(4).max(16))?;
        }
        // SAFETY: By the type's invariant there is memory for an element behind the last.
        unsafe { self.start.as_ptr().add(self.len).write(value) };
        // INVARIANT: Just written, and below the capacity.
        self.len += 1;
        Ok(())
    }

    /// Appends copies of `more`.
    pub(crate) fn extend_from_slice(&mut self, more: &[T], _: Flags) -> Result<(), AllocError> {
        let len = self.len.checked_add(more.len()).ok_or(AllocError)?;
        if len > self.capacity {
            self.enlarge(len)?;
        }
        // SAFETY: By the type's invariant there is memory behind the last element, here for all of
        // `more`, which is somebody else's.
        unsafe {
            let end = self.start.as_ptr().add(self.len);
            end.copy_from_nonoverlapping(more.as_ptr(), more.len());
        }
        // INVARIANT: Just written.
        self.len = len;
        Ok(())
    }

    /// Elements that there is memory for.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Moves to memory for `capacity` elements, more than there are.
    #[inline(never)]
    fn enlarge(&mut self, capacity: usize) -> Result<(), AllocError> {
        let () = Suits::<T>::CHECKED;
        let bytes = capacity.checked_mul(size_of::<T>()).ok_or(AllocError)?;
        // SAFETY: Whoever makes an array or lets it grow has `Flags`: sleeping is allowed.
        let memory = unsafe { abi::nvpm_valloc(bytes) };
        let start = NonNull::new(memory.cast::<T>()).ok_or(AllocError)?;
        // SAFETY: By the type's invariant these elements are written; the new memory is larger.
        unsafe {
            start
                .as_ptr()
                .copy_from_nonoverlapping(self.start.as_ptr(), self.len)
        };
        // INVARIANT: As allocated and copied. The old memory goes with what is replaced.
        *self = Self {
            start,
            len: self.len,
            capacity,
        };
        Ok(())
    }
}

impl<T: Copy> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: By the type's invariant.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for KVVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: By the type's invariant.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for KVVec<T> {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: By the type's invariant; nobody uses it again.
            unsafe { abi::nvpm_vfree(self.start.as_ptr().cast()) };
        }
    }
}
