// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the module's own kernel crate. In these tests, the crate's C file uses the C library
//! instead of the kernel (`tests/doubles/kernel/crate`).
//!
//! The tests check only results. The lab runs the tests under valgrind, which also checks that they
//! read no invalid memory and lose no memory.
#![cfg(test)]

extern crate kernel_crate as kernel;

// The crate calls C objects that build.rs has compiled. This file links the objects, because the
// linker must read them after the crate.
#[link(name = "crate_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}
#[link(name = "host_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}

mod host;
mod load;
mod memory;
mod threads;
mod tree;
