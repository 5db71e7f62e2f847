// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! PCI devices, which can reach GPU memory. A [`Device`] is for the duration of one call, and a
//! [`DeviceRef`] keeps a device for longer.
//!
//! C headers: `linux/pci.h`, `linux/dma-mapping.h`.

use core::{marker::PhantomData, ptr::NonNull};

use kernel::prelude::*;

use crate::{
    abi,
    errno::{eopnotsupp, to_result},
    ratelimit::pr_warn_ratelimited,
};

/// A device that exists for `'a`, such as the device of one call of the RDMA core.
///
/// # Invariants
///
/// The pointer is to a PCI device that exists for `'a`.
#[derive(Clone, Copy)]
pub(crate) struct Device<'a>(NonNull<abi::device>, PhantomData<&'a abi::device>);

impl Device<'_> {
    /// Converts a pointer of the RDMA core. Returns an error if the pointer is NULL or points to a
    /// device that is not a PCI device.
    ///
    /// # Safety
    ///
    /// The pointer must be NULL or to a device that exists as long as the result's lifetime.
    pub(crate) unsafe fn from_raw(device: *mut abi::device) -> Result<Self> {
        // SAFETY: By this function's requirement the pointer is to a device, or is NULL. For NULL,
        // `nvpm_pci_dev` returns NULL.
        let pci = unsafe { abi::nvpm_pci_dev(device) };
        match NonNull::new(device) {
            // INVARIANT: `nvpm_pci_dev` has found a PCI device. By this function's requirement the
            // device exists for the lifetime.
            Some(device) if !pci.is_null() => Ok(Self(device, PhantomData)),
            _ => {
                pr_warn_ratelimited!(
                    "the RDMA device is not a PCI device: it cannot reach GPU memory\n"
                );
                Err(eopnotsupp())
            }
        }
    }

    pub(crate) fn as_pci(self) -> *mut abi::pci_dev {
        // SAFETY: By the type's invariant the pointer is to a device.
        unsafe { abi::nvpm_pci_dev(self.0.as_ptr()) }
    }

    pub(crate) fn as_ptr(self) -> *mut abi::device {
        self.0.as_ptr()
    }

    /// Tells whether the device's driver supports the revocation of a registration.
    pub(crate) fn can_invalidate(self) -> bool {
        // SAFETY: By the type's invariant the pointer is to a device.
        unsafe { abi::nvpm_can_invalidate(self.0.as_ptr()) }
    }

    /// Returns the length of the longest segment that the device accepts, in bytes.
    pub(crate) fn max_segment(self) -> u32 {
        // SAFETY: By the type's invariant the pointer is to a device.
        unsafe { abi::nvpm_max_segment(self.0.as_ptr()) }
    }

    /// Returns the device's address on PCI. The first number is the domain. The second number
    /// contains the bus and the devfn.
    pub(crate) fn pci_address(self) -> (u32, u16) {
        let (mut domain, mut devfn) = (0, 0);
        // SAFETY: By the type's invariant the first pointer is to a PCI device. The other pointers
        // are valid for writing.
        unsafe { abi::nvpm_pci_address(self.0.as_ptr(), &mut domain, &mut devfn) };
        (domain, devfn)
    }

    /// Maps `len` bytes of physical memory at `start`. The memory must not be RAM. Returns the bus
    /// address of the first byte.
    pub(crate) fn map(self, start: u64, len: u64) -> Result<u64> {
        let len = usize::try_from(len).map_err(|_| EINVAL)?;
        let mut address = 0;
        // SAFETY: By the type's invariant the pointer is to a device; `address` is valid for
        // writing.
        to_result(unsafe { abi::nvpm_dma_map(self.0.as_ptr(), start, len, &mut address) })?;
        Ok(address)
    }

    /// Undoes [`Self::map`] for `len` bytes at the bus address that `map` returned.
    pub(crate) fn unmap(self, address: u64, len: u64) {
        // SAFETY: By the type's invariant the pointer is to a device. `map` has checked that the
        // length fits a `usize`.
        unsafe { abi::nvpm_dma_unmap(self.0.as_ptr(), address, len as usize) };
    }
}

/// A reference to a device. While the reference exists, the kernel does not free the device, so no
/// other device can have the same address in memory. Giving the reference back may sleep.
///
/// # Invariants
///
/// The pointer is to a PCI device. This object has a reference to the device.
pub(crate) struct DeviceRef(NonNull<abi::device>);

// SAFETY: Any thread may use a device to which there is a reference, and may give the reference
// back.
unsafe impl Send for DeviceRef {}

impl DeviceRef {
    /// Takes a reference to the device.
    pub(crate) fn new(device: Device<'_>) -> Self {
        // SAFETY: By the invariant of `Device`, the pointer is to a PCI device that exists.
        unsafe { abi::pci_dev_get(device.as_pci()) };
        // INVARIANT: The call above has taken the reference.
        Self(device.0)
    }

    /// Returns the device, which exists as long as this object is borrowed.
    pub(crate) fn get(&self) -> Device<'_> {
        // INVARIANT: By the type's invariant the pointer is to a PCI device, which exists as long
        // as this object has the reference.
        Device(self.0, PhantomData)
    }

    /// Returns true until the device is removed.
    pub(crate) fn is_registered(&self) -> bool {
        // SAFETY: By the type's invariant the pointer is to a device that exists.
        unsafe { abi::nvpm_is_registered(self.0.as_ptr()) }
    }
}

impl Drop for DeviceRef {
    fn drop(&mut self) {
        // SAFETY: This object has the reference that `new` took, and gives it back once.
        unsafe { abi::pci_dev_put(self.get().as_pci()) };
    }
}
