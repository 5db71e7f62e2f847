// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Counters of registrations that exist now, and of events since the module was loaded.
//!
//! `enum nvpm_counter` in `c/nvpm.h` lists the counters. `c/statistics.c` defines the counters and
//! shows them below `/sys/module/nv_peer_mem/statistics`.

use kernel::prelude::*;

use crate::{
    abi::{self, nvpm_counter},
    atomic::{AtomicU64, Ordering},
    errno::{edquot, eopnotsupp},
};

extern "C" {
    /// The counters, which C only reads, each by one access. They are declared here because
    /// bindgen's declaration is not atomic.
    static nvpm_counters: [AtomicU64; abi::NVPM_COUNTERS as usize];
}

/// Adds to a counter, modulo 2^64.
pub(crate) fn add(counter: nvpm_counter, by: u64) {
    // SAFETY: C defines so many aligned 64-bit numbers, and only this function changes them.
    if let Some(counter) = unsafe { nvpm_counters.get(counter as usize) } {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

/// Subtracts from a counter, modulo 2^64.
pub(crate) fn sub(counter: nvpm_counter, by: u64) {
    add(counter, by.wrapping_neg());
}

/// Counts a registration of so many pinned bytes that a device can reach.
pub(crate) fn mapped(bytes: u64) {
    add(abi::NVPM_COUNT_REACHABLE_REGIONS, 1);
    add(abi::NVPM_COUNT_BYTES, bytes);
}

/// Stops counting a registration that a device cannot reach any more.
pub(crate) fn unmapped(bytes: u64) {
    sub(abi::NVPM_COUNT_REACHABLE_REGIONS, 1);
    sub(abi::NVPM_COUNT_BYTES, bytes);
}

/// Counts a registration of GPU memory that has failed with an error for the user. Other memory
/// does not count as a failure, because the core asks about all memory that it cannot pin itself.
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
