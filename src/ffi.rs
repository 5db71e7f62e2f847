// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! C's types, as the kernel has them: its `char` is unsigned, its `long` as wide as a pointer.

#![allow(dead_code, non_camel_case_types)]

pub(crate) use core::ffi::c_void;

pub(crate) type c_char = u8;
pub(crate) type c_uchar = u8;
pub(crate) type c_ushort = u16;
pub(crate) type c_int = i32;
pub(crate) type c_uint = u32;
pub(crate) type c_ulong = usize;
pub(crate) type c_longlong = i64;
pub(crate) type c_ulonglong = u64;
