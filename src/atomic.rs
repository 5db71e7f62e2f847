// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Atomic types: the kernel crate has its own since 6.19 only.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
