// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the kernel's: one object, or a growing array.

use core::{
    mem::{align_of, forget, size_of},
    ops::{Deref, DerefMut},
    ptr::NonNull,
    slice,
};

use core::ffi::c_void;

extern "C" {
    /// Memory of `size` bytes, aligned to 8, or null. May sleep.
    fn nvpm_alloc(size: usize) -> *mut c_void;
    /// Frees what `nvpm_alloc` returned, which nobody uses any more. Sleeps only where the memory
    /// is of many pages.
    fn nvpm_free(memory: *mut c_void);
}

/// How memory is allocated: in one way, which may sleep.
#[derive(Clone, Copy, PartialEq)]
pub struct Flags(());

/// The ways to allocate memory.
pub mod flags {
    /// For callers that may sleep.
    pub const GFP_KERNEL: super::Flags = super::Flags(());
}

/// There was no memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocError;

/// Memory for some `T`, which may or may not be there.
///
/// # Invariants
///
/// Points to memory of `nvpm_alloc` that is large enough, suits a `T`, and has no other owner.
struct Memory<T>(NonNull<T>);

impl<T> Memory<T> {
    /// For `number` of them, at least one.
    fn new(number: usize, _: Flags) -> Result<Self, AllocError> {
        let () = Suits::<T>::CHECKED;
        let bytes = number.checked_mul(size_of::<T>()).ok_or(AllocError)?;
        // SAFETY: `Flags` say that the caller may sleep.
        let memory = unsafe { nvpm_alloc(bytes) };
        // INVARIANT: It was just allocated, for all of them; `Suits` compares alignments.
        NonNull::new(memory.cast()).map(Self).ok_or(AllocError)
    }
}

/// Compiles only where memory from C suits a `T`: it is aligned to 8 bytes, and there is some.
pub(crate) struct Suits<T>(T);

impl<T> Suits<T> {
    pub(crate) const CHECKED: () = assert!(align_of::<T>() <= 8 && size_of::<T>() > 0);
}

// SAFETY: It owns what is there, as an array does.
unsafe impl<T: Send> Send for Memory<T> {}
// SAFETY: A shared `Memory` gives only what a shared array gives.
unsafe impl<T: Sync> Sync for Memory<T> {}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant `nvpm_alloc` returned it, and nobody else uses it.
        unsafe { nvpm_free(self.0.as_ptr().cast()) };
    }
}

/// An object in memory of its own.
///
/// # Invariants
///
/// The object is there.
pub struct KBox<T>(Memory<T>);

impl<T> KBox<T> {
    /// Puts `value` into memory of its own.
    pub fn new(value: T, flags: Flags) -> Result<Self, AllocError> {
        let memory = Memory::<T>::new(1, flags)?;
        // SAFETY: By the invariant of `Memory` the pointer is valid for writing a `T`, and aligned.
        unsafe { memory.0.as_ptr().write(value) };
        // INVARIANT: It was just written.
        Ok(Self(memory))
    }

    /// Gives the object away, to be taken back with [`Self::from_raw`].
    pub fn into_raw(this: Self) -> *mut T {
        let raw = this.0 .0.as_ptr();
        forget(this);
        raw
    }

    /// Takes an object back.
    ///
    /// # Safety
    ///
    /// `raw` is from [`Self::into_raw`], and each of its results is taken back at most once.
    pub unsafe fn from_raw(raw: *mut T) -> Self {
        // SAFETY: By the requirement it is the pointer of a `NonNull`.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        // INVARIANT: By the requirement it was the memory of a `KBox`, with the object, and that
        // `KBox` is gone.
        Self(Memory(raw))
    }

    /// Takes the object out of its memory.
    pub fn into_inner(this: Self) -> T {
        let memory = Memory(this.0 .0);
        forget(this);
        // SAFETY: By the invariant of `KBox` a valid object is there. Nobody reads it again: what
        // is left is `memory`, which drops no object.
        unsafe { memory.0.as_ptr().read() }
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the invariants a valid object is there, aligned; it is borrowed as this is.
        unsafe { self.0 .0.as_ref() }
    }
}

impl<T> DerefMut for KBox<T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As in `deref`; by the invariant of `Memory` nobody else has the object.
        unsafe { self.0 .0.as_mut() }
    }
}

impl<T> Drop for KBox<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariants a valid object is there, aligned and of no other owner. Nobody
        // uses it again: `Memory` drops no object.
        unsafe { self.0 .0.as_ptr().drop_in_place() };
    }
}

/// A growing array of elements that need no dropping.
///
/// # Invariants
///
/// The memory is for `capacity` elements; there is none for 0. The first `len` of them, not more
/// than `capacity`, are there.
pub struct KVVec<T: Copy> {
    memory: Option<Memory<T>>,
    len: usize,
    capacity: usize,
}

impl<T: Copy> KVVec<T> {
    /// Empty, without memory.
    pub const fn new() -> Self {
        // INVARIANT: No elements, and room for none.
        Self {
            memory: None,
            len: 0,
            capacity: 0,
        }
    }

    /// Empty, with room for `capacity` elements.
    pub fn with_capacity(capacity: usize, flags: Flags) -> Result<Self, AllocError> {
        let mut empty = Self::new();
        if capacity > 0 {
            empty.memory = Some(Memory::new(capacity, flags)?);
            // INVARIANT: `Memory` was asked for so many.
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
        // SAFETY: By the invariant the memory is valid for writing `len` elements, so for `more`
        // behind the first `self.len`. `more` is a slice: valid for reading, and not this memory,
        // which is borrowed for writing.
        unsafe {
            let end = self.start().as_ptr().add(self.len);
            end.copy_from_nonoverlapping(more.as_ptr(), more.len());
        }
        // INVARIANT: They were just written, and `len` is not above the capacity.
        self.len = len;
        Ok(())
    }

    /// Moves to memory for at least `len` elements, more than there is room for. The room doubles,
    /// so that each element is copied a few times at most.
    #[inline(never)]
    fn enlarge(&mut self, len: usize, flags: Flags) -> Result<(), AllocError> {
        let capacity = self.capacity.saturating_mul(2).max(len).max(4);
        let mut larger = Self::with_capacity(capacity, flags)?;
        larger.extend_from_slice(self, flags)?;
        *self = larger;
        Ok(())
    }

    /// The first element, or where it would be: valid for as many as there is room for.
    fn start(&self) -> NonNull<T> {
        self.memory.as_ref().map_or(NonNull::dangling(), |it| it.0)
    }
}

impl<T: Copy> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: By the invariant so many elements are there, aligned, in one piece of memory whose
        // size C was able to allocate. They are borrowed as this is, and change only through it.
        unsafe { slice::from_raw_parts(self.start().as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for KVVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: As in `deref`; by the invariant of `Memory` nobody else has the elements.
        unsafe { slice::from_raw_parts_mut(self.start().as_ptr(), self.len) }
    }
}
