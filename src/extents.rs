// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The arithmetic from a user's address range to the entries of a scatterlist.
//!
//! Three sizes can all differ: the GPU page in which the driver pins (64 KiB), the page of the
//! kernel in which the RDMA core counts (4 KiB to 64 KiB), and the longest segment that the device
//! accepts.
//!
//! Sums that cannot wrap are written with `wrapping_add`, also in other files: an overflow check
//! would compile a call to `panic`, and objtool refuses a function that ends in one.

use core::slice;

use kernel::prelude::*;

use crate::turns::{before_chunk, Turns, AT_A_TIME};

/// The bytes of a page of the NVIDIA driver, which pins only whole pages.
pub(crate) const GPU_PAGE: u64 = 64 * 1024;

/// A range that a user asked to register, and the whole GPU pages that cover the range.
///
/// # Invariants
///
/// `len > 0`; the pages that cover `address..address + len` do not wrap around, and their number
/// fits a `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    address: u64,
    len: u64,
}

impl Range {
    /// Makes the range of `len` bytes at `address`. Returns [`None`] if the range is empty, wraps
    /// around, or has more pages than the driver can count.
    pub(crate) fn new(address: u64, len: u64) -> Option<Self> {
        let end = address
            .checked_add(len)?
            .checked_next_multiple_of(GPU_PAGE)?;
        let pinned = end - (address - address % GPU_PAGE);
        if len == 0 || pinned / GPU_PAGE > u64::from(u32::MAX) {
            return None;
        }
        // INVARIANT: The length is not 0, no sum has wrapped, and the number of pages was checked.
        Some(Self { address, len })
    }

    /// Returns the first byte that the user asked for.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length that the user asked for, in bytes.
    #[allow(clippy::len_without_is_empty)] // A range is never empty.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the first byte to pin, in the user's address space: a multiple of [`GPU_PAGE`].
    pub(crate) fn start(&self) -> u64 {
        self.address - self.address % GPU_PAGE
    }

    /// Returns the number of bytes to pin: a multiple of [`GPU_PAGE`].
    pub(crate) fn pinned_len(&self) -> u64 {
        // By the type's invariant the sums do not wrap.
        let len = self.len.wrapping_add(self.address % GPU_PAGE);
        len.wrapping_add(GPU_PAGE - 1) & !(GPU_PAGE - 1)
    }

    /// Returns the number of GPU pages to pin.
    pub(crate) fn pages(&self) -> u32 {
        // By the type's invariant the number fits a `u32`.
        (self.pinned_len() / GPU_PAGE) as u32
    }

    /// Returns a range of only the first GPU page.
    pub(crate) fn first_page(&self) -> Self {
        // INVARIANT: The page is part of the range.
        Self {
            address: self.start(),
            len: GPU_PAGE,
        }
    }

    /// Returns a range of only the last GPU page.
    pub(crate) fn last_page(&self) -> Self {
        let end = self.start().wrapping_add(self.pinned_len());
        // INVARIANT: The page is part of the range.
        Self {
            address: end.wrapping_sub(GPU_PAGE),
            len: GPU_PAGE,
        }
    }

    /// Returns the part of the pinned bytes that the RDMA core must see: the user's range widened
    /// to pages of `page` bytes (a power of two), as an offset from [`Self::start`] and a length.
    ///
    /// Returns an error if the part reaches beyond the pinned bytes, which is possible if `page` is
    /// larger than the GPU's page.
    pub(crate) fn window(&self, page: u64) -> Result<Extent> {
        let first = self.address - self.address % page;
        let end = self
            .address
            .checked_add(self.len)
            .and_then(|end| end.checked_next_multiple_of(page))
            .ok_or(EINVAL)?;
        let start = first.checked_sub(self.start()).ok_or(EINVAL)?;
        let len = end - first;
        match start.checked_add(len) {
            Some(end) if end <= self.pinned_len() => Ok(Extent { start, len }),
            _ => Err(EINVAL),
        }
    }
}

/// Contiguous bytes on a bus, or in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first byte.
    pub(crate) start: u64,
    /// The number of bytes.
    pub(crate) len: u64,
}

/// The extents of a range, in order. Neighbours are merged. Most ranges have one extent, which
/// needs no allocation.
pub(crate) enum Extents {
    /// The only extent.
    One(Extent),
    /// Two or more extents.
    Many(KVVec<Extent>),
}

impl Extents {
    /// Collects the extents of `pages` of `page` bytes (not zero). `address` returns the address of
    /// a page.
    pub(crate) fn collect<T>(pages: &[T], page: u64, address: impl Fn(&T) -> u64) -> Result<Self> {
        let (first, rest) = pages.split_first().ok_or(EIO)?;
        let bytes = page.wrapping_mul(pages.len() as u64);
        let mut extents = None;
        let mut start = address(first);
        let mut end = start.wrapping_add(page);
        for (number, some) in rest.chunks(AT_A_TIME).enumerate() {
            before_chunk(number);
            // This loop sees every page of every registration, so a neighbour costs only a
            // comparison.
            for address in some.iter().map(&address) {
                // The last byte of the bus and the first byte are not neighbours.
                if address == end && end > start {
                    end = end.wrapping_add(page);
                    continue;
                }
                let len = end.wrapping_sub(start);
                Self::push(&mut extents, Extent { start, len }, bytes)?;
                start = address;
                end = start.wrapping_add(page);
            }
        }
        let len = end.wrapping_sub(start);
        Self::push(&mut extents, Extent { start, len }, bytes)?;
        extents.ok_or(EIO)
    }

    /// Adds the next extent of a range of `bytes`.
    fn push(extents: &mut Option<Self>, extent: Extent, bytes: u64) -> Result {
        match extents {
            None => *extents = Some(Self::One(extent)),
            Some(Self::One(first)) => {
                // Usually all extents are as long as the first extent.
                let expected = bytes.div_ceil(first.len.max(1)).max(2);
                let expected = usize::try_from(expected).map_err(|_| ENOMEM)?;
                let mut many = KVVec::with_capacity(expected, GFP_KERNEL)?;
                many.push(*first, GFP_KERNEL)?;
                many.push(extent, GFP_KERNEL)?;
                *extents = Some(Self::Many(many));
            }
            Some(Self::Many(many)) => many.push(extent, GFP_KERNEL)?,
        }
        Ok(())
    }

    /// Returns all extents.
    pub(crate) fn as_slice(&self) -> &[Extent] {
        match self {
            Self::One(only) => slice::from_ref(only),
            Self::Many(many) => many,
        }
    }
}

/// The bytes of one scatterlist entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first byte.
    pub(crate) start: u64,
    /// The number of bytes.
    pub(crate) len: u32,
}

/// The segments of a window into extents. The window counts bytes across all extents, and a segment
/// is not longer than the device accepts. An extent is cut into pieces from its own beginning, even
/// if the window begins later, because a page of the RDMA core must end at the end of each segment,
/// and the user's range may begin anywhere in a page.
#[derive(Clone)]
pub(crate) struct Segments<'a> {
    extents: slice::Iter<'a, Extent>,
    /// The rest of the current extent.
    rest: Extent,
    /// The bytes of the next segment's piece that lie before the segment, outside the window.
    before: u64,
    /// The bytes before the window that are still to be skipped.
    skip: u64,
    /// The remaining bytes of the window.
    left: u64,
    longest: u32,
}

impl<'a> Segments<'a> {
    /// Makes segments of at most `longest` bytes (not zero) for the bytes of `window`.
    pub(crate) fn new(extents: &'a [Extent], window: Extent, longest: u32) -> Self {
        Self {
            extents: extents.iter(),
            rest: Extent { start: 0, len: 0 },
            before: 0,
            skip: window.start,
            left: window.len,
            longest,
        }
    }

    /// Returns how many bytes of the first segment's piece lie before the segment.
    pub(crate) fn before_first(&self) -> u64 {
        let mut segments = self.clone();
        segments.next_extent();
        segments.before
    }

    /// Returns the number of segments, or an error if the extents have fewer bytes than the window.
    /// The device could otherwise use addresses that do not exist.
    pub(crate) fn entries(&self) -> Result<u32> {
        let mut segments = self.clone();
        let longest = u64::from(self.longest);
        let mut entries = 0_u64;
        let mut turns = Turns::new();
        while let Some(extent) = segments.next_extent() {
            // Usually there is one segment, which needs no division.
            let len = extent.len.saturating_add(segments.before);
            let some = match len <= longest {
                true => 1,
                false => len.div_ceil(longest),
            };
            entries = entries.wrapping_add(some);
            turns.step();
        }
        if segments.left != 0 || entries == 0 {
            return Err(EIO);
        }
        u32::try_from(entries).map_err(|_| ENOMEM)
    }

    /// Returns the part of the next extent that is in the window.
    fn next_extent(&mut self) -> Option<Extent> {
        while self.left > 0 {
            let extent = *self.extents.next()?;
            let skipped = extent.len.min(self.skip);
            self.skip -= skipped;
            self.before = match skipped {
                0 => 0,
                // A plain `%` could panic, because the compiler cannot know that this is not 0.
                skipped => skipped.checked_rem(u64::from(self.longest)).unwrap_or(0),
            };
            let len = (extent.len - skipped).min(self.left);
            self.left -= len;
            if len > 0 {
                let start = extent.start.wrapping_add(skipped);
                return Some(Extent { start, len });
            }
        }
        None
    }
}

impl Iterator for Segments<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        if self.rest.len == 0 {
            self.rest = self.next_extent()?;
        }
        let len = self.rest.len.min(u64::from(self.longest) - self.before);
        self.before = 0;
        let start = self.rest.start;
        // The sum wraps if the extent ends at the end of the bus; then no bytes remain.
        self.rest.start = start.wrapping_add(len);
        self.rest.len -= len;
        // The length is at most `longest`, so it fits a `u32`.
        let len = len as u32;
        Some(Segment { start, len })
    }
}

/// Returns the longest segment for a device that accepts `device_limit` bytes, in whole pages of
/// `page` bytes (a power of two, of 32 bits). The result is a power of two, so that each piece of
/// an extent is as aligned as the extent, or aligned to the piece's length.
pub(crate) fn longest_segment(device_limit: u32, page: u64) -> u32 {
    let page = u32::try_from(page).unwrap_or(u32::MAX);
    device_limit
        .checked_ilog2()
        .map_or(page, |log| 1_u32.wrapping_shl(log).max(page))
}
