// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The functions of libcuda and libibverbs that this program uses. A larger program would
//! generate these declarations with bindgen from cuda.h and infiniband/verbs.h.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int, c_void};

pub const LOCAL_WRITE: c_int = 1;
pub const REMOTE_WRITE: c_int = 2;
pub const REMOTE_READ: c_int = 4;

pub const EFAULT: i32 = 14;

pub type CUresult = u32;
pub type CUcontext = *mut c_void;

#[link(name = "cuda")]
extern "C" {
    pub fn cuInit(flags: u32) -> CUresult;
    pub fn cuCtxCreate_v2(context: *mut CUcontext, flags: u32, device: c_int) -> CUresult;
    pub fn cuCtxDestroy_v2(context: CUcontext) -> CUresult;
    pub fn cuMemAlloc_v2(address: *mut u64, size: usize) -> CUresult;
    pub fn cuMemFree_v2(address: u64) -> CUresult;
    pub fn cuGetErrorName(result: CUresult, name: *mut *const c_char) -> CUresult;
}

#[repr(C)]
pub struct ibv_device {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct ibv_context {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct ibv_pd {
    _opaque: [u8; 0],
}

#[repr(C)]
pub struct ibv_mr {
    context: *mut ibv_context,
    pd: *mut ibv_pd,
    addr: *mut c_void,
    length: usize,
    handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[link(name = "ibverbs")]
extern "C" {
    pub fn ibv_get_device_list(count: *mut c_int) -> *mut *mut ibv_device;
    pub fn ibv_free_device_list(list: *mut *mut ibv_device);
    pub fn ibv_get_device_name(device: *mut ibv_device) -> *const c_char;
    pub fn ibv_open_device(device: *mut ibv_device) -> *mut ibv_context;
    pub fn ibv_close_device(context: *mut ibv_context) -> c_int;
    pub fn ibv_alloc_pd(context: *mut ibv_context) -> *mut ibv_pd;
    pub fn ibv_dealloc_pd(pd: *mut ibv_pd) -> c_int;
    pub fn ibv_reg_mr(
        pd: *mut ibv_pd,
        address: *mut c_void,
        length: usize,
        access: c_int,
    ) -> *mut ibv_mr;
    pub fn ibv_dereg_mr(mr: *mut ibv_mr) -> c_int;
}
