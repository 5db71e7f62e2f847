// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Atomic types from `core`, because the kernel crate has atomic types only since 6.19. Every file
//! imports the types from this file, so that the models on the host can replace them by types of
//! loom.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
