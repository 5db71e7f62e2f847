// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What makes pinned memory reachable for a device: mapped by the driver, or by us.

use core::{
    ptr::NonNull,
    slice, //
};

use super::{
    device::Device,
    pins::PersistentPin,
    table::{
        whole,
        PageTable, //
    }, //
};
use crate::{
    abi,
    errno::Errno,
    extents::{
        runs,
        Extent,
        Range, //
    },
    rt::{
        complain,
        KVVec, //
    }, //
};

/// A persistent pin that the driver has mapped for a device.
///
/// # Invariants
///
/// `mapping` was made of `pin`; fields drop in their order here.
pub(crate) struct DriverMapping {
    mapping: Mapping,
    pin: PersistentPin,
}

/// What the driver has to undo.
///
/// # Invariants
///
/// `mapping` came from the driver for `device` and `table` and has not been unmapped; the pages of
/// `table` stay pinned for as long as this lives.
struct Mapping {
    device: Device,
    table: PageTable,
    mapping: NonNull<abi::nvidia_p2p_dma_mapping>,
}

// SAFETY: The driver unmaps from any task, and nothing changes the mapping meanwhile.
unsafe impl Send for Mapping {}

impl DriverMapping {
    /// Maps the pages of `pin` for `device`; a pin that cannot be mapped comes back.
    pub(crate) fn new(device: Device, pin: PersistentPin) -> Result<Self, (Errno, PersistentPin)> {
        let mut mapping = core::ptr::null_mut();
        // SAFETY: The device is there by the invariant of its type, the pages while there is `pin`;
        // `mapping` is valid for the driver to store a pointer.
        let ret = unsafe {
            abi::nvidia_p2p_dma_map_pages(device.pci.as_ptr(), pin.table.0.as_ptr(), &mut mapping)
        };
        let mapping = match (Errno::check(ret), NonNull::new(mapping)) {
            (Err(errno), _) => return Err((errno, pin)),
            (Ok(()), None) => return Err((Errno::IO, pin)),
            (Ok(()), Some(mapping)) => mapping,
        };
        // INVARIANT: The driver has just returned it, and the pin stays with it.
        let mapping = Mapping {
            device,
            table: pin.table,
            mapping,
        };
        Ok(Self { mapping, pin })
    }

    /// Unmaps the pages, which stay pinned.
    pub(crate) fn unmap(self) -> PersistentPin {
        let Self { mapping, pin } = self;
        drop(mapping);
        pin
    }

    /// Gives the bus addresses that the device shall use for `range` to `each`, neighbours merged.
    #[inline(never)] // All registers for the one loop that a large region needs.
    pub(crate) fn extents(
        &self,
        range: &Range,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // SAFETY: By the invariant of `Mapping` it is alive.
        let mapping = unsafe { self.mapping.mapping.as_ref() };
        // SAFETY: A reference is a valid pointer.
        if !unsafe { abi::nvpm_dma_mapping_known(mapping) } {
            complain!(
                "the NVIDIA driver's DMA mapping has version {:#x}, which this module does not know; install a version that fits the driver\n",
                mapping.version
            );
            return Err(Errno::OPNOTSUPP);
        }
        let (page, entries) = whole("mapped", mapping.page_size_type, mapping.entries, range)?;
        if mapping.dma_addresses.is_null() {
            return Err(Errno::IO);
        }
        // SAFETY: The driver's `dma_addresses` has `entries` words for as long as the mapping is
        // alive.
        let addresses = unsafe { slice::from_raw_parts(mapping.dma_addresses, entries) };
        runs(addresses, page, |&address| address, each)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the mapping is there to be unmapped, once.
        let ret = unsafe {
            abi::nvidia_p2p_dma_unmap_pages(
                self.device.pci.as_ptr(),
                self.table.0.as_ptr(),
                self.mapping.as_ptr(),
            )
        };
        if let Err(errno) = Errno::check(ret) {
            complain!(
                "the NVIDIA driver did not unmap GPU memory (error {})\n",
                errno.number()
            );
        }
    }
}

/// A mapping that we made, of the physical extents of a revocable pin: the driver's own call to
/// map reads a page table that its callback may be freeing.
///
/// # Invariants
///
/// The first `mapped` of the extents are addresses that the device's DMA layer gave, and their
/// lengths; those behind are physical.
pub(crate) struct OwnMapping {
    device: Device,
    extents: KVVec<Extent>,
    mapped: usize,
}

impl OwnMapping {
    /// Maps the physical `extents` for `device`; they become bus addresses in place.
    pub(crate) fn new(device: Device, extents: KVVec<Extent>) -> Result<Self, Errno> {
        // INVARIANT: None is mapped; if one fails below, dropping undoes those before it.
        let mut mapping = Self {
            device,
            extents,
            mapped: 0,
        };
        for extent in mapping.extents.iter_mut() {
            extent.start = map_one(device, *extent)?;
            // INVARIANT: One more is mapped.
            mapping.mapped += 1;
        }
        Ok(mapping)
    }

    /// Gives the bus addresses that the device shall use to `each`.
    pub(crate) fn extents(
        &self,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.extents.iter().copied().try_for_each(each)
    }
}

/// The bus address at which `device` reaches a physical extent.
fn map_one(device: Device, extent: Extent) -> Result<u64, Errno> {
    let len = usize::try_from(extent.len).map_err(|_| Errno::INVAL)?;
    let mut address = 0;
    // SAFETY: By the invariant of `Device`; `address` is valid to store a word.
    let ret = unsafe { abi::nvpm_dma_map(device.device.as_ptr(), extent.start, len, &mut address) };
    Errno::check(ret)?;
    Ok(address)
}

impl Drop for OwnMapping {
    fn drop(&mut self) {
        for extent in self.extents.iter().take(self.mapped) {
            // SAFETY: By the type's invariant the address is mapped; the length fitted a `usize`.
            unsafe {
                abi::nvpm_dma_unmap(
                    self.device.device.as_ptr(),
                    extent.start,
                    extent.len as usize,
                )
            };
        }
    }
}
