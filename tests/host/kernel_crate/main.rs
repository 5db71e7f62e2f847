// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the module's own kernel crate. Its C half stands here on the C library instead of the
//! kernel (`include/linux/host.h`, `kernel.c`).
//!
//! Run directly, the tests check results. Under valgrind, which the lab uses, they also check that
//! nothing reads invalid memory, and that no memory is lost.
#![cfg(test)]

extern crate kernel_crate as kernel;

// The C objects from build.rs, for the crate: the linker sees them after the crate.
#[link(name = "crate_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}
#[link(name = "host_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}

mod host;
mod load;
mod memory;
mod threads;
mod tree;
