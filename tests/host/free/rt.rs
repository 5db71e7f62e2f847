// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's ground, put together as `rt.rs` and `rt/free.rs` do it.

use crate::errno::Errno;

#[path = "../../../src/rt/free/load.rs"]
mod load;
#[path = "../../../src/rt/free/log.rs"]
mod log;
#[path = "../../../src/rt/free/memory.rs"]
mod memory;
#[path = "../../../src/rt/free/shared.rs"]
mod shared;

pub(crate) use load::{module, Loaded};
pub(crate) use log::{pr_err, print};
pub(crate) use memory::{AllocError, KBox, KVVec, GFP_KERNEL};
pub(crate) use shared::{Arc, Monitor};

/// C's types, as the kernel has them.
#[allow(non_camel_case_types)]
pub(crate) mod ffi {
    pub(crate) use core::ffi::c_void;
    pub(crate) type c_char = u8;
    pub(crate) type c_int = i32;
    pub(crate) type c_uint = u32;
    pub(crate) type c_ulong = usize;
    pub(crate) type c_ulonglong = u64;
}

pub(crate) trait Module: Sized + Send + Sync + 'static {
    fn load() -> Result<Self, Errno>;
}

struct Watched<T> {
    state: T,
    awaited: bool,
}
