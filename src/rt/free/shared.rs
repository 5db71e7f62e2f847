// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share. Of each such object C keeps the number of owners, a lock and a queue of
//! those who wait, in front of it in the same memory.

use core::{
    cell::UnsafeCell,
    mem::{
        forget,
        size_of, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin,
    ptr::NonNull, //
};

use super::memory::Memory;
use crate::{
    abi,
    errno::Errno,
    ffi::c_void, //
};

/// Shared ownership.
///
/// # Invariants
///
/// Points to a `T` that `nvpm_shared_new` gave the memory for, and counts as one of its owners.
pub(crate) struct Arc<T>(NonNull<T>);

// SAFETY: Any thread may look at what has several owners, and the last one drops it.
unsafe impl<T: Send + Sync> Send for Arc<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for Arc<T> {}

impl<T> Arc<T> {
    /// Gives this owner's part away, to be taken back with [`Self::from_raw`].
    pub(crate) fn into_raw(this: Self) -> *const T {
        let place = this.0.as_ptr().cast_const();
        forget(this);
        place
    }

    /// # Safety
    ///
    /// `place` must be from [`Self::into_raw`], which is taken back once.
    pub(crate) unsafe fn from_raw(place: *const T) -> Self {
        // SAFETY: By this function's requirement it came out of a `NonNull`.
        let place = unsafe { NonNull::new_unchecked(place.cast_mut()) };
        // INVARIANT: This counts as the owner that `into_raw` gave away.
        Self(place)
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_shared_get(self.0.as_ptr().cast()) };
        // INVARIANT: One more is counted.
        Self(self.0)
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type's invariant it is there while this is; nobody changes it as a whole.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Arc<T> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant this is an owner, for the last time. Whoever is told to
        // have been the last one is alone with the object.
        unsafe {
            if abi::nvpm_shared_put(self.0.as_ptr().cast()) {
                self.0.as_ptr().drop_in_place();
                abi::nvpm_shared_free(self.0.as_ptr().cast());
            }
        }
    }
}

/// Something that threads share: a part that never changes, and a state behind a lock, whose
/// changes threads can wait for.
///
/// # Invariants
///
/// `shared` is what `nvpm_shared_new` gave for this object; whoever looks at the state holds the
/// lock that is there.
pub(crate) struct Monitor<S, T> {
    shared: NonNull<c_void>,
    state: UnsafeCell<T>,
    // Last, so that it is dropped last: it may hold what keeps this code in memory.
    fixed: S,
}

// SAFETY: The pointer is for functions that any thread may call; the rest may go to any thread.
unsafe impl<S: Send, T: Send> Send for Monitor<S, T> {}
// SAFETY: One thread at a time looks at the state.
unsafe impl<S: Sync, T: Send> Sync for Monitor<S, T> {}

impl<S, T> Monitor<S, T> {
    /// Shares what never changes and the first state.
    pub(crate) fn new(fixed: S, state: T) -> Result<Arc<Self>, Errno> {
        let () = Memory::<Self>::SUITS;
        // SAFETY: Called where sleeping is allowed.
        let shared = unsafe { abi::nvpm_shared_new(size_of::<Self>()) };
        let shared = NonNull::new(shared).ok_or(Errno::NOMEM)?;
        let place = shared.cast::<Self>();
        // INVARIANT: In that very memory, where nobody holds the lock or looks at the state yet.
        let this = Self {
            shared,
            state: UnsafeCell::new(state),
            fixed,
        };
        // SAFETY: Nobody else has this memory, which is large enough and suits it.
        unsafe { place.as_ptr().write(this) };
        // INVARIANT: C counts one owner at first.
        Ok(Arc(place))
    }

    /// The part that never changes, nor its place.
    pub(crate) fn fixed(&self) -> Pin<&S> {
        // SAFETY: [`Self::new`] makes each of these where its owners have it, and it stays there.
        unsafe { Pin::new_unchecked(&self.fixed) }
    }

    /// The state.
    pub(crate) fn lock(&self) -> Held<'_, T> {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_shared_lock(self.shared.as_ptr()) };
        // INVARIANT: Just locked.
        Held {
            shared: self.shared,
            state: &self.state,
        }
    }

    /// Lets go of the lock until somebody calls [`Self::notify`], or for no reason; then takes it.
    pub(crate) fn wait(&self, held: &mut Held<'_, T>) {
        // SAFETY: By the invariant of `Held` this thread holds the lock, as it does when the call
        // returns. Nobody looks at the state through `held` meanwhile.
        unsafe { abi::nvpm_shared_wait(held.shared.as_ptr()) };
    }

    /// Lets go of the lock and wakes all who wait for the state to change. Mostly nobody does, and
    /// that costs nothing.
    pub(crate) fn notify(&self, held: Held<'_, T>) {
        drop(held);
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_shared_wake(self.shared.as_ptr()) };
    }
}

/// The state of a [`Monitor`], for as long as this lives. Nobody sleeps meanwhile.
///
/// # Invariants
///
/// This thread, to which the pointer binds it, holds the lock of `shared`: that of the state.
pub(crate) struct Held<'a, T> {
    shared: NonNull<c_void>,
    state: &'a UnsafeCell<T>,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: By the type's invariant nobody else looks.
        unsafe { &*self.state.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type's invariant nobody else looks, and this borrows the only `Held`.
        unsafe { &mut *self.state.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_shared_unlock(self.shared.as_ptr()) };
    }
}
