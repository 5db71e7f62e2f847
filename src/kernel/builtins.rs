// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Replaces the crate `compiler_builtins`, which the compiler links with every crate. The
//! replacement is empty, because the kernel itself has functions such as `memcpy`.

#![feature(compiler_builtins, rustc_attrs)]
#![compiler_builtins]
#![no_builtins]
#![no_std]
#![allow(internal_features)]
