// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground that the module stands on, in one place: what is taken from the kernel, and from C.
//!
//! There are two, and all that is above them is the same on both: `rt/kernel.rs` is made of the
//! kernel crate; `rt/free.rs` of `core` and C alone, for kernels that have no Rust and beside a
//! driver whose licence rules the kernel crate out (docs/grounds.md).

use super::{
    abi,
    errno::Errno, //
};

#[cfg(nvpm_free)]
mod free;
#[cfg(nvpm_free)]
pub(crate) use free::*;

// Not called `kernel`: that is the crate.
#[cfg(not(nvpm_free))]
#[path = "rt/kernel.rs"]
mod ground;
#[cfg(not(nvpm_free))]
pub(crate) use ground::*;

pub(crate) use core::sync::atomic::{
    AtomicBool,
    AtomicPtr,
    Ordering, //
};

/// What is there from loading the module to unloading it.
pub(crate) trait Module: Sized + Send + Sync + 'static {
    /// Makes it; an error ends the loading.
    fn load() -> Result<Self, Errno>;
}

/// Prints a warning, rate-limited: for paths that a user can take at will.
macro_rules! complain {
    ($($arg:tt)*) => {
        if $crate::rt::may_complain() {
            $crate::rt::pr_warn!($($arg)*)
        }
    };
}
pub(crate) use complain;

/// Whether the rate limit lets one more line into the kernel's log.
pub(crate) fn may_complain() -> bool {
    // SAFETY: Takes no arguments and may be called from any context.
    unsafe { abi::nvpm_may_complain() }
}

/// The module's parameters, as they were when it was loaded.
pub(crate) struct Parameters {
    pub(crate) peerdirect_support: bool,
    pub(crate) persistent_api_support: bool,
}

/// Reads the module's parameters.
pub(crate) fn parameters() -> Parameters {
    // SAFETY: The parameters have no write permission: nothing changes them after loading.
    unsafe {
        Parameters {
            peerdirect_support: abi::nvpm_peerdirect_support != 0,
            persistent_api_support: abi::nvpm_persistent_api_support != 0,
        }
    }
}

/// How a message ends where memory that is never revoked would do: what to do, if that is not done.
pub(crate) fn persistent_instead() -> &'static str {
    match parameters().persistent_api_support {
        true => "",
        false => "; load the module with persistent_api_support=1",
    }
}

/// Bytes of a page of the kernel.
pub(crate) fn page_size() -> u64 {
    // SAFETY: C defines it as a constant.
    unsafe { abi::nvpm_page_size }
}

/// The calling thread.
pub(crate) fn thread() -> i32 {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_thread() }
}

/// Whether the calling thread is about to end, and with it, it may be, its process.
pub(crate) fn exiting() -> bool {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_exiting() }
}

/// Adds to what an administrator sees, modulo 2^64.
pub(crate) fn count(figure: abi::nvpm_figure, by: u64) {
    // SAFETY: The figure is one of those that there are; called in any context.
    unsafe { abi::nvpm_count(figure, by) }
}

/// Whether NVIDIA's own client, which does what this module does, is loaded.
pub(crate) fn peermem_loaded() -> bool {
    // SAFETY: Takes no arguments; called from the module's initialisation, which may sleep.
    unsafe { abi::nvpm_peermem_loaded() }
}

/// Lets others have the processor, if it is their turn: for what takes long. May sleep.
pub(crate) fn give_way() {
    // SAFETY: Takes no arguments; called where sleeping is allowed.
    unsafe { abi::nvpm_give_way() }
}

/// Sleeps for a short time; for repeating what failed for lack of memory.
pub(crate) fn pause() {
    // SAFETY: Takes no arguments; called where sleeping is allowed.
    unsafe { abi::nvpm_pause() }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/rt.rs"]
mod kunit;
