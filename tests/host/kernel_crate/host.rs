// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Controls `kernel.c`, which replaces the kernel, and reports its state to the tests.

use std::{
    ffi::{c_char, c_int, c_long, CStr},
    sync::atomic::{AtomicUsize, Ordering},
};

extern "C" {
    fn host_said() -> *const c_char;
    fn host_fail(number: c_long);
    fn host_allocations() -> c_long;
    fn host_last_size() -> c_long;
    static host_init: extern "C" fn() -> c_int;
    static host_exit: extern "C" fn();
}

/// Returns the last line that this thread has printed.
pub(crate) fn said() -> String {
    // SAFETY: The text belongs to this thread, which changes it only by printing.
    unsafe { CStr::from_ptr(host_said()) }
        .to_str()
        .unwrap()
        .to_owned()
}

/// Makes an allocation of this thread fail. The number 1 stands for the next allocation, 2 for the
/// one after that, and so on. With the number 0 all allocations succeed.
pub(crate) fn fail(number: c_long) {
    // SAFETY: The call only sets a number of this thread.
    unsafe { host_fail(number) };
}

/// Returns how many times this thread has allocated memory.
pub(crate) fn allocations() -> c_long {
    // SAFETY: The call only reads a number of this thread.
    unsafe { host_allocations() }
}

/// Returns the size of the last allocation of this thread, in bytes.
pub(crate) fn last_size() -> c_long {
    // SAFETY: The call only reads a number of this thread.
    unsafe { host_last_size() }
}

/// Loads the module, as the kernel does.
pub(crate) fn init() -> c_int {
    // SAFETY: C sets the pointer at compile time, and never changes it.
    unsafe { host_init() }
}

/// Unloads the module, as the kernel does.
pub(crate) fn exit() {
    // SAFETY: C sets the pointer at compile time, and never changes it.
    unsafe { host_exit() }
}

/// A value for tests. It refers to a counter, which counts the values of this type that exist.
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
