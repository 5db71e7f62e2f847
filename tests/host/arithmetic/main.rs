// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's arithmetic, which comes in here as it is, byte for byte, against models that are
//! slow and obvious.
//!
//! What is small is tried in full, what is large at random: each run has another seed and says
//! which if it fails, and `HOST_SEED=... tests/run host` repeats it.
#![cfg(test)]
#![allow(dead_code)]

extern crate self as kernel;

#[path = "../../../src/abi.rs"]
mod abi;
#[path = "../../../src/kernel/error.rs"]
pub mod error;
#[path = "../../../src/extents.rs"]
mod extents;
#[path = "../../../src/kernel/ffi.rs"]
pub mod ffi;

mod alloc;
mod random;
mod units;

mod collect;
mod error_numbers;
mod pipeline;
mod range;
mod segments;

/// What the files use of the kernel's crate.
pub(crate) mod prelude {
    pub(crate) use crate::alloc::{KVVec, GFP_KERNEL};
    pub(crate) use crate::error::{code::*, Error, Result};
}

/// What they use of the module's `compat.rs`.
mod compat {
    pub(crate) fn eopnotsupp() -> crate::error::Error {
        crate::error::Error::from_errno(-95)
    }
}
