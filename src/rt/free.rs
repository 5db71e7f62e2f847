// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground *free*: nothing but `core`, and functions of C that every kernel gives to every
//! module (`free.c`).

pub(crate) mod ffi;
mod load;
mod log;
mod memory;
mod shared;

pub(crate) use load::{
    module,
    Loaded, //
};
pub(crate) use log::{
    pr_err,
    pr_info,
    pr_warn,
    print, //
};
pub(crate) use memory::{
    KBox,
    KVVec,
    GFP_KERNEL, //
};
pub(crate) use shared::{
    Arc,
    Monitor, //
};

use super::{
    Module,
    Watched, //
};
use crate::abi;

/// Bytes of a page of the kernel.
pub(crate) fn page_size() -> u64 {
    // SAFETY: C defines it as a constant.
    unsafe { abi::nvpm_page_size }
}

/// The calling process, as the NVIDIA driver tells processes apart.
pub(crate) fn process() -> i32 {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_process() }
}

/// The calling thread.
pub(crate) fn thread() -> i32 {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_thread() }
}
