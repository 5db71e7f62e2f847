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
    rt::complain, //
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
        runs(addresses, page, |&address| address, each)
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

/// A mapping that we made, of where pinned memory is.
#[allow(dead_code)] // What is in it is there to be dropped.
pub(crate) enum OwnMapping {
    /// The device uses physical addresses.
    Direct,
    /// Each piece has an address of its own.
    Pieces(MappedPieces),
    /// All of them are in one range of addresses.
    Range(MappedRange),
}

/// Memory to map.
pub(crate) enum Placed<'a> {
    /// It is known where.
    At(Pieces),
    /// The driver's table says where.
    By(&'a PersistentPin, &'a Range),
}

impl Placed<'_> {
    /// Gives all pieces to `each`, until that fails.
    #[inline(never)] // As above.
    fn extents(&self, mut each: impl FnMut(Extent) -> Result<(), Errno>) -> Result<(), Errno> {
        match self {
            Self::At(pieces) => pieces.all().iter().copied().try_for_each(each),
            Self::By(pin, range) => pin.extents(range, &mut each),
        }
    }

    /// The first piece, and the bytes of all of them.
    fn begins(&self) -> Result<(Extent, u64), Errno> {
        let (first, bytes) = match self {
            Self::At(pieces) => {
                let all = pieces.all();
                // No overflow: together they are no longer than what is pinned.
                let sum = |sum: u64, piece: &Extent| sum.wrapping_add(piece.len);
                (all.first().copied(), all.iter().fold(0, sum))
            }
            Self::By(pin, range) => {
                let mut first = None;
                let ended = pin.extents(range, |piece| {
                    first = Some(piece);
                    // That is enough.
                    Err(Errno::IO)
                });
                if first.is_none() {
                    ended?;
                }
                (first, range.pinned())
            }
        };
        Ok((first.ok_or(Errno::IO)?, bytes))
    }

    /// All pieces.
    fn pieces(self) -> Result<Pieces, Errno> {
        match self {
            Self::At(pieces) => Ok(pieces),
            Self::By(pin, range) => pin.pieces(range),
        }
    }
}

impl OwnMapping {
    /// Maps `memory` for `device`, and gives the bus addresses that it shall use to `each`.
    pub(crate) fn new(
        device: Device,
        memory: Placed<'_>,
        mut each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<Self, Errno> {
        if device.direct() {
            return Self::direct(device, &memory, each);
        }
        let (first, bytes) = memory.begins()?;
        let pieces = if first.len == bytes {
            Pieces::One(first)
        } else if let Some((range, extent)) = MappedRange::new(device, &memory, first, bytes)? {
            each(extent)?;
            return Ok(Self::Range(range));
        } else {
            memory.pieces()?
        };
        let mapped = MappedPieces::new(device, pieces)?;
        mapped.pieces.all().iter().copied().try_for_each(each)?;
        Ok(Self::Pieces(mapped))
    }

    /// What the device cannot reach is above what it can: the highest piece is looked at for all.
    fn direct(
        device: Device,
        memory: &Placed<'_>,
        mut each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<Self, Errno> {
        let mut highest = Extent { start: 0, len: 1 };
        memory.extents(|piece| {
            if piece.last() >= highest.last() {
                highest = piece;
            }
            each(piece)
        })?;
        match map_one(device, highest)? {
            start if start == highest.start => Ok(Self::Direct),
            _ => Err(Errno::IO),
        }
    }
}

/// Pieces that the device reaches, each at its own address.
///
/// # Invariants
///
/// The first `mapped` of them are at addresses that the device's DMA layer gave; those behind are
/// physical.
pub(crate) struct MappedPieces {
    device: Device,
    pieces: Pieces,
    mapped: usize,
}

impl MappedPieces {
    /// Maps them: physical addresses become bus addresses in place.
    fn new(device: Device, pieces: Pieces) -> Result<Self, Errno> {
        // INVARIANT: None is mapped; if one fails below, dropping undoes those before it.
        let mut this = Self {
            device,
            pieces: pieces.fitting()?,
            mapped: 0,
        };
        for piece in this.pieces.all_mut() {
            piece.start = map_one(device, *piece)?;
            // INVARIANT: One more is mapped.
            this.mapped += 1;
        }
        Ok(this)
    }
}

impl Drop for MappedPieces {
    fn drop(&mut self) {
        for piece in self.pieces.all().iter().take(self.mapped) {
            unmap_one(self.device, *piece);
        }
    }
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
    /// The range for `memory`, of `len` bytes with the piece `first` at its beginning, and where it
    /// is; none if this kernel or this device has no such thing.
    fn new(
        device: Device,
        memory: &Placed<'_>,
        first: Extent,
        len: u64,
    ) -> Result<Option<(Self, Extent)>, Errno> {
        let mut range = abi::nvpm_range::default();
        // SAFETY: By the invariant of `Device`; `range` is valid for writing.
        if !unsafe { abi::nvpm_range_begin(device.as_ptr(), &mut range, first.start, len) } {
            return Ok(None);
        }
        // INVARIANT: Just taken.
        let mut this = Self { device, range };
        memory.extents(|piece| {
            // SAFETY: By the type's invariant.
            let ret = unsafe {
                abi::nvpm_range_add(device.as_ptr(), &mut this.range, piece.start, piece.len)
            };
            Errno::check(ret)
        })?;
        let mut start = 0;
        // SAFETY: As above; `start` is valid for writing.
        let ret = unsafe { abi::nvpm_range_end(device.as_ptr(), &mut this.range, &mut start) };
        Errno::check(ret)?;
        Ok(Some((this, Extent { start, len })))
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_range_undo(self.device.as_ptr(), &mut self.range) };
    }
}
