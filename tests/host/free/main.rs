// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground *free*: its own files, over the C that they come with, which here stands on the C
//! library and POSIX threads instead of the kernel (`include/linux/host.h`, `kernel.c`).
//!
//! Run as they are these say what is right; run under valgrind, which the lab does, that nothing
//! is read that is not there, nothing lost, and nothing shared without its lock.
#![cfg(test)]
#![allow(dead_code, unreachable_pub)]

// What build.rs has compiled.
#[link(name = "free", kind = "static")]
extern "C" {}
#[link(name = "ids", kind = "static")]
extern "C" {}
#[link(name = "pairs", kind = "static")]
extern "C" {}
#[link(name = "processes", kind = "static")]
extern "C" {}
#[link(name = "regions", kind = "static")]
extern "C" {}
#[link(name = "sglist", kind = "static")]
extern "C" {}
#[link(name = "kernel", kind = "static")]
extern "C" {}

mod abi;
#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/ffi.rs"]
mod ffi;
mod rt;

mod kernel;
mod load;
mod memory;
mod regions;
mod shared;
mod shims;
