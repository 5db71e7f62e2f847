// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What is counted for an administrator to read, under `/sys/module/nv_peer_mem/statistics`
//! (`sysfs.c`): what is registered now, and what has happened since the module was loaded.

use super::{
    abi,
    errno::Errno,
    rt::count, //
};

/// A region that a device can reach, counted for as long as this lives.
pub(crate) struct Reachable {
    bytes: u64,
}

impl Reachable {
    /// Counts a region with `bytes` of pinned GPU memory.
    pub(crate) fn new(bytes: u64) -> Self {
        count(abi::NVPM_REGIONS, 1);
        count(abi::NVPM_BYTES, bytes);
        Self { bytes }
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        count(abi::NVPM_REGIONS, 1u64.wrapping_neg());
        count(abi::NVPM_BYTES, self.bytes.wrapping_neg());
    }
}

/// A registration has succeeded.
pub(crate) fn registered() {
    count(abi::NVPM_REGISTRATIONS, 1);
}

/// A registration has ended because its memory was freed.
pub(crate) fn revoked() {
    count(abi::NVPM_REVOCATIONS, 1);
}

/// A registration of GPU memory has failed, and the user sees this error. Memory that is not the
/// GPU's is no failure: the core asks about all memory that it cannot pin itself.
pub(crate) fn failed(errno: &Errno) {
    let cause = match *errno {
        Errno::NOMEM => abi::NVPM_FAILED_NO_MEMORY,
        Errno::OPNOTSUPP => abi::NVPM_FAILED_NOT_SUPPORTED,
        Errno::FAULT => abi::NVPM_FAILED_FREED,
        Errno::DQUOT => abi::NVPM_FAILED_LEFT_BEHIND,
        _ => abi::NVPM_FAILED_DRIVER,
    };
    count(cause, 1);
}
