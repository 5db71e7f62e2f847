// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The device for which memory is mapped.

use core::ptr::NonNull;

use crate::{
    abi,
    errno::Errno,
    rt::complain, //
};

/// A device that can reach GPU memory: a PCI device.
///
/// # Invariants
///
/// The pointer is to a PCI device that is there for as long as a region is mapped for it.
#[derive(Clone, Copy)]
pub(crate) struct Device(NonNull<abi::device>);

// SAFETY: The DMA functions may be called for a device from any thread.
unsafe impl Send for Device {}

impl Device {
    /// The device behind a pointer of the RDMA core.
    ///
    /// # Safety
    ///
    /// The pointer must be NULL or to a device that outlives every mapping made for it.
    pub(crate) unsafe fn from_raw(device: *mut abi::device) -> Result<Self, Errno> {
        // SAFETY: By this function's requirement; NULL is answered with NULL.
        let pci = unsafe { abi::nvpm_pci_dev(device) };
        match NonNull::new(device) {
            // INVARIANT: `nvpm_pci_dev` says that it is one.
            Some(device) if !pci.is_null() => Ok(Self(device)),
            _ => {
                complain!("the RDMA device is not a PCI device: it cannot reach GPU memory\n");
                Err(Errno::OPNOTSUPP)
            }
        }
    }

    /// For a function of C.
    pub(crate) fn as_ptr(&self) -> *mut abi::device {
        self.0.as_ptr()
    }

    /// For one that wants a PCI device.
    pub(super) fn as_pci(&self) -> *mut abi::pci_dev {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_pci_dev(self.0.as_ptr()) }
    }

    /// Whether a registration for this device can be revoked. The driver of some never says that
    /// a registration is complete, and the core would wait for that for ever.
    pub(crate) fn revocable(&self) -> bool {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_revocable(self.0.as_ptr()) }
    }

    /// Most bytes of one scatterlist entry.
    pub(crate) fn max_segment(&self) -> u32 {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_max_segment(self.0.as_ptr()) }
    }
}
