// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground *free*: nothing but `core`, and functions of C that every kernel gives to every
//! module (`free.c`).

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

/// C's types, as the kernel has them: its `char` is unsigned, its `long` as wide as a pointer.
#[allow(non_camel_case_types)]
pub(crate) mod ffi {
    pub(crate) use core::ffi::c_void;
    pub(crate) type c_char = u8;
    pub(crate) type c_uchar = u8;
    pub(crate) type c_int = i32;
    pub(crate) type c_uint = u32;
    pub(crate) type c_ulong = usize;
    pub(crate) type c_ulonglong = u64;
}

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
