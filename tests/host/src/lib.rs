// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests of the module's pure files, which come in here as they are, byte for byte.
//!
//! `cargo test` runs all of it. Random tests choose another seed each time and print it when they
//! fail: `HOST_SEED=... cargo test NAME` repeats what was seen.
#![cfg(test)]

#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/extents.rs"]
mod extents;
#[path = "../../../src/region.rs"]
mod region;

mod checks;
mod random;
