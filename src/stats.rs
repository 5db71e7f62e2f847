// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The counters of this module. Some count the registrations that exist now, and the others count
//! events since the module was loaded.
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
    /// The counters. C only reads them, each by one access. Bindgen's declaration is not used,
    /// because its type is not atomic.
    static nvpm_counters: [AtomicU64; abi::NVPM_COUNTERS as usize];
}

/// Adds to a counter, modulo 2^64.
pub(crate) fn add(counter: nvpm_counter, by: u64) {
    // SAFETY: C defines an array of `NVPM_COUNTERS` aligned 64-bit numbers, and only this function
    // changes them.
    if let Some(counter) = unsafe { nvpm_counters.get(counter as usize) } {
        counter.fetch_add(by, Ordering::Relaxed);
    }
}

/// Subtracts from a counter, modulo 2^64.
pub(crate) fn sub(counter: nvpm_counter, by: u64) {
    add(counter, by.wrapping_neg());
}

/// Counts a registration that a device can reach from now on, with `bytes` pinned bytes.
pub(crate) fn mapped(bytes: u64) {
    add(abi::NVPM_COUNT_REACHABLE_REGIONS, 1);
    add(abi::NVPM_COUNT_BYTES, bytes);
}

/// Stops counting a registration with `bytes` pinned bytes, because no device can reach it any
/// more.
pub(crate) fn unmapped(bytes: u64) {
    sub(abi::NVPM_COUNT_REACHABLE_REGIONS, 1);
    sub(abi::NVPM_COUNT_BYTES, bytes);
}

/// Counts a registration of GPU memory that has failed with `error`, which the user sees. The
/// clients return no error for other memory, so other memory is not counted.
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
