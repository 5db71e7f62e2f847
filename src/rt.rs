// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground that the module stands on: what it takes from the kernel crate, and from C where
//! the crate has nothing, in one place. Differences between kernel versions live here.

use core::ops::{
    Deref,
    DerefMut, //
};

use super::{
    abi,
    errno::Errno, //
};
use kernel::{
    new_condvar,
    new_spinlock,
    prelude::{
        pin_data,
        pin_init,
        InPlaceInit, //
    },
    sync::{
        lock::{
            spinlock::SpinLockBackend,
            Guard, //
        },
        CondVar,
        SpinLock, //
    }, //
};

pub(crate) use core::sync::atomic::{
    AtomicBool,
    AtomicPtr,
    Ordering, //
};
pub(crate) use kernel::{
    alloc::flags::GFP_KERNEL,
    ffi,
    prelude::{
        pr_warn,
        KBox,
        KVVec, //
    },
    sync::Arc, //
};

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

/// Something that threads share: a part that never changes, and a state behind a lock, whose
/// changes threads can wait for.
#[pin_data]
pub(crate) struct Monitor<S, T> {
    #[pin]
    state: SpinLock<Watched<T>>,
    #[pin]
    changed: CondVar,
    // Last, so that it is dropped last: it may hold what keeps this code in memory.
    fixed: S,
}

/// A state, and whether anybody has ever waited for it to change.
struct Watched<T> {
    state: T,
    awaited: bool,
}

/// The state of a [`Monitor`], for as long as this lives. Nobody sleeps meanwhile.
pub(crate) struct Held<'a, T>(Guard<'a, Watched<T>, SpinLockBackend>);

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.state
    }
}

impl<T: Unpin> DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0.state
    }
}

impl<S, T: Unpin> Monitor<S, T> {
    /// Shares what never changes and the first state.
    pub(crate) fn new(fixed: S, state: T) -> Result<Arc<Self>, Errno> {
        let watched = Watched {
            state,
            awaited: false,
        };
        Arc::pin_init(
            pin_init!(Self {
                state <- new_spinlock!(watched, "nv_peer_mem::Monitor::state"),
                changed <- new_condvar!("nv_peer_mem::Monitor::changed"),
                fixed,
            }),
            GFP_KERNEL,
        )
        .map_err(|_| Errno::NOMEM)
    }

    /// The part that never changes.
    pub(crate) fn fixed(&self) -> &S {
        &self.fixed
    }

    /// The state.
    pub(crate) fn lock(&self) -> Held<'_, T> {
        Held(self.state.lock())
    }

    /// Lets go of the lock until somebody calls [`Self::notify`].
    pub(crate) fn wait(&self, held: &mut Held<'_, T>) {
        held.0.awaited = true;
        self.changed.wait(&mut held.0);
    }

    /// Lets go of the lock and wakes all who wait for the state to change. Mostly nobody does, and
    /// that costs nothing.
    pub(crate) fn notify(&self, held: Held<'_, T>) {
        let awaited = held.0.awaited;
        drop(held);
        if awaited {
            self.changed.notify_all();
        }
    }
}

/// Bytes of a page of the kernel.
pub(crate) fn page_size() -> u64 {
    // Lossless: `usize` has at most 64 bits.
    kernel::page::PAGE_SIZE as u64
}

/// The calling process, as the NVIDIA driver tells processes apart.
pub(crate) fn process() -> i32 {
    kernel::current!().group_leader().pid()
}

/// The calling thread.
pub(crate) fn thread() -> i32 {
    kernel::current!().pid()
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

/// Sleeps for a short time; for repeating what failed for lack of memory.
pub(crate) fn pause() {
    // SAFETY: Takes no arguments; called where sleeping is allowed.
    unsafe { abi::nvpm_pause() }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/rt.rs"]
mod kunit;
