// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What of libibverbs is called: `infiniband/verbs.h`, and the versions of its names.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;

use crate::libc;
use crate::loaded::Function;

pub(crate) const ACCESS_MW_BIND: c_uint = 1 << 4;
pub(crate) const ACCESS_ZERO_BASED: c_uint = 1 << 5;
pub(crate) const ACCESS_ON_DEMAND: c_uint = 1 << 6;
pub(crate) const ACCESS_HUGETLB: c_uint = 1 << 7;
/// Flags that a kernel may ignore, and the one of them that it knows of dma-bufs.
pub(crate) const ACCESS_OPTIONAL: c_uint = 0x3ff0_0000;
pub(crate) const ACCESS_RELAXED_ORDERING: c_uint = 1 << 20;

/// Which members of `MrInitAttr` the caller has filled in, beside the first two.
pub(crate) const MASK_ADDR: u64 = 2;
pub(crate) const MASK_ADDR_AND_IOVA: u64 = 2 + 1;

/// `struct ibv_pd`, of which nothing is read.
#[repr(C)]
pub struct Pd {
    _opaque: [u8; 0],
}

/// `struct ibv_mr`.
#[repr(C)]
pub struct Mr {
    context: *mut c_void,
    pd: *mut Pd,
    /// What was registered, as the caller sees it.
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    handle: u32,
    lkey: u32,
    rkey: u32,
}

/// The beginning of `struct ibv_mr_init_attr`, which only grows.
#[repr(C)]
pub struct MrInitAttr {
    pub(crate) length: usize,
    /// An `int` in C, which is as large.
    pub(crate) access: c_uint,
    pub(crate) comp_mask: u64,
    pub(crate) iova: u64,
    pub(crate) addr: *mut c_void,
}

/// A registration that a caller wants.
pub(crate) struct Request {
    pub(crate) pd: *mut Pd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    pub(crate) iova: u64,
    pub(crate) access: c_uint,
}

type RegMrIova2 = unsafe extern "C" fn(*mut Pd, *mut c_void, usize, u64, c_uint) -> *mut Mr;
type RegMrEx = unsafe extern "C" fn(*mut Pd, *mut MrInitAttr) -> *mut Mr;
type RegDmabufMr = unsafe extern "C" fn(*mut Pd, u64, usize, u64, c_int, c_int) -> *mut Mr;

/// Defines a function of libibverbs.
macro_rules! verb {
    ($static:ident: $type:ty = $name:literal, $version:literal) => {
        pub(crate) static $static: Function<$type> =
            // SAFETY: verbs.h declares it so.
            unsafe { Function::new(c"libibverbs.so.1", $name, Some($version)) };
    };
}

verb!(REG_MR_IOVA2: RegMrIova2 = c"ibv_reg_mr_iova2", c"IBVERBS_1.8");
verb!(REG_MR_EX: RegMrEx = c"ibv_reg_mr_ex", c"IBVERBS_1.15");
verb!(REG_DMABUF_MR: RegDmabufMr = c"ibv_reg_dmabuf_mr", c"IBVERBS_1.12");

/// The answer where libibverbs is not in the process or older than the verb: a program asked for
/// the name alone and was given the one of this library.
#[cold]
pub(crate) fn missing() -> *mut Mr {
    libc::set_errno(libc::EOPNOTSUPP);
    null_mut()
}
