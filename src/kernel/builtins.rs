// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! In the place of `compiler_builtins`, a crate without which nothing is linked: what it would
//! offer, such as `memcpy`, the kernel has.

#![feature(compiler_builtins, rustc_attrs)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
#![allow(internal_features)]
