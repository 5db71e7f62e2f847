// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Takes the place of the crate `compiler_builtins`, with which every crate is linked. This crate
//! is empty, because the kernel has functions such as `memcpy`.

#![feature(compiler_builtins, rustc_attrs)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
#![allow(internal_features)]
