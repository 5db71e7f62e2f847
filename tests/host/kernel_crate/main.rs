// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's own kernel crate, over its half in C, which here stands on the C library instead of the
//! kernel (`include/linux/host.h`, `kernel.c`).
//!
//! Run as they are these say what is right; run under valgrind, which the lab does, that nothing
//! is read that is not there, and nothing lost.
#![cfg(test)]

extern crate kernel_crate as kernel;

// What build.rs has compiled, for the crate, which the linker sees later.
#[link(name = "crate_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}
#[link(name = "host_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}

mod host;
mod load;
mod memory;
mod threads;
mod tree;
