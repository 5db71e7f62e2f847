// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What of the C library is called.

use core::ffi::{c_char, c_int, c_uint, c_void};

pub(crate) const ENOMEM: c_int = 12;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const ENFILE: c_int = 23;
pub(crate) const EMFILE: c_int = 24;
pub(crate) const EOPNOTSUPP: c_int = 95;

pub(crate) const RTLD_LAZY: c_int = 1;
pub(crate) const RTLD_NOLOAD: c_int = 4;

// The last two are parts of the first since glibc 2.34.
#[link(name = "c")]
#[link(name = "dl")]
#[link(name = "pthread")]
#[rustfmt::skip]
extern "C" {
    /// Ends the process.
    pub(crate) fn abort() -> !;
    /// A variable of the environment, or NULL.
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    /// Prints to a descriptor.
    pub(crate) fn dprintf(fd: c_int, format: *const c_char, ...) -> c_int;
    /// The size of a page of the host.
    pub(crate) fn getpagesize() -> c_int;
    /// A new descriptor, or -1.
    pub(crate) fn eventfd(value: c_uint, flags: c_int) -> c_int;
    /// Closes a descriptor.
    pub(crate) fn close(fd: c_int) -> c_int;
    /// With `RTLD_NOLOAD`: a reference to a library that is loaded already, or NULL.
    pub(crate) fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    /// Gives such a reference back.
    pub(crate) fn dlclose(library: *mut c_void) -> c_int;
    /// The function of that name in a library.
    pub(crate) fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    /// The same, of one version of the name.
    pub(crate) fn dlvsym(library: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    /// A new key for a value that each thread has of its own, NULL at first.
    pub(crate) fn pthread_key_create(key: *mut c_uint, destructor: *const c_void) -> c_int;
    /// This thread's value.
    pub(crate) fn pthread_getspecific(key: c_uint) -> *mut c_void;
    /// Sets this thread's value.
    pub(crate) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    /// Where this thread's error number is.
    fn __errno_location() -> *mut c_int;
}

/// Why the last call failed.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library has one for each thread, always.
    let location = unsafe { __errno_location() };
    // SAFETY: as above; no other thread uses it.
    unsafe { *location }
}

/// What the caller will find.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: as in `errno`.
    let location = unsafe { __errno_location() };
    // SAFETY: as in `errno`.
    unsafe { *location = errno }
}

/// A descriptor, closed when dropped.
pub(crate) struct Fd(pub(crate) c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: nobody else has it.
        unsafe { close(self.0) };
    }
}
