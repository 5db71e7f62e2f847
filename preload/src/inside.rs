// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The state of a thread that translates a registration.

use core::ffi::{c_uint, c_void};
use core::ptr::{null, NonNull};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::libc;

/// The key of a value that each thread has. A value other than NULL says that the thread is at work
/// in the library.
static KEY: AtomicU32 = AtomicU32::new(c_uint::MAX);

/// Creates the key, once, before there are threads.
pub(crate) fn create_key() {
    let mut key = c_uint::MAX;
    // SAFETY: there is room for the key, and the values need no destructor.
    unsafe { libc::pthread_key_create(&raw mut key, null()) };
    KEY.store(key, Ordering::Relaxed);
}

/// The thread is at work in the library until this is dropped. A registration that libcuda or
/// libibverbs make in the meantime gets the real answer.
pub(crate) struct Inside;

impl Inside {
    /// Returns nothing if the thread is at work here already.
    pub(crate) fn enter() -> Option<Self> {
        let key = KEY.load(Ordering::Relaxed);
        // SAFETY: a thread has the value NULL for a key that there is not.
        if !unsafe { libc::pthread_getspecific(key) }.is_null() {
            return None;
        }
        let some = NonNull::<c_void>::dangling();
        // SAFETY: nothing reads memory at this address.
        (unsafe { libc::pthread_setspecific(key, some.as_ptr()) } == 0).then_some(Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // SAFETY: as in `enter`.
        unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), null()) };
    }
}
