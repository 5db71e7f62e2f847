// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The CUDA driver API over the lab's simulated GPU. README.md tells what a
//! device pointer is here, and what is missing.
//!
//! Every call of the API is an `extern "C"` function of the module of its
//! subject. Places for results are `Option<&mut T>`, which is what a pointer
//! that may be NULL looks like from C: that they point to something is the
//! caller's part of the contract.

#![allow(non_snake_case)]

mod context;
mod device;
mod error;
mod event;
mod gpu;
mod handles;
mod host;
mod memops;
mod memory;
mod pointer;
mod procs;
mod space;
mod stream;
mod sys;
mod transfer;
mod unsupported;
mod vmm;

use error::Result;
use sys::CUresult;

/// What a call of the API answers.
fn answer(call: impl FnOnce() -> Result) -> CUresult {
    match call() {
        Ok(()) => sys::CUDA_SUCCESS,
        Err(error) => error,
    }
}

/// A place for a result, or a value, that the caller must not leave out.
fn required<T>(pointer: Option<T>) -> Result<T> {
    pointer.ok_or(sys::CUDA_ERROR_INVALID_VALUE)
}

/// `condition`, or the error.
fn ensure(condition: bool, error: CUresult) -> Result {
    if condition {
        Ok(())
    } else {
        Err(error)
    }
}

/// The content of a lock. A panic ends the process, so nobody leaves one
/// half-done.
fn locked<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}
