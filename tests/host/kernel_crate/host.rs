// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What tests ask of the stand-in for the kernel, and what they want to know of it.

use std::{
    ffi::{c_char, c_int, c_long, CStr},
    sync::atomic::{AtomicUsize, Ordering},
};

extern "C" {
    fn host_said() -> *const c_char;
    fn host_fail(number: c_long);
    fn host_allocations() -> c_long;
    static host_init: extern "C" fn() -> c_int;
    static host_exit: extern "C" fn();
}

/// What this thread has printed last.
pub(crate) fn said() -> String {
    // SAFETY: A text of this thread's.
    unsafe { CStr::from_ptr(host_said()) }
        .to_str()
        .unwrap()
        .to_owned()
}

/// The allocation of this thread with that number, the next being 1, fails; with 0 none.
pub(crate) fn fail(number: c_long) {
    // SAFETY: A number of this thread's.
    unsafe { host_fail(number) };
}

/// How many times this thread has allocated memory.
pub(crate) fn allocations() -> c_long {
    // SAFETY: A number of this thread's.
    unsafe { host_allocations() }
}

/// The kernel loads the module.
pub(crate) fn init() -> c_int {
    // SAFETY: C has set it, and never changes it.
    unsafe { host_init() }
}

/// The kernel unloads the module.
pub(crate) fn exit() {
    // SAFETY: As above.
    unsafe { host_exit() }
}

/// Something that counts how many of it there are.
#[derive(Debug)]
pub(crate) struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    pub(crate) fn new(live: &'a AtomicUsize) -> Self {
        live.fetch_add(1, Ordering::Relaxed);
        Self(live)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
