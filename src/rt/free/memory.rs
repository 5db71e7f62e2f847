// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the kernel's: one object, or a growing array.

use core::{
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

/// Memory for some `T`, which may or may not be there.
///
/// # Invariants
///
/// Points to memory of `nvpm_alloc` that is large enough, suits a `T`, and has no other owner.
pub(super) struct Memory<T>(NonNull<T>);

impl<T> Memory<T> {
    /// The kernel's suits a `T`: C asserts that it is aligned to 8 bytes.
    pub(super) const SUITS: () = assert!(align_of::<T>() <= 8 && size_of::<T>() > 0);

    /// For `number` of them; for none it is a pointer that is not followed.
    fn new(number: usize, _: Flags) -> Result<Self, AllocError> {
        let () = Self::SUITS;
        let bytes = number.checked_mul(size_of::<T>()).ok_or(AllocError)?;
        // SAFETY: `Flags` say that sleeping is allowed.
        let memory = unsafe { abi::nvpm_alloc(bytes) };
        // INVARIANT: Just allocated.
        NonNull::new(memory.cast()).map(Self).ok_or(AllocError)
    }
}

// SAFETY: It owns what is there, as an array does.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: As above.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant; nobody uses it again.
        unsafe { abi::nvpm_free(self.0.as_ptr().cast()) };
    }
}

/// An object in memory of its own.
///
/// # Invariants
///
/// The object is there.
pub(crate) struct KBox<T>(Memory<T>);

impl<T> KBox<T> {
    /// Puts `value` into memory of its own.
    pub(crate) fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        let memory = Memory::<T>::new(1, flags)?;
        // SAFETY: By the invariant of `Memory`, which is for one.
        unsafe { memory.0.as_ptr().write(value) };
        // INVARIANT: Just written.
        Ok(Self(memory))
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type's invariant.
        unsafe { self.0 .0.as_ref() }
    }
}

impl<T> Drop for KBox<T> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant; nobody uses it again.
        unsafe { self.0 .0.as_ptr().drop_in_place() };
    }
}

/// A growing array of elements that need no dropping.
///
/// # Invariants
///
/// The memory is for `capacity` elements. The first `len` of them, not more than `capacity`, are
/// there.
pub(crate) struct KVVec<T: Copy> {
    memory: Memory<T>,
    len: usize,
    capacity: usize,
}

impl<T: Copy> KVVec<T> {
    /// Empty, with room for `capacity` elements.
    pub(crate) fn with_capacity(capacity: usize, flags: Flags) -> Result<Self, AllocError> {
        // INVARIANT: No elements.
        Ok(Self {
            memory: Memory::new(capacity, flags)?,
            len: 0,
            capacity,
        })
    }

    /// Appends `value`.
    #[inline]
    pub(crate) fn push(&mut self, value: T, flags: Flags) -> Result<(), AllocError> {
        if self.len == self.capacity {
            // In few steps, since what is not needed in the end goes soon.
            self.enlarge(self.capacity.saturating_mul(4).max(16), flags)?;
        }
        // SAFETY: By the type's invariant there is memory for an element behind the last.
        unsafe { self.memory.0.as_ptr().add(self.len).write(value) };
        // INVARIANT: Just written, and below the capacity.
        self.len += 1;
        Ok(())
    }

    /// Appends copies of `more`.
    pub(crate) fn extend_from_slice(&mut self, more: &[T], flags: Flags) -> Result<(), AllocError> {
        let len = self.len.checked_add(more.len()).ok_or(AllocError)?;
        if len > self.capacity {
            self.enlarge(len, flags)?;
        }
        // SAFETY: By the type's invariant there is memory behind the last element, here for all of
        // `more`, which is somebody else's.
        unsafe {
            let end = self.memory.0.as_ptr().add(self.len);
            end.copy_from_nonoverlapping(more.as_ptr(), more.len());
        }
        // INVARIANT: Just written.
        self.len = len;
        Ok(())
    }

    /// Elements that there is memory for; only the tests on the host want to know.
    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Moves to memory for `capacity` elements, more than there are.
    #[inline(never)]
    fn enlarge(&mut self, capacity: usize, flags: Flags) -> Result<(), AllocError> {
        let mut larger = Self::with_capacity(capacity, flags)?;
        larger.extend_from_slice(self, flags)?;
        *self = larger;
        Ok(())
    }
}

impl<T: Copy> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: By the type's invariant.
        unsafe { slice::from_raw_parts(self.memory.0.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for KVVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: By the type's invariant.
        unsafe { slice::from_raw_parts_mut(self.memory.0.as_ptr(), self.len) }
    }
}
