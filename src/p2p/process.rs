// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Processes that have memory pinned revocably, and what they leave behind.
//!
//! A registration that ends in another process than the one that made it, or with that process,
//! stays pinned until the memory is freed: the driver unpins for nobody else. The limit on locked
//! memory does not count it any more, so it is counted here (`processes.c`), and bounded.

use core::num::NonZeroU32;

use crate::{
    abi,
    errno::Errno,
    rt::complain, //
};

/// Registrations that a process may leave behind.
const REGISTRATIONS: u32 = 1024;
/// GPU pages of them, together: 64 GiB.
const PAGES: u64 = 1 << 20;

/// A process that pins, as the kernel numbers them outside of all containers.
#[derive(Clone, Copy)]
pub(crate) struct Process(i32);

impl Process {
    /// The calling one.
    pub(super) fn calling() -> Self {
        // SAFETY: Takes no arguments.
        Self(unsafe { abi::nvpm_process() })
    }

    /// Whether it is the one that calls this.
    pub(super) fn is_calling(self) -> bool {
        self.0 == Self::calling().0
    }

    /// Whether it may pin more: an error if it has left too much behind.
    pub(super) fn may_pin(self) -> Result<(), Errno> {
        // SAFETY: Looks up a number; it may be any.
        if unsafe { abi::nvpm_process_left(self.0, REGISTRATIONS, PAGES) } {
            complain!("a process has left {REGISTRATIONS} registrations of GPU memory behind, or 64 GiB: they were deregistered by another process than the one that made them, and stay until that one frees the memory; it cannot register more until then\n");
            return Err(Errno::DQUOT);
        }
        Ok(())
    }
}

/// A pin that is left behind, counted for as long as this lives.
///
/// # Invariants
///
/// C has counted `pages` for the process.
pub(crate) struct LeftBehind {
    process: Process,
    pages: NonZeroU32, // A region has room for no more than this and the process.
}

impl LeftBehind {
    /// Counts it.
    pub(super) fn new(process: Process, pages: u32) -> Self {
        // Ranges are not empty.
        let pages = NonZeroU32::new(pages).unwrap_or(NonZeroU32::MIN);
        // SAFETY: Called where sleeping is allowed.
        unsafe { abi::nvpm_process_leaves(process.0, pages.get().into()) };
        // INVARIANT: Just counted.
        Self { process, pages }
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_process_freed(self.process.0, self.pages.get().into()) };
    }
}
