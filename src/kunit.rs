// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests that run inside the kernel, and what they share.
//!
//! Only kernels with KUnit get them (`Kbuild` decides). Each file under `kunit/` tests the source
//! file of the same name, and what it tests cannot be tested without the kernel. The results are
//! in the kernel's log and in `/sys/kernel/debug/kunit/nv_peer_mem_*/results`.

use core::ptr::NonNull;

use crate::{abi, errno::Errno, rt::GFP_KERNEL};
use kernel::workqueue::Queue;

/// Threads beside the test's own. Dropping waits until each has done what it was given.
///
/// # Invariants
///
/// The queue is there to be destroyed, once.
pub(crate) struct Threads(NonNull<abi::workqueue_struct>);

impl Threads {
    pub(crate) fn new() -> Result<Self, Errno> {
        // SAFETY: Takes no arguments; tests may sleep.
        let queue = unsafe { abi::nvpm_kunit_threads() };
        // INVARIANT: The queue has just been made.
        NonNull::new(queue).map(Self).ok_or(Errno::NOMEM)
    }

    /// Runs `task` in a thread of its own.
    pub(crate) fn spawn(&self, task: impl Fn() + Send + 'static) -> Result<(), Errno> {
        // SAFETY: By the type's invariant the queue outlives this borrow of it.
        let queue = unsafe { Queue::from_raw(self.0.as_ptr().cast()) };
        queue.try_spawn(GFP_KERNEL, task).map_err(|_| Errno::NOMEM)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant. Waits for all that is queued.
        unsafe { kernel::bindings::destroy_workqueue(self.0.as_ptr().cast()) };
    }
}
