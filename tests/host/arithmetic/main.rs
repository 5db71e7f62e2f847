// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's arithmetic, which comes in here as it is, byte for byte, against models that are
//! slow and obvious.
//!
//! What is small is tried in full, what is large at random: each run has another seed and says
//! which if it fails, and `HOST_SEED=... tests/run host` repeats it.
#![cfg(test)]
#![allow(dead_code)]

#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/extents.rs"]
mod extents;

mod numbers;
mod random;
mod units;

mod any_errno;
mod longest_segment;
mod pipeline;
mod range;
mod runs;
mod segments;
mod window;
