// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What is told of each registration, for an administrator to read: who holds what (`regions.c`).

use core::ptr::NonNull;

use super::{
    abi,
    errno::Errno,
    extents::Range,
    p2p::{
        Device,
        Process, //
    }, //
};

pub(crate) use super::abi::{
    nvpm_client_kind as Kind,
    nvpm_region_state as Told, //
};

/// A registration that is in the list for as long as this lives.
///
/// # Invariants
///
/// Points to what `nvpm_region_begin` gave for this.
pub(crate) struct Listed(NonNull<abi::nvpm_region>);

// SAFETY: The functions that it is for may be called from any thread.
unsafe impl Send for Listed {}
// SAFETY: As above, at any time.
unsafe impl Sync for Listed {}

impl Listed {
    /// Puts `range` of the calling process into the list.
    pub(crate) fn new(range: &Range, client: Kind) -> Result<Self, Errno> {
        // SAFETY: Takes numbers; called where sleeping is allowed.
        let region = unsafe { abi::nvpm_region_begin(range.address(), range.len(), client) };
        // INVARIANT: Just given.
        NonNull::new(region).map(Self).ok_or(Errno::NOMEM)
    }

    /// The process that registered it.
    pub(crate) fn process(&self) -> Process {
        let mut process = abi::nvpm_process::default();
        // SAFETY: By the type's invariant it is there; `process` is valid for writing.
        unsafe { abi::nvpm_region_process(self.0.as_ptr(), &mut process) };
        Process::new(process)
    }

    /// What became of it.
    pub(crate) fn is(&self, told: Told) {
        // SAFETY: By the type's invariant it is there; the state is one of those that there are.
        unsafe { abi::nvpm_region_is(self.0.as_ptr(), told) };
    }

    /// `device` can reach it.
    pub(crate) fn mapped(&self, device: Device) {
        // SAFETY: By the type's invariant; a device is there, on PCI, while it is being mapped for.
        unsafe { abi::nvpm_region_mapped(self.0.as_ptr(), device.as_ptr()) };
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant, and nobody has it any more.
        unsafe { abi::nvpm_region_end(self.0.as_ptr()) };
    }
}

/// No registration is left, and none will come.
pub(crate) fn forget() {
    // SAFETY: Each registration has kept the module, which is about to end.
    unsafe { abi::nvpm_regions_forget() };
}
