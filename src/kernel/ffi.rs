// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! C's types, as the kernel has them: its `char` is unsigned, its `long` as wide as a pointer.

#![allow(missing_docs, non_camel_case_types)]

pub use core::ffi::c_void;

pub type c_char = u8;
pub type c_uchar = u8;
pub type c_ushort = u16;
pub type c_int = i32;
pub type c_uint = u32;
pub type c_ulong = usize;
pub type c_longlong = i64;
pub type c_ulonglong = u64;
