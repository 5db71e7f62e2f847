// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What makes pinned memory reachable for a device: mapped by the driver, or by us.

use core::{
    ptr::NonNull,
    slice, //
};

use super::{
    device::Device,
    pieces::Pieces,
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
        self,
        complain, //
    },
    scatter::{
        Builder,
        ScatterTable, //
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
            abi::nvidia_p2p_dma_map_pages(device.as_pci(), pin.table.0.as_ptr(), &mut mapping)
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
        runs(addresses, page, |&address| address, rt::give_way, each)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the mapping is there to be unmapped, once.
        let ret = unsafe {
            abi::nvidia_p2p_dma_unmap_pages(
                self.device.as_pci(),
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

/// Memory to map.
pub(crate) enum Placed<'a> {
    /// It is known where.
    At(Pieces),
    /// The driver's table says where.
    By(&'a PersistentPin),
}

impl Placed<'_> {
    /// Gives all pieces of `range` to `each`, until that fails.
    #[inline(never)] // As above.
    fn extents(
        &self,
        range: &Range,
        mut each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        match self {
            Self::At(pieces) => pieces.all().iter().copied().try_for_each(each),
            Self::By(pin) => pin.extents(range, &mut each),
        }
    }
}

/// Maps `memory`, which is all of `range`, for `device`, and makes `list` of the bus addresses that it
/// shall use: in one range of them, where the kernel and the device have such a thing; else the
/// list keeps what is mapped.
pub(crate) fn map(
    device: Device,
    memory: &Placed<'_>,
    range: &Range,
    mut list: Builder,
) -> Result<(Option<MappedRange>, ScatterTable), Errno> {
    let mut first = true;
    let mut shared: Option<MappedRange> = None;
    memory.extents(range, |piece| {
        if first {
            first = false;
            shared = MappedRange::new(device, piece.start, range.pinned());
        }
        match &mut shared {
            Some(shared) => shared.add(piece),
            None => list.extent(piece),
        }
    })?;
    if let Some(mut shared) = shared {
        list.extent(shared.end()?)?;
        return Ok((Some(shared), list.finish()?));
    }
    let mut table = list.finish()?;
    table.map(device)?;
    Ok((None, table))
}

/// The bus address at which `device` reaches a physical extent.
pub(super) fn map_one(device: Device, extent: Extent) -> Result<u64, Errno> {
    let len = usize::try_from(extent.len).map_err(|_| Errno::INVAL)?;
    let mut address = 0;
    // SAFETY: By the invariant of `Device`; `address` is valid to store a word.
    let ret = unsafe { abi::nvpm_dma_map(device.as_ptr(), extent.start, len, &mut address) };
    Errno::check(ret)?;
    Ok(address)
}

/// Undoes what [`map_one`] did: `extent` is at the address that it gave.
pub(super) fn unmap_one(device: Device, extent: Extent) {
    // SAFETY: By the invariant of `Device`; the length fitted a `usize`.
    unsafe { abi::nvpm_dma_unmap(device.as_ptr(), extent.start, extent.len as usize) };
}

/// A range of addresses behind an IOMMU in which pieces stand one behind the other.
///
/// # Invariants
///
/// `nvpm_range_begin` has taken it for `device`, and it has not been undone.
pub(crate) struct MappedRange {
    device: Device,
    range: abi::nvpm_range,
}

impl MappedRange {
    /// A range for `len` bytes, the first of them at `first`; none if this kernel or this device
    /// has no such thing.
    fn new(device: Device, first: u64, len: u64) -> Option<Self> {
        let mut range = abi::nvpm_range::default();
        // SAFETY: By the invariant of `Device`; `range` is valid for writing.
        let taken = unsafe { abi::nvpm_range_begin(device.as_ptr(), &mut range, first, len) };
        // INVARIANT: Just taken.
        // (Not `then_some`: that makes the object, and drops it, in any case.)
        taken.then(|| Self { device, range })
    }

    /// Gives the next piece its place.
    fn add(&mut self, piece: Extent) -> Result<(), Errno> {
        // SAFETY: By the type's invariant.
        Errno::check(unsafe {
            abi::nvpm_range_add(
                self.device.as_ptr(),
                &mut self.range,
                piece.start,
                piece.len,
            )
        })
    }

    /// All pieces have their places: where they are.
    fn end(&mut self) -> Result<Extent, Errno> {
        let mut start = 0;
        // SAFETY: By the type's invariant; `start` is valid for writing.
        let ret = unsafe { abi::nvpm_range_end(self.device.as_ptr(), &mut self.range, &mut start) };
        Errno::check(ret)?;
        Ok(Extent {
            start,
            len: self.range.linked,
        })
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_range_undo(self.device.as_ptr(), &mut self.range) };
    }
}
