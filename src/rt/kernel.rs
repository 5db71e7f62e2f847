// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground *kernel*: what the kernel crate has. Differences between its versions live here.

use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    pin::Pin, //
};

use crate::errno::Errno;
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

pub(crate) use kernel::{
    alloc::flags::GFP_KERNEL,
    prelude::{
        pr_err,
        pr_info,
        pr_warn,
        KBox,
        KVVec, //
    },
    sync::Arc, //
};

/// Makes the crate a module, of which one `$module` is there from loading to unloading.
macro_rules! module {
    ($module:ident) => {
        kernel::prelude::module! {
            type: $module,
            name: "nv_peer_mem",
            license: "Dual BSD/GPL",
        }

        impl kernel::Module for $module {
            fn init(_: &'static kernel::ThisModule) -> kernel::error::Result<Self> {
                $crate::rt::Module::load()
                    .map_err(|errno| kernel::error::Error::from_errno(errno.to_c()))
            }
        }
    };
}
pub(crate) use module;

/// A state, and whether anybody has ever waited for it to change.
struct Watched<T> {
    state: T,
    awaited: bool,
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
    #[pin]
    fixed: S,
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

    /// The part that never changes, nor its place.
    pub(crate) fn fixed(&self) -> Pin<&S> {
        // SAFETY: [`Self::new`] makes each of these where its owners have it, and it stays there.
        unsafe { Pin::new_unchecked(&self.fixed) }
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
