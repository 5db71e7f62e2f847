// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Calls of foreign libraries and of the C library that need unsafe code. All functions for other parts of nvpm are
//! safe.
#![allow(unsafe_code)]
#![warn(clippy::multiple_unsafe_ops_per_block, clippy::undocumented_unsafe_blocks)]

mod abi;
pub mod clock;
pub mod cuda;
mod descriptors;
pub mod dynamic_linker;
pub mod ending;
pub mod environment;
pub mod errno;
pub mod host_memory;
pub mod nvml;
pub mod queue_pair;
pub mod standard_files;
pub mod stop;
pub mod verbs;

pub use descriptors::close_inherited;
