// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Counters under `/sys/module/nv_peer_mem/statistics`: what is registered now, and what has happened
//! since the module was loaded.

use core::ffi::CStr;

use kernel::prelude::*;

use crate::{
    abi::{edquot, eopnotsupp, ffi::c_char},
    atomic::{AtomicU64, Ordering},
};

/// A counter, which C reads as `struct nvpm_counter`.
///
/// # Invariants
///
/// `name` is that of a `'static` [`CStr`].
#[repr(C)]
pub(crate) struct Counter {
    name: *const c_char,
    value: AtomicU64,
}

// SAFETY: The pointer is to a text that never changes; the value is atomic.
unsafe impl Sync for Counter {}

impl Counter {
    const fn new(name: &'static CStr) -> Self {
        // INVARIANT: The name is `'static`.
        Self {
            name: name.as_ptr().cast(),
            value: AtomicU64::new(0),
        }
    }

    /// Adds modulo 2^64.
    pub(crate) fn add(&self, by: u64) {
        self.value.fetch_add(by, Ordering::Relaxed);
    }

    /// Subtracts modulo 2^64.
    pub(crate) fn sub(&self, by: u64) {
        self.value.fetch_sub(by, Ordering::Relaxed);
    }
}

static REGIONS: Counter = Counter::new(c"regions");
static BYTES: Counter = Counter::new(c"bytes");
pub(crate) static REGISTRATIONS: Counter = Counter::new(c"registrations");
pub(crate) static REVOCATIONS: Counter = Counter::new(c"revocations");
static FAILED_NO_MEMORY: Counter = Counter::new(c"failed_no_memory");
static FAILED_NOT_SUPPORTED: Counter = Counter::new(c"failed_not_supported");
static FAILED_FREED: Counter = Counter::new(c"failed_freed");
static FAILED_DRIVER: Counter = Counter::new(c"failed_driver");
static FAILED_LEFT_BEHIND: Counter = Counter::new(c"failed_left_behind");
pub(crate) static LEFT_BEHIND: Counter = Counter::new(c"left_behind");

/// All of them, in the order of their files.
pub(crate) static COUNTERS: [&Counter; 10] = [
    &REGIONS,
    &BYTES,
    &REGISTRATIONS,
    &REVOCATIONS,
    &FAILED_NO_MEMORY,
    &FAILED_NOT_SUPPORTED,
    &FAILED_FREED,
    &FAILED_DRIVER,
    &FAILED_LEFT_BEHIND,
    &LEFT_BEHIND,
];

/// A device can reach a region of so many pinned bytes.
pub(crate) fn mapped(bytes: u64) {
    REGIONS.add(1);
    BYTES.add(bytes);
}

/// It cannot any more.
pub(crate) fn unmapped(bytes: u64) {
    REGIONS.sub(1);
    BYTES.sub(bytes);
}

/// A registration of GPU memory has failed, and the user sees this error. Memory that is not the
/// GPU's is no failure: the core asks about all memory that it cannot pin itself.
pub(crate) fn failed(error: &Error) {
    let cause = match *error {
        error if error == ENOMEM => &FAILED_NO_MEMORY,
        error if error == eopnotsupp() => &FAILED_NOT_SUPPORTED,
        error if error == EFAULT => &FAILED_FREED,
        error if error == edquot() => &FAILED_LEFT_BEHIND,
        _ => &FAILED_DRIVER,
    };
    cause.add(1);
}
