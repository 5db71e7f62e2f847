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
/// Both pointers are to the same device, which is there for as long as a region is mapped for it.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    pub(super) device: NonNull<abi::device>,
    pub(super) pci: NonNull<abi::pci_dev>,
}

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
        match (NonNull::new(device), NonNull::new(pci)) {
            // INVARIANT: `nvpm_pci_dev` says that they are the same device.
            (Some(device), Some(pci)) => Ok(Self { device, pci }),
            _ => {
                complain!("the RDMA device is not a PCI device: it cannot reach GPU memory\n");
                Err(Errno::OPNOTSUPP)
            }
        }
    }

    /// Whether a registration for this device can be revoked. The driver of some never says that
    /// a registration is complete, and the core would wait for that for ever.
    pub(crate) fn revocable(&self) -> bool {
        // SAFETY: By the type's invariant.
        let revocable = unsafe { abi::nvpm_revocable(self.device.as_ptr()) };
        if !revocable {
            complain!("the driver of this RDMA device cannot give up GPU memory that is freed; load the module with persistent_api_support=1\n");
        }
        revocable
    }

    /// Most bytes of one scatterlist entry.
    pub(crate) fn max_segment(&self) -> u32 {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_max_segment(self.device.as_ptr()) }
    }
}
