// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Whether this thread is already at work here: what libcuda or libibverbs registers meanwhile
//! gets the real answer.

use core::ffi::{c_uint, c_void};
use core::ptr::{null, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::libc;

/// The key of a value that is NULL in threads that are not.
static KEY: AtomicU32 = AtomicU32::new(c_uint::MAX);

/// Creates the key, once, before there are threads.
pub(crate) fn create_key() {
    let mut key = c_uint::MAX;
    // SAFETY: there is room for the key, and the values need no destructor.
    unsafe { libc::pthread_key_create(&raw mut key, null()) };
    KEY.store(key, Ordering::Relaxed);
}

/// Until this is dropped.
pub(crate) struct Inside;

impl Inside {
    /// Nothing if the thread is already.
    pub(crate) fn enter() -> Option<Self> {
        let key = KEY.load(Ordering::Relaxed);
        // SAFETY: an impossible key has no values.
        if !unsafe { libc::pthread_getspecific(key) }.is_null() {
            return None;
        }
        let some = NonNull::<c_void>::dangling();
        // SAFETY: as above; nobody follows the value.
        (unsafe { libc::pthread_setspecific(key, some.as_ptr()) } == 0).then_some(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: as in `enter`.
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), null()) };
    }
}
