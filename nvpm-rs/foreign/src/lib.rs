// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Calls of foreign libraries and of the C library that need unsafe code.
#![allow(unsafe_code)]

pub mod clock;
mod descriptors;

pub use descriptors::close_inherited;
