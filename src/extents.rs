// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! From a user's address range to the entries of a scatterlist: arithmetic only.
//!
//! Three sizes meet here and none is assumed to equal another: the GPU page in which the driver
//! pins (64 KiB), the page of the kernel (4 KiB to 64 KiB) in which the RDMA core counts, and the
//! longest segment that the device takes.
//!
//! Sums that cannot wrap are written with `wrapping_add`, also in other files: an overflow check would compile
//! a call to `panic`, and objtool refuses a function that ends in one.

use core::slice;

use kernel::prelude::*;

use crate::turns::{before_chunk, Turns, AT_A_TIME};

/// Bytes of the page in which the NVIDIA driver pins: addresses and lengths are multiples of it.
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
    /// The range of `len` bytes at `address`, or [`None`] if it is empty, wraps around, or has
    /// more pages than the driver can count.
    pub(crate) fn new(address: u64, len: u64) -> Option<Self> {
        let end = address
            .checked_add(len)?
            .checked_next_multiple_of(GPU_PAGE)?;
        let pinned = end - (address - address % GPU_PAGE);
        if len == 0 || pinned / GPU_PAGE > u64::from(u32::MAX) {
            return None;
        }
        // INVARIANT: Neither sum wrapped.
        Some(Self { address, len })
    }

    /// First byte that the user asked for.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length that the user asked for, in bytes.
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// First byte to pin, in the user's address space: a multiple of [`GPU_PAGE`].
    pub(crate) fn start(&self) -> u64 {
        self.address - self.address % GPU_PAGE
    }

    /// Number of bytes to pin: a multiple of [`GPU_PAGE`].
    pub(crate) fn pinned_len(&self) -> u64 {
        // By the type's invariant nothing wraps here.
        let len = self.len.wrapping_add(self.address % GPU_PAGE);
        len.wrapping_add(GPU_PAGE - 1) & !(GPU_PAGE - 1)
    }

    /// Number of GPU pages to pin.
    pub(crate) fn pages(&self) -> u32 {
        // Lossless by the type's invariant.
        (self.pinned_len() / GPU_PAGE) as u32
    }

    /// The first GPU page alone.
    pub(crate) fn first_page(&self) -> Self {
        // INVARIANT: The page is part of the range.
        Self {
            address: self.start(),
            len: GPU_PAGE,
        }
    }

    /// The last GPU page alone.
    pub(crate) fn last_page(&self) -> Self {
        let end = self.start().wrapping_add(self.pinned_len());
        // INVARIANT: The page is part of the range.
        Self {
            address: end.wrapping_sub(GPU_PAGE),
            len: GPU_PAGE,
        }
    }

    /// The part of the pinned bytes that the RDMA core wants to see: the user's range widened to
    /// pages of `page` bytes (a power of two), as an offset from [`Self::start`] and a length.
    ///
    /// A page larger than the GPU's could reach beyond what is pinned: an error then.
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

/// Contiguous bytes on some bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte.
    pub(crate) start: u64,
    /// Number of bytes.
    pub(crate) len: u64,
}

/// The extents of a range, in order, neighbours merged. Most ranges have one extent, for which nothing
/// is allocated.
pub(crate) enum Extents {
    /// The only one.
    One(Extent),
    /// Two at least.
    Many(KVVec<Extent>),
}

impl Extents {
    /// The extents of `pages`, of `page` bytes each (not zero), at the addresses that `address` reads.
    pub(crate) fn collect<T>(pages: &[T], page: u64, address: impl Fn(&T) -> u64) -> Result<Self> {
        let (first, rest) = pages.split_first().ok_or(EIO)?;
        let bytes = page.wrapping_mul(pages.len() as u64);
        let mut extents = None;
        let mut start = address(first);
        let mut end = start.wrapping_add(page);
        for (number, some) in rest.chunks(AT_A_TIME).enumerate() {
            before_chunk(number);
            // Every page of every registration passes here: one comparison for a page that is a neighbour.
            for address in some.iter().map(&address) {
                // The end of the bus and its beginning are no neighbours.
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
                // Mostly all are as long as the first.
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

    /// All of them.
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
    /// First byte.
    pub(crate) start: u64,
    /// Number of bytes.
    pub(crate) len: u32,
}

/// The bytes of a window into some extents, counted through all of them, in segments no longer than
/// the device takes. An extent is cut into pieces from its beginning on, wherever the window begins: where one
/// segment follows another, the RDMA core's pages must end, and the user's range may begin anywhere in a page.
#[derive(Clone)]
pub(crate) struct Segments<'a> {
    extents: slice::Iter<'a, Extent>,
    /// The rest of the current extent.
    rest: Extent,
    /// Bytes of the next segment's piece that lie before it, outside the window.
    before: u64,
    /// Bytes to skip.
    skip: u64,
    /// The remaining bytes of the window.
    left: u64,
    longest: u32,
}

impl<'a> Segments<'a> {
    /// For the bytes of `window`, in segments of at most `longest` bytes (not zero).
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

    /// How many bytes of the first segment's piece lie before it.
    pub(crate) fn before_first(&self) -> u64 {
        let mut segments = self.clone();
        segments.next_extent();
        segments.before
    }

    /// How many there are. Fewer bytes than the window has would let the device use addresses that
    /// do not exist: an error then.
    pub(crate) fn entries(&self) -> Result<u32> {
        let mut segments = self.clone();
        let longest = u64::from(self.longest);
        let mut entries = 0_u64;
        let mut turns = Turns::new();
        while let Some(extent) = segments.next_extent() {
            // Mostly one, without a division.
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

    /// The part of the next extent that is in the window.
    fn next_extent(&mut self) -> Option<Extent> {
        while self.left > 0 {
            let extent = *self.extents.next()?;
            let skipped = extent.len.min(self.skip);
            self.skip -= skipped;
            self.before = match skipped {
                0 => 0,
                // By zero it would panic, which the compiler cannot know to be impossible.
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
        // Lossless: it is not longer than the longest.
        let len = len as u32;
        Some(Segment { start, len })
    }
}

/// The longest segment for a device that takes `device_limit` bytes, in whole pages of `page`
/// bytes (a power of two, of 32 bits). It is a power of two as well: the pieces of an extent begin as round as
/// the extent does, or as they are long.
pub(crate) fn longest_segment(device_limit: u32, page: u64) -> u32 {
    let page = u32::try_from(page).unwrap_or(u32::MAX);
    device_limit
        .checked_ilog2()
        .map_or(page, |log| 1_u32.wrapping_shl(log).max(page))
}
