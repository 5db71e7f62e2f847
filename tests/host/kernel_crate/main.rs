// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the module's own kernel crate. The crate's C half uses the C library here instead of the
//! kernel (`include/linux/host.h`, `kernel.c`).
//!
//! The tests check results. The lab runs them under valgrind, which also checks that nothing reads
//! invalid memory, and that no memory is lost.
#![cfg(test)]

extern crate kernel_crate as kernel;

// The crate needs these C objects of build.rs. They are linked here, because the linker must see
// them after the crate.
#[link(name = "crate_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}
#[link(name = "host_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}

mod host;
mod load;
mod memory;
mod threads;
mod tree;
