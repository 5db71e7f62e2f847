// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory from the kernel for one object or for a growing array.

use core::{
    mem::{align_of, forget, size_of},
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
};

use core::ffi::c_void;

extern "C" {
    /// Returns `size` bytes of memory, aligned to 8, or null. May sleep.
    fn nvpm_alloc(size: usize) -> *mut c_void;
    /// Frees memory from `nvpm_alloc`. The caller must not use the memory again. Large memory,
    /// which the kernel makes out of single pages, may be freed only by a caller that may sleep.
    fn nvpm_free(memory: *mut c_void);
}

/// The mode of an allocation. The only mode is [`flags::GFP_KERNEL`], in which the allocation may
/// sleep.
#[derive(Clone, Copy, PartialEq)]
pub struct Flags(());

/// The modes of allocations.
pub mod flags {
    /// The mode for callers that may sleep.
    pub const GFP_KERNEL: super::Flags = super::Flags(());
}

/// The error for an allocation that has failed, because the kernel has too little memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError;

/// Memory for one or more `T`, initialised or not.
///
/// # Invariants
///
/// The pointer is to memory from `nvpm_alloc` that is large enough and aligned for `T`. No other
/// object owns the memory.
struct Memory<T>(NonNull<T>);

impl<T> Memory<T> {
    /// Allocates memory for `number` objects. `number` must not be 0.
    fn new(number: usize, _: Flags) -> Result<Self, AllocError> {
        let () = Suits::<T>::CHECKED;
        let bytes = number.checked_mul(size_of::<T>()).ok_or(AllocError)?;
        // SAFETY: The only `Flags` are `GFP_KERNEL`, which says that the caller may sleep.
        let memory = unsafe { nvpm_alloc(bytes) };
        // INVARIANT: The memory is new, and has room for all objects. `Suits` has checked the
        // alignment.
        NonNull::new(memory.cast()).map(Self).ok_or(AllocError)
    }
}

/// The constant of this type compiles only if memory from C is suitable for `T`. The constant
/// checks this, because C's memory is aligned to 8 bytes and never empty.
pub(crate) struct Suits<T>(T);

impl<T> Suits<T> {
    pub(crate) const CHECKED: () = assert!(align_of::<T>() <= 8 && size_of::<T>() > 0);
}

// SAFETY: The memory owns its elements, as an array does.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: A shared `Memory` gives access to its elements as a shared array does.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant, the memory is from `nvpm_alloc`, and has no other owner.
        unsafe { nvpm_free(self.0.as_ptr().cast()) };
    }
}

/// A pointer to an object that was allocated separately.
///
/// # Invariants
///
/// The memory holds a valid object.
pub struct KBox<T>(Memory<T>);

impl<T> KBox<T> {
    /// Allocates memory and moves `value` there.
    pub fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        let memory = Memory::<T>::new(1, flags)?;
        // SAFETY: By the invariant of `Memory`, the pointer is aligned, and valid for writing a
        // `T`.
        unsafe { memory.0.as_ptr().write(value) };
        // INVARIANT: The object was just written.
        Ok(Self(memory))
    }

    /// Turns the box into a pointer, which [`Self::from_raw`] turns back.
    pub fn into_raw(this: Self) -> *mut T {
        let raw = this.0 .0.as_ptr();
        forget(this);
        raw
    }

    /// Turns a pointer from [`Self::into_raw`] back into a box.
    ///
    /// # Safety
    ///
    /// `raw` must be from [`Self::into_raw`], and each pointer may be turned back only once.
    pub unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: By the requirement the pointer is from `into_raw`, which got it from a `NonNull`.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        // INVARIANT: By the requirement the memory belonged to a `KBox`, so the memory holds an
        // object and has no other owner.
        Self(Memory(raw))
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the invariants, the memory holds a valid, aligned object, which the result
        // borrows through `self`.
        unsafe { self.0 .0.as_ref() }
    }
}

impl<T> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the invariants, the memory holds a valid, aligned object and has no other
        // owner; the result borrows it exclusively through `self`.
        unsafe { self.0 .0.as_mut() }
    }
}

impl<T> Drop for KBox<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariants, the memory holds a valid, aligned object and has no other
        // owner. The object is not used again, because `Memory` frees the memory without dropping
        // an object.
        unsafe { self.0 .0.as_ptr().drop_in_place() };
    }
}

/// A growing array of elements that need no destructor.
///
/// # Invariants
///
/// The memory has room for `capacity` elements; there is no memory if `capacity` is 0. The first
/// `len` elements are initialised, and `len` is at most `capacity`.
pub struct KVVec<T: Copy> {
    memory: Option<Memory<T>>,
    len: usize,
    capacity: usize,
}

impl<T: Copy> KVVec<T> {
    /// Makes an empty array, without memory.
    pub const fn new() -> Self {
        // INVARIANT: Both numbers are 0.
        Self {
            memory: None,
            len: 0,
            capacity: 0,
        }
    }

    /// Makes an empty array with room for `capacity` elements.
    pub fn with_capacity(capacity: usize, flags: Flags) -> Result<Self, AllocError> {
        let mut empty = Self::new();
        if capacity > 0 {
            empty.memory = Some(Memory::new(capacity, flags)?);
            // INVARIANT: `Memory::new` has made room for `capacity` elements.
            empty.capacity = capacity;
        }
        Ok(empty)
    }

    /// Appends `value`.
    #[inline]
    pub fn push(&mut self, value: T, flags: Flags) -> Result<(), AllocError> {
        self.extend_from_slice(&[value], flags)
    }

    /// Appends copies of `more`.
    #[inline]
    pub fn extend_from_slice(&mut self, more: &[T], flags: Flags) -> Result<(), AllocError> {
        let len = self.len.checked_add(more.len()).ok_or(AllocError)?;
        if len > self.capacity {
            self.enlarge(len, flags)?;
        }
        // SAFETY: By the invariant, the memory has room for `len` elements, and so for `more` after
        // the first `self.len` elements. `more` is valid for reading, and does not overlap this
        // memory, which `&mut self` borrows exclusively.
        unsafe {
            let end = self.start().as_ptr().add(self.len);
            end.copy_from_nonoverlapping(more.as_ptr(), more.len());
        }
        // INVARIANT: The elements were just written, and `len` is at most the capacity.
        self.len = len;
        Ok(())
    }

    /// Moves the array to memory that has room for at least `len` elements. `len` must be more than
    /// the capacity. The capacity at least doubles, so that many calls to `push` move the array
    /// only a few times.
    #[inline(never)]
    fn enlarge(&mut self, len: usize, flags: Flags) -> Result<(), AllocError> {
        let capacity = self.capacity.saturating_mul(2).max(len).max(4);
        let mut larger = Self::with_capacity(capacity, flags)?;
        larger.extend_from_slice(self, flags)?;
        *self = larger;
        Ok(())
    }

    /// Returns the address of the first element. Behind the address there is memory for `capacity`
    /// elements.
    fn start(&self) -> NonNull<T> {
        self.memory.as_ref().map_or(NonNull::dangling(), |it| it.0)
    }
}

impl<T: Copy> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: By the invariant, `len` elements are initialised, and aligned, in one allocation,
        // which is smaller than `isize::MAX`. The result borrows the elements through `self`.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for KVVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: By the invariant, `len` elements are initialised, and aligned, in one allocation,
        // which is smaller than `isize::MAX` and has no other owner. The result borrows the
        // elements exclusively.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }
}
