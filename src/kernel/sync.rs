// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Objects that threads share. In front of each object, in the same allocation, C keeps the count of its
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

// `object` always comes from `nvpm_shared_new`, and `nvpm_shared_free` has not freed it yet.
extern "C" {
    /// Memory for an object of `size` bytes, aligned to 8, with one owner and a lock that is not
    /// held; or null. `class` must be `'static`. May sleep.
    fn nvpm_shared_new(size: usize, class: *const LockClass) -> *mut c_void;
    /// Adds an owner.
    fn nvpm_shared_get(object: *mut c_void);
    /// Removes an owner; true if it was the last one.
    fn nvpm_shared_put(object: *mut c_void) -> bool;
    /// Frees the memory of an object that has no owner.
    fn nvpm_shared_free(object: *mut c_void);
    /// Takes the lock. The caller does not hold it, and does not sleep before it has released it.
    fn nvpm_shared_lock(object: *const c_void);
    /// Releases the lock, which the caller holds.
    fn nvpm_shared_unlock(object: *const c_void);
}

/// Shared ownership.
///
/// # Invariants
///
/// Points to a `T` in memory from `nvpm_shared_new`, and counts as one of its owners.
pub struct Arc<T>(NonNull<T>);

// SAFETY: Owners on several threads use the object at the same time (`T: Sync`), and the last owner
// drops it, on any thread (`T: Send`).
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: A thread that has `&Arc` can clone it and send the clone on, so this needs what `Send` needs:
// `T: Sync` for several owners, `T: Send` for the last one.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    fn with_class(value: T, class: &'static LockClass) -> Result<Self, AllocError> {
        let () = Suits::<T>::CHECKED;
        // SAFETY: The caller has given `Flags`, so it may sleep. The class is `'static`.
        let memory = unsafe { nvpm_shared_new(size_of::<T>(), class) };
        let object = NonNull::new(memory.cast::<T>()).ok_or(AllocError)?;
        // SAFETY: The memory is new and large enough for a `T`; `Suits` has checked its alignment.
        unsafe { object.as_ptr().write(value) };
        // INVARIANT: A new object has one owner, this one.
        Ok(Self(object))
    }

    /// Turns this owner into a pointer, which [`Self::from_raw`] turns back into an owner.
    pub fn into_raw(self) -> *const T {
        let raw = self.0.as_ptr().cast_const();
        forget(self);
        raw
    }

    /// Turns a pointer back into an owner.
    ///
    /// # Safety
    ///
    /// `raw` is from [`Self::into_raw`], and each pointer is turned back at most once.
    pub unsafe fn from_raw(raw: *const T) -> Self {
        // SAFETY: By the requirement the pointer is from `into_raw`, which got it from a `NonNull`.
        let object = unsafe { NonNull::new_unchecked(raw.cast_mut()) };
        // INVARIANT: This counts as the owner that `into_raw` gave away.
        Self(object)
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        // SAFETY: By the invariant it is from `nvpm_shared_new`, and not freed while this owner exists.
        unsafe { nvpm_shared_get(self.0.as_ptr().cast()) };
        // INVARIANT: An owner was just added.
        Self(self.0)
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the invariant this points to a valid, aligned object, which lives as long as this
        // owner. Owners only give out shared references to it, until the last owner drops it.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant the object is from `nvpm_shared_new`, and this is one of its owners,
        // which is removed once. If it was the last one, no other owner can use the object: it is
        // dropped once, and its memory is freed after that.
        unsafe {
            if nvpm_shared_put(self.0.as_ptr().cast()) {
                self.0.as_ptr().drop_in_place();
                nvpm_shared_free(self.0.as_ptr().cast());
            }
        }
    }
}

/// The class of a lock, for a kernel that checks in which order locks are taken: it tells classes
/// apart by their addresses.
#[doc(hidden)]
pub type LockClass = [u64; 2];

/// A state that one thread at a time sees, in an [`Arc`].
///
/// # Invariants
///
/// It is the object of an [`Arc`], so a lock is in front of it. A thread that uses the state holds
/// that lock, or is the last owner, which drops it.
pub struct SpinLock<T>(UnsafeCell<T>);

// SAFETY: One thread at a time uses the state, so `T: Send` is enough. The lock is C's.
unsafe impl<T: Send> Send for SpinLock<T> {}
// SAFETY: A shared reference gives the state to one thread at a time, so `T: Send` is enough.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    /// Waits for the lock without sleeping, and takes it. The thread must not sleep while it holds it.
    pub fn lock(&self) -> Guard<'_, T> {
        // SAFETY: By the invariant this is the object of an `Arc`, which the borrow keeps alive. A
        // thread that takes the lock twice, or sleeps with it, deadlocks; the kernel can report that,
        // and it is not unsound.
        unsafe { nvpm_shared_lock(ptr::from_ref(self).cast()) };
        // INVARIANT: This thread has just locked it.
        Guard {
            lock: self,
            of_this_thread: PhantomData,
        }
    }
}

/// The state and the class of a [`SpinLock`] that has no memory yet.
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

/// Smart pointers to objects that are made in place.
pub trait InPlaceInit<New>: Sized {
    /// Makes it.
    fn pin_init(new: New, flags: Flags) -> Result<Self>;
}

impl<T> InPlaceInit<NewSpinLock<T>> for Arc<SpinLock<T>> {
    fn pin_init(new: NewSpinLock<T>, _: Flags) -> Result<Self> {
        // INVARIANT: `SpinLock`s are made here only, and move into an `Arc` at once.
        let lock = SpinLock(UnsafeCell::new(new.0));
        Ok(Self::with_class(lock, new.1)?)
    }
}

/// The state of a [`SpinLock`], for as long as this lives.
///
/// # Invariants
///
/// This thread holds the lock.
#[must_use = "the lock is released at once"]
pub struct Guard<'a, T> {
    lock: &'a SpinLock<T>,
    of_this_thread: PhantomData<*const ()>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the invariant this thread holds the lock. So no other thread has a `Guard` of the
        // state, and this thread has no second one: taking the lock twice does not return.
        unsafe { &*self.lock.0.get() }
    }
}

impl<T: Unpin> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the invariant this thread holds the lock, so this is the only `Guard` of the
        // state, and `&mut self` borrows it exclusively.
        unsafe { &mut *self.lock.0.get() }
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the invariant of `SpinLock` it is the object of an `Arc`, which the borrow in
        // `self` keeps alive; by that of `Guard` this thread holds the lock.
        unsafe { nvpm_shared_unlock(ptr::from_ref(self.lock).cast()) };
    }
}
