// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What is told of each registration, for an administrator to read: who holds what (`regions.c`).

use core::{
    cell::UnsafeCell,
    marker::PhantomPinned,
    pin::Pin, //
};

use super::{
    abi,
    extents::Range,
    module_ref::ModuleRef,
    p2p::{
        Device,
        Process, //
    }, //
};

pub(crate) use super::abi::{
    nvpm_client_kind as Kind,
    nvpm_region_state as Told, //
};

/// The part of a registration that never changes, but for what is told of it.
///
/// # Invariants
///
/// Address and length of `told` are those of a [`Range`], and never change. The rest was zero and is
/// C's, which has it in its list from [`Self::begin`] on, where it sets the process, once.
pub(crate) struct Listed {
    told: UnsafeCell<abi::nvpm_region>,
    /// The module is there for as long as a callback of the driver can come.
    _module: ModuleRef,
    _pinned: PhantomPinned,
}

// SAFETY: C changes what is told under a lock of its own, from any thread.
unsafe impl Sync for Listed {}

impl Listed {
    /// Of `range`, not in the list yet.
    pub(crate) fn new(range: &Range, module: ModuleRef) -> Self {
        let told = abi::nvpm_region {
            address: range.address(),
            len: range.len(),
            ..Default::default()
        };
        Self {
            told: UnsafeCell::new(told),
            _module: module,
            _pinned: PhantomPinned,
        }
    }

    /// Puts it into the list, as one of the calling process, until it goes.
    pub(crate) fn begin(self: Pin<&Self>, client: Kind) {
        // SAFETY: By the type's invariant; it is pinned, so that it is there, at this place, until
        // it has been dropped, which takes it out.
        unsafe { abi::nvpm_region_begin(self.told.get(), client) };
    }

    /// What the user asked to register.
    pub(crate) fn range(&self) -> Range {
        let told = self.told.get();
        // SAFETY: By the type's invariant nobody changes these.
        let (address, len) = unsafe { ((*told).address, (*told).len) };
        Range::again(address, len)
    }

    /// The process that registers it, from [`Self::begin`] on.
    pub(crate) fn process(&self) -> Process {
        // SAFETY: By the type's invariant.
        Process::new(unsafe { (*self.told.get()).process })
    }

    /// What became of it.
    pub(crate) fn is(&self, told: Told) {
        // SAFETY: By the type's invariant; the state is one of those that there are.
        unsafe { abi::nvpm_region_is(self.told.get(), told) };
    }

    /// `device` can reach it.
    pub(crate) fn mapped(&self, device: Device) {
        // SAFETY: By the type's invariant; a device is there, on PCI, while it is being mapped for.
        unsafe { abi::nvpm_region_mapped(self.told.get(), device.as_ptr()) };
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant, and nobody has it any more.
        unsafe { abi::nvpm_region_end(self.told.get()) };
    }
}
