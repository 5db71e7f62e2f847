// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Records whether a thread is executing code of this library. The library must not handle the
//! registrations that libcuda and libibverbs make while the library calls them.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::{null, null_mut};
use core::sync::atomic::{AtomicU32, Ordering};

use crate::libc;

/// The key of a value that each thread has for itself. The value is a number. Its lowest bit is set
/// while the thread is executing code of the library. The other bits count how often the thread has
/// entered the library.
static KEY: AtomicU32 = AtomicU32::new(c_uint::MAX);

const AT_WORK: usize = 1;
const ONCE: usize = 2;

/// Creates the key. This function is called once, before the process has several threads.
pub(crate) fn create_key() {
    let mut key = c_uint::MAX;
    // SAFETY: there is room for the key, and the values need no destructor.
    unsafe { libc::pthread_key_create(&raw mut key, null()) };
    KEY.store(key, Ordering::Relaxed);
}

fn number() -> usize {
    // SAFETY: a thread has the value NULL for a key that does not exist.
    unsafe { libc::pthread_getspecific(KEY.load(Ordering::Relaxed)) as usize }
}

/// Stores the thread's number. Returns false if the C library has no memory for the value. The
/// caller's error number stays, because the program may receive it as the real function's.
fn set_number(number: usize) -> bool {
    let before = libc::errno();
    let value = number as *const c_void;
    // SAFETY: nothing reads memory at this address.
    let failed = unsafe { libc::pthread_setspecific(KEY.load(Ordering::Relaxed), value) } != 0;
    libc::set_errno(before);
    !failed
}

/// Returns how often this thread has entered the library.
pub(crate) fn times() -> usize {
    number() / ONCE
}

/// While this object exists, the thread is executing code of the library. If libcuda or libibverbs
/// register memory in the meantime, they receive the real answer without a translation.
///
/// While this object exists, the thread cannot be cancelled. The library calls `close()`, which is
/// a cancellation point, but `ibv_reg_mr()` must not be one.
pub(crate) struct Inside {
    /// The value that `pthread_setcancelstate()` had before.
    cancellation: c_int,
}

impl Inside {
    /// Returns `None` if the thread is already executing code of the library.
    pub(crate) fn enter() -> Option<Self> {
        let number = number();
        if number & AT_WORK != 0 || !set_number((number + ONCE) | AT_WORK) {
            return None;
        }
        let mut cancellation = 0;
        // SAFETY: there is room for the old state.
        unsafe {
            libc::pthread_setcancelstate(libc::PTHREAD_CANCEL_DISABLE, &raw mut cancellation)
        };
        Some(Self { cancellation })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        set_number(number() & !AT_WORK);
        // SAFETY: the pointer for the old state may be NULL in glibc.
        unsafe { libc::pthread_setcancelstate(self.cancellation, null_mut()) };
    }
}
