// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Mappings by which devices reach memory.
//!
//! C header: `linux/dma-mapping.h`. For its own mappings, this module uses the kernel's DMA API.
//! The module maps all extents into one range of I/O virtual addresses, if the kernel and the
//! device support such a range. Otherwise the module maps each segment separately.

use core::{mem, slice};

use kernel::prelude::*;

use crate::{
    abi::{self, page_size},
    device::{Device, DeviceRef},
    errno::to_result,
    extents::{longest_segment, Extent, Extents, Range, Segments},
    page_table::DriverMapping,
    resched::Turns,
    sg_table::{fill, SgTable},
    stats,
};

/// A scatterlist of addresses at which a device reaches GPU memory. Dropping the mapping unmaps the
/// addresses.
///
/// # Invariants
///
/// `mapped` is [`Some`] until [`Self::unmap`] takes the list.
pub(crate) struct Mapping {
    mapped: Option<(SgTable, MappedBy)>,
    /// The number of pinned bytes that the statistics count for this mapping.
    bytes: u64,
}

/// Says whether this module or the driver has mapped the addresses, and owns what unmapping needs.
enum MappedBy {
    /// This module has mapped each entry of the scatterlist for the device. The first mapping
    /// begins before the first entry. The number is the number of bytes in between.
    Entry(DeviceRef, u64),
    /// This module has mapped all extents in one range of addresses.
    Iova(Iova),
    /// The driver has mapped the addresses. The pin that has the pages also has this mapping, so
    /// the driver's page table exists for longer than the mapping.
    Driver(DriverMapping<'static>),
}

impl Mapping {
    /// Maps the physical `extents`, which cover all of `range`, for `device`.
    pub(crate) fn new(device: Device<'_>, extents: &Extents, range: &Range) -> Result<Self> {
        let extents = extents.as_slice();
        let Some((iova, extent)) = Iova::new(device, extents, range.pinned_len())? else {
            return Self::each(device, extents, range);
        };
        let segments = segments(device, slice::from_ref(&extent), range);
        match segments.and_then(SgTable::new) {
            Ok(sg) => Ok(Self::counted(sg, MappedBy::Iova(iova), range)),
            Err(error) => {
                iova.destroy(range.pinned_len());
                Err(error)
            }
        }
    }

    fn each(device: Device<'_>, extents: &[Extent], range: &Range) -> Result<Self> {
        let mut segments = segments(device, extents, range)?;
        let mut sg = SgTable::empty(&segments)?;
        // The user's range may begin in the middle of the first piece. This function nevertheless
        // maps the first piece from its beginning. An IOMMU maps a piece to an address at the
        // beginning of a page, so the range then has the same offset in a page on the bus as in the
        // user's address space.
        let before_first = segments.before_first();
        let mut before = before_first;
        let mut mapped: u32 = 0;
        sg.for_each_entry(|entry| {
            let segment = segments.next().ok_or(EIO)?;
            let start = segment.start.wrapping_sub(before);
            let address = device.map(start, before.wrapping_add(segment.len.into()))?;
            fill(entry, address.wrapping_add(before), segment.len);
            before = 0;
            mapped = mapped.wrapping_add(1);
            Ok(())
        })
        .inspect_err(|_| unmap_entries(device, before_first, &mut sg, mapped))?;
        let by = MappedBy::Entry(DeviceRef::new(device), before_first);
        Ok(Self::counted(sg, by, range))
    }

    /// Builds a mapping of `range` from `mapping`, with which the driver has mapped all of `range`.
    pub(crate) fn by_driver(mapping: DriverMapping<'static>, range: &Range) -> Result<Self> {
        let extents = mapping.extents(range)?;
        let sg = SgTable::new(segments(mapping.device(), extents.as_slice(), range)?)?;
        Ok(Self::counted(sg, MappedBy::Driver(mapping), range))
    }

    fn counted(sg: SgTable, by: MappedBy, range: &Range) -> Self {
        let bytes = range.pinned_len();
        stats::mapped(bytes);
        Self {
            mapped: Some((sg, by)),
            bytes,
        }
    }

    /// Returns the scatterlist for the core.
    pub(crate) fn for_core(&self) -> abi::sg_table {
        let list = self.mapped.as_ref().map(|(sg, _)| sg.for_core());
        list.unwrap_or_default()
    }

    /// Undoes the mapping. Returns the scatterlist, which the caller keeps because the core may
    /// still read it. May sleep.
    pub(crate) fn unmap(mut self) -> Option<SgTable> {
        let list = self.undo();
        // Nothing is left to be undone.
        mem::forget(self);
        list
    }

    fn undo(&mut self) -> Option<SgTable> {
        let (mut sg, by) = self.mapped.take()?;
        match by {
            MappedBy::Entry(device, before_first) => {
                unmap_entries(device.get(), before_first, &mut sg, u32::MAX);
            }
            MappedBy::Iova(iova) => iova.destroy(self.bytes),
            MappedBy::Driver(mapping) => drop(mapping),
        }
        stats::unmapped(self.bytes);
        Some(sg)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        drop(self.undo());
    }
}

/// Returns the segments that the core must receive for `range`. The segments cover the pages of the
/// kernel that contain the range, and the device accepts the length of each segment.
fn segments<'a>(device: Device<'_>, extents: &'a [Extent], range: &Range) -> Result<Segments<'a>> {
    let window = range.window(page_size())?;
    let longest = longest_segment(device.max_segment(), page_size());
    Ok(Segments::new(extents, window, longest))
}

/// Unmaps the first `mapped` entries. The first mapping also covers the `before_first` bytes before
/// the first entry.
fn unmap_entries(device: Device<'_>, before_first: u64, sg: &mut SgTable, mapped: u32) {
    let mut before = before_first;
    let mut left = mapped;
    // The closure returns no error.
    let _ = sg.for_each_entry(|entry| {
        if left > 0 {
            let len = before.wrapping_add(entry.dma_length.into());
            device.unmap(entry.dma_address.wrapping_sub(before), len);
            before = 0;
            left = left.wrapping_sub(1);
        }
        Ok(())
    });
}

/// A range of I/O virtual addresses in which this module maps extents one after the other without
/// gaps.
///
/// # Invariants
///
/// `nvpm_iova_alloc` has made `iova` for `device`, and `nvpm_iova_destroy` was not called for
/// `iova`.
#[must_use = "only `destroy` gives the addresses back"]
struct Iova {
    device: DeviceRef,
    iova: abi::nvpm_iova,
}

impl Iova {
    /// Maps `extents`, which have `len` bytes together. Returns the range with its address, or
    /// [`None`] if the kernel or the device does not support such a range.
    fn new(device: Device<'_>, extents: &[Extent], len: u64) -> Result<Option<(Self, Extent)>> {
        let mut iova = abi::nvpm_iova::default();
        let first = extents.first().map_or(0, |extent| extent.start);
        // SAFETY: By the invariant of `Device`, the pointer is to a device. `iova` is valid for
        // writing.
        if !unsafe { abi::nvpm_iova_alloc(device.as_ptr(), &mut iova, first, len) } {
            return Ok(None);
        }
        // INVARIANT: `nvpm_iova_alloc` has just made `iova` for this device.
        let mut this = Self {
            device: DeviceRef::new(device),
            iova,
        };
        let mut linked = 0;
        match this.link(extents, &mut linked) {
            Ok(start) => Ok(Some((this, Extent { start, len }))),
            Err(error) => {
                this.destroy(linked);
                Err(error)
            }
        }
    }

    /// Maps all extents into the range, and adds the number of mapped bytes to `linked`. Returns
    /// the bus address of the first byte. May sleep.
    fn link(&mut self, extents: &[Extent], linked: &mut u64) -> Result<u64> {
        let device = self.device.get().as_ptr();
        let mut turns = Turns::new();
        for &Extent { start, len } in extents {
            turns.step();
            // SAFETY: By the type's invariant the range belongs to this device.
            to_result(unsafe { abi::nvpm_iova_link(device, &mut self.iova, start, *linked, len) })?;
            *linked = linked.wrapping_add(len);
        }
        let mut start = 0;
        // SAFETY: By the type's invariant the range belongs to this device. `start` is valid for
        // writing.
        to_result(unsafe { abi::nvpm_iova_sync(device, &mut self.iova, *linked, &mut start) })?;
        Ok(start)
    }

    /// Unmaps the first `linked` bytes, and then frees the range of addresses.
    fn destroy(mut self, linked: u64) {
        let device = self.device.get().as_ptr();
        // SAFETY: By the type's invariant the range belongs to this device, and was not destroyed
        // before.
        unsafe { abi::nvpm_iova_destroy(device, &mut self.iova, linked) };
    }
}
