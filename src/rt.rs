// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground that the module stands on: what it takes from the kernel crate, and from C where
//! the crate has nothing, in one place. Differences between kernel versions live here.

use super::abi;

pub(crate) use kernel::{
    alloc::flags::GFP_KERNEL,
    ffi, new_condvar, new_spinlock,
    prelude::{pin_data, pin_init, pr_warn, InPlaceInit, KBox, KVVec},
    sync::{Arc, CondVar, SpinLock},
};

/// Prints a warning unless there were too many of late: for paths that a user can take at will.
macro_rules! complain {
    ($($arg:tt)*) => {
        if $crate::rt::may_complain() {
            $crate::rt::pr_warn!($($arg)*)
        }
    };
}
pub(crate) use complain;

/// Whether one more line in the kernel's log is all right.
pub(crate) fn may_complain() -> bool {
    // SAFETY: Takes no arguments and may be called from any context.
    unsafe { abi::nvpm_may_complain() }
}

/// Bytes of a page of the kernel.
pub(crate) fn page_size() -> u64 {
    // Lossless: `usize` has at most 64 bits.
    kernel::page::PAGE_SIZE as u64
}

/// The calling process, as the NVIDIA driver tells processes apart.
pub(crate) fn process() -> i32 {
    kernel::current!().group_leader().pid()
}

/// The calling thread.
pub(crate) fn thread() -> i32 {
    kernel::current!().pid()
}

/// A reference to this module: while there is one, the module is not unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// A reference, unless the module is about to go.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: Takes no arguments; the module is at least still running this code.
        unsafe { abi::nvpm_module_get() }.then_some(Self(()))
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: Gives back the one reference that `get` took for this object.
        unsafe { abi::nvpm_module_put() };
    }
}

/// The module's parameters, as they were when it was loaded.
pub(crate) struct Parameters {
    pub(crate) peerdirect_support: u32,
    pub(crate) persistent_api_support: u32,
}

/// Reads the module's parameters.
pub(crate) fn parameters() -> Parameters {
    // SAFETY: The parameters have no write permission: nothing changes them after loading.
    unsafe {
        Parameters {
            peerdirect_support: abi::nvpm_peerdirect_support,
            persistent_api_support: abi::nvpm_persistent_api_support,
        }
    }
}
