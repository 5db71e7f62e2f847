// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Counters: what is registered now, and what has happened since the module was loaded.
//!
//! `enum nvpm_counter` of `c/nvpm.h` says which there are; `c/statistics.c` has them, and shows them below
//! `/sys/module/nv_peer_mem/statistics`.

use kernel::prelude::*;

use crate::{
    abi::{self, nvpm_counter},
    atomic::{AtomicU64, Ordering},
    errno::{edquot, eopnotsupp},
};

extern "C" {
    /// C only reads them, each by one access. (What bindgen makes of them is not atomic.)
    static nvpm_counters: [AtomicU64; abi::NVPM_COUNTERS as usize];
}

/// Adds to a counter, modulo 2^64.
pub(crate) fn add(counter: nvpm_counter, by: u64) {
    // SAFETY: C defines so many aligned 64-bit numbers, which only this function changes.
    if let Some(counter) = unsafe { nvpm_counters.get(counter as usize) } {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

/// Subtracts from a counter, modulo 2^64.
pub(crate) fn sub(counter: nvpm_counter, by: u64) {
    add(counter, by.wrapping_neg());
}

/// A device can reach a registration of so many pinned bytes.
pub(crate) fn mapped(bytes: u64) {
    add(abi::NVPM_COUNT_REACHABLE_REGIONS, 1);
    add(abi::NVPM_COUNT_BYTES, bytes);
}

/// It cannot any more.
pub(crate) fn unmapped(bytes: u64) {
    sub(abi::NVPM_COUNT_REACHABLE_REGIONS, 1);
    sub(abi::NVPM_COUNT_BYTES, bytes);
}

/// A registration of GPU memory has failed, and the user sees this error. Memory that is not the
/// GPU's is no failure: the core asks about all memory that it cannot pin itself.
pub(crate) fn failed(error: &Error) {
    let cause = match *error {
        error if error == ENOMEM => abi::NVPM_COUNT_FAILED_NO_MEMORY,
        error if error == eopnotsupp() => abi::NVPM_COUNT_FAILED_NOT_SUPPORTED,
        error if error == EFAULT => abi::NVPM_COUNT_FAILED_FREED,
        error if error == edquot() => abi::NVPM_COUNT_FAILED_ORPHANS,
        _ => abi::NVPM_COUNT_FAILED_DRIVER,
    };
    add(cause, 1);
}
