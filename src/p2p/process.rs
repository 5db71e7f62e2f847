// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Processes that have memory pinned revocably, and what they leave behind.
//!
//! A registration that ends in another process than the one that made it, or with that process,
//! stays pinned until the memory is freed: the driver unpins for nobody else. The limit on locked
//! memory does not count it any more, so it is counted here (`processes.c`), for the process and
//! for its user, and bounded for each.

use core::ptr::NonNull;

use crate::{
    abi,
    errno::Errno,
    rt::complain, //
};

/// Registrations that a process may leave behind.
const REGISTRATIONS: u32 = 1024;
/// GPU pages of them, together: 64 GiB.
const PAGES: u64 = 1 << 20;
/// Processes of a user that may leave so much behind.
const PROCESSES: u32 = 16;

/// A process that pins.
#[derive(Clone, Copy)]
pub(crate) struct Process(abi::nvpm_process);

impl Process {
    /// What C says of it.
    pub(crate) fn new(process: abi::nvpm_process) -> Self {
        Self(process)
    }

    /// The calling one.
    pub(super) fn calling() -> Self {
        let mut process = abi::nvpm_process::default();
        // SAFETY: `process` is valid for writing.
        unsafe { abi::nvpm_process(&mut process) };
        Self(process)
    }

    /// Whether it is the one that calls this.
    pub(super) fn is_calling(&self) -> bool {
        let calling = Self::calling();
        (self.0.number, self.0.born) == (calling.0.number, calling.0.born)
    }

    /// Whether it may pin more: an error if it, or its user, has left too much behind.
    pub(super) fn may_pin(&self) -> Result<(), Errno> {
        // SAFETY: `self` is valid for reading.
        if unsafe { abi::nvpm_process_full(&self.0, REGISTRATIONS, PAGES) } {
            complain!("a process has left {REGISTRATIONS} registrations of GPU memory behind, or 64 GiB: they were deregistered by another process than the one that made them, and stay until that one frees the memory; it cannot register more until then\n");
            return Err(Errno::DQUOT);
        }
        let (registrations, pages) = (PROCESSES * REGISTRATIONS, u64::from(PROCESSES) * PAGES);
        // SAFETY: As above.
        if unsafe { abi::nvpm_user_full(&self.0, registrations, pages) } {
            complain!(
                "the processes of user {} have left {registrations} registrations of GPU memory behind, or 1 TiB: they stay until the memory is freed (nvpm regions lists them as \"left\"), and the user cannot register more until then\n",
                self.0.user
            );
            return Err(Errno::DQUOT);
        }
        Ok(())
    }
}

/// A pin that is left behind, counted for as long as this lives.
///
/// # Invariants
///
/// Came from `nvpm_process_leaves`.
pub(crate) struct LeftBehind(NonNull<abi::nvpm_left>);

// SAFETY: Whoever has the pointer is alone with it, and any thread may give it back.
unsafe impl Send for LeftBehind {}

impl LeftBehind {
    /// Counts it.
    pub(super) fn new(process: &Process, pages: u32) -> Option<Self> {
        // SAFETY: `process` is valid for reading; called where sleeping is allowed.
        let left = unsafe { abi::nvpm_process_leaves(&process.0, pages.into()) };
        // INVARIANT: Just given. (It is never NULL, which need not be believed.)
        NonNull::new(left).map(Self)
    }
}

impl Drop for LeftBehind {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant; nobody has it any more.
        unsafe { abi::nvpm_left_freed(self.0.as_ptr()) };
    }
}
