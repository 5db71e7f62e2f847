// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Takes the place of the crate `compiler_builtins`, which every crate is linked with. The kernel has
//! the functions that it would offer, such as `memcpy`.

#![feature(compiler_builtins, rustc_attrs)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
#![allow(internal_features)]
