// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share. In front of each such object, in the same memory, C keeps the number of its
//! owners and a lock, whose size only C knows.

use core::{
    cell::UnsafeCell,
    ffi::c_void,
    marker::PhantomData,
    mem::{forget, size_of},
    ops::{Deref, DerefMut},
    ptr::{self, NonNull},
};

use crate::{
    alloc::{AllocError, Flags, Suits},
    error::Result,
};

pub use crate::new_spinlock;

// `object` is always one that `nvpm_shared_new` returned and `nvpm_shared_free` has not got yet.
extern "C" {
    /// Memory for an object of `size` bytes, aligned to 8, with one owner and a lock that nobody
    /// holds, or null. `class` stays where it is for ever. May sleep.
    fn nvpm_shared_new(size: usize, class: *const LockClass) -> *mut c_void;
    /// Counts one owner more.
    fn nvpm_shared_get(object: *mut c_void);
    /// Counts one owner less; true if that was the last one.
    fn nvpm_shared_put(object: *mut c_void) -> bool;
    /// Frees the memory of an object without owners.
    fn nvpm_shared_free(object: *mut c_void);
    /// The caller does not hold the lock, nor sleep until it lets go of it.
    fn nvpm_shared_lock(object: *const c_void);
    /// The caller holds the lock.
    fn nvpm_shared_unlock(object: *const c_void);
}

/// Shared ownership.
///
/// # Invariants
///
/// Points to a `T` that `nvpm_shared_new` gave the memory for, and counts as one of its owners.
pub struct Arc<T>(NonNull<T>);

// SAFETY: Any thread may look at what has several owners (`T: Sync`), and the thread of the last
// one drops it (`T: Send`).
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: Whoever can look at an `Arc` can clone it: as above.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Shares `value`.
    pub fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        Self::with_class(value, &[0; 2])
    }

    fn with_class(value: T, class: &'static LockClass) -> Result<Self, AllocError> {
        let () = Suits::<T>::CHECKED;
        // SAFETY: `Flags`, without which nobody gets here, say that the caller may sleep. The class
        // is `'static`.
        let memory = unsafe { nvpm_shared_new(size_of::<T>(), class) };
        let object = NonNull::new(memory.cast::<T>()).ok_or(AllocError)?;
        // SAFETY: Nobody else has this memory, which is large enough; `Suits` says it is aligned.
        unsafe { object.as_ptr().write(value) };
        // INVARIANT: C counts one owner at first.
        Ok(Self(object))
    }

    /// Gives this owner's part away, to be taken back with [`Self::from_raw`].
    pub fn into_raw(self) -> *const T {
        let raw = self.0.as_ptr().cast_const();
        forget(self);
        raw
    }

    /// Takes an owner's part back.
    ///
    /// # Safety
    ///
    /// `raw` is from [`Self::into_raw`], and each of its results is taken back at most once.
    pub unsafe fn from_raw(raw: *const T) -> Self {
        // SAFETY: By the requirement it is the pointer of a `NonNull`.
        let object = unsafe { NonNull::new_unchecked(raw.cast_mut()) };
        // INVARIANT: This counts as the owner that `into_raw` gave away.
        Self(object)
    }

    /// Whether both are owners of the same object.
    pub fn ptr_eq(this: &Self, other: &Self) -> bool {
        this.0 == other.0
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        // SAFETY: By the invariant `nvpm_shared_new` returned it, and this owner keeps it there.
        unsafe { nvpm_shared_get(self.0.as_ptr().cast()) };
        // INVARIANT: One more was just counted.
        Self(self.0)
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the invariant a valid object is there, aligned, as long as this owner is.
        // Nobody has it for writing: owners give it out for reading, and the last one drops it.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant `nvpm_shared_new` returned it and this is an owner, which nobody
        // uses again. If it was the last one, nobody else has the object: it is dropped once, and
        // then its memory freed.
        unsafe {
            if nvpm_shared_put(self.0.as_ptr().cast()) {
                self.0.as_ptr().drop_in_place();
                nvpm_shared_free(self.0.as_ptr().cast());
            }
        }
    }
}

/// Locks of one kind, to a kernel that checks in which order locks are taken: all that it knows
/// of the kind is this address.
#[doc(hidden)]
pub type LockClass = [u64; 2];

/// A state that one thread at a time sees, in an [`Arc`].
///
/// # Invariants
///
/// It is the object of an [`Arc`], so there is a lock in front of it. Whoever looks at the state
/// holds that lock, or is the last owner and drops it.
pub struct SpinLock<T>(UnsafeCell<T>);

// SAFETY: The state goes from thread to thread (`T: Send`), one at a time. The lock is C's.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: As above.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Waits for the lock, without sleeping. Whoever holds it must not sleep either.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: By the invariant it is the object of an `Arc`, which this borrow keeps there. A
        // caller that holds the lock already, or sleeps while it does, stops for ever: a mistake
        // that the kernel can report, but nothing unsound comes of it.
        unsafe { nvpm_shared_lock(ptr::from_ref(self).cast()) };
        // INVARIANT: This thread has just locked it.
        Guard {
            lock: self,
            of_this_thread: PhantomData,
        }
    }
}

/// A [`SpinLock`] that is not in its place yet.
#[doc(hidden)]
pub struct NewSpinLock<T>(pub T, pub &'static LockClass);

/// Makes a spin lock, for [`InPlaceInit::pin_init`].
#[macro_export]
macro_rules! new_spinlock {
    ($value:expr $(, $name:literal)? $(,)?) => {{
        static CLASS: $crate::sync::LockClass = [0; 2];
        $crate::sync::NewSpinLock($value, &CLASS)
    }};
}

/// Pointers to something that is made where it stays.
pub trait InPlaceInit<New>: Sized {
    /// Makes it.
    fn pin_init(new: New, flags: Flags) -> Result<Self>;
}

impl<T> InPlaceInit<NewSpinLock<T>> for Arc<SpinLock<T>> {
    fn pin_init(new: NewSpinLock<T>, _: Flags) -> Result<Self> {
        // INVARIANT: Only here a `SpinLock` is made, and moved into its `Arc`.
        let lock = SpinLock(UnsafeCell::new(new.0));
        Ok(Self::with_class(lock, new.1)?)
    }
}

/// The state of a [`SpinLock`], for as long as this lives.
///
/// # Invariants
///
/// This thread holds the lock.
#[must_use = "the lock is let go at once"]
pub struct Guard<'a, T> {
    lock: &'a SpinLock<T>,
    of_this_thread: PhantomData<*const ()>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the invariant no other thread has a `Guard` of this state, nor has this one a
        // second, which would wait for ever. So nobody else looks while this is borrowed.
        unsafe { &*self.lock.0.get() }
    }
}

impl<T: Unpin> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: As in `deref`; and this borrows the only `Guard` for writing.
        unsafe { &mut *self.lock.0.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant of `SpinLock` it is the object of an `Arc`, which the borrow in
        // `self` keeps there; by that of `Guard` this thread holds the lock.
        unsafe { nvpm_shared_unlock(ptr::from_ref(self.lock).cast()) };
    }
}
