// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Takes the place of the crate `compiler_builtins`, with which every crate is linked. The kernel has
//! the functions of that crate, such as `memcpy`.

#![feature(compiler_builtins, rustc_attrs)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
#![allow(internal_features)]
