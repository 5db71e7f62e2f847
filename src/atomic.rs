// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Atomic types of `core`, because the kernel crate has its own only since 6.19. Every file imports
//! them from here, so that the models on the host can put types of loom in their place.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
