// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The arithmetic from a user's address range to the entries of a scatterlist.
//!
//! The arithmetic uses three units, which can all differ. The driver pins GPU pages of 64 KiB. The
//! RDMA core counts in the kernel's pages, which have 4 KiB to 64 KiB. Each device limits the
//! length of a segment.
//!
//! In this file and in others, a sum that cannot wrap is nevertheless written with `wrapping_add`.
//! The operator `+` would add an overflow check with a call to `panic`, as would `%`, `div_ceil` and
//! `enumerate` with other numbers. No such call may be compiled (`check panics`): a callback must not
//! panic, and objtool refuses a function that ends in such a call.

use core::slice;

use kernel::prelude::*;

use crate::resched::{before_chunk, Turns, AT_A_TIME};

/// The number of bytes in a page of the NVIDIA driver. The driver pins only whole pages.
pub(crate) const GPU_PAGE: u64 = 64 * 1024;

/// An address range that a user asked to register. The GPU pages that cover the range are pinned.
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
        let pinned = end.wrapping_sub(address - address % GPU_PAGE);
        if len == 0 || pinned / GPU_PAGE > u64::from(u32::MAX) {
            return None;
        }
        // INVARIANT: The checks above have refused a length of 0, sums that wrap, and too many
        // pages.
        Some(Self { address, len })
    }

    /// Returns the address of the first byte that the user asked for.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Returns the length that the user asked for, in bytes.
    #[allow(clippy::len_without_is_empty)] // A range is never empty.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the address of the first byte to pin, in the user's address space. The address is a
    /// multiple of [`GPU_PAGE`].
    pub(crate) fn start(&self) -> u64 {
        self.address - self.address % GPU_PAGE
    }

    /// Returns the number of bytes to pin, which is a multiple of [`GPU_PAGE`].
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
        // INVARIANT: A range has at least one page, so the first page belongs to this range.
        Self {
            address: self.start(),
            len: GPU_PAGE,
        }
    }

    /// Returns a range of only the last GPU page.
    pub(crate) fn last_page(&self) -> Self {
        let end = self.start().wrapping_add(self.pinned_len());
        // INVARIANT: A range has at least one page, so the last page belongs to this range.
        Self {
            address: end.wrapping_sub(GPU_PAGE),
            len: GPU_PAGE,
        }
    }

    /// Returns the part of the pinned bytes that the RDMA core must receive. The part consists of
    /// the pages that cover the user's range. Each page has `page` bytes, and `page` must be a
    /// power of two. The result begins at an offset from [`Self::start`].
    ///
    /// Returns an error if the pages reach beyond the pinned bytes. The pages can do so only if
    /// `page` is larger than [`GPU_PAGE`].
    pub(crate) fn window(&self, page: u64) -> Result<Extent> {
        let first = self.address & !page.wrapping_sub(1);
        let end = self
            .address
            .checked_add(self.len)
            .and_then(|end| end.checked_next_multiple_of(page))
            .ok_or(EINVAL)?;
        let start = first.checked_sub(self.start()).ok_or(EINVAL)?;
        let len = end.wrapping_sub(first);
        match start.checked_add(len) {
            Some(end) if end <= self.pinned_len() => Ok(Extent { start, len }),
            _ => Err(EINVAL),
        }
    }
}

/// Contiguous bytes on a bus, or in the pinned bytes of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The first byte.
    pub(crate) start: u64,
    /// The number of bytes.
    pub(crate) len: u64,
}

/// The extents of a range, in order. Pages that follow each other on the bus are in one extent.
/// Most ranges have only one extent, for which this type allocates no memory.
pub(crate) enum Extents {
    /// The only extent.
    One(Extent),
    /// Two or more extents.
    Many(KVVec<Extent>),
}

impl Extents {
    /// Collects the extents of `pages`. Each page has `page` bytes, and `page` must not be 0.
    /// `address` returns the bus address of a page.
    pub(crate) fn collect<T>(pages: &[T], page: u64, address: impl Fn(&T) -> u64) -> Result<Self> {
        let (first, rest) = pages.split_first().ok_or(EIO)?;
        let bytes = page.wrapping_mul(pages.len() as u64);
        let mut extents = None;
        let mut start = address(first);
        let mut end = start.wrapping_add(page);
        let mut number: usize = 0;
        for some in rest.chunks(AT_A_TIME) {
            before_chunk(number);
            number = number.wrapping_add(1);
            // This loop handles every page of every registration. Usually a page follows the page
            // before it, so this case must be cheap.
            for address in some.iter().map(&address) {
                // If the extent ends at the end of the bus, `end` has wrapped around, and a page at
                // address 0 does not continue the extent.
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

    /// Adds the next extent of a range that has `bytes` bytes in all.
    fn push(extents: &mut Option<Self>, extent: Extent, bytes: u64) -> Result {
        match extents {
            None => *extents = Some(Self::One(extent)),
            Some(Self::One(first)) => {
                // The extents usually have equal lengths, so the first length predicts the number
                // of extents.
                let expected = divided_up(bytes, first.len).max(2);
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

/// An iterator over the segments of a window. The window is a part of the bytes that all extents
/// have together. Each extent is cut into pieces of the longest length that the device accepts,
/// beginning with the first byte of the extent. A segment is the part of a piece that is in the
/// window. The first piece does not begin with the window, because each segment must end where a
/// page of the RDMA core ends, and the user's range may begin anywhere in such a page.
#[derive(Clone)]
pub(crate) struct Segments<'a> {
    extents: slice::Iter<'a, Extent>,
    /// The part of the current extent that is in the window and not in a segment yet.
    rest: Extent,
    /// The next piece begins this number of bytes before its segment. These bytes are outside the
    /// window.
    before: u64,
    /// The number of bytes before the window that are still to be skipped.
    skip: u64,
    /// The number of bytes of the window that are after the current extent.
    left: u64,
    longest: u32,
}

impl<'a> Segments<'a> {
    /// Makes segments of at most `longest` bytes for the bytes of `window`. `longest` must not be
    /// 0.
    pub(crate) fn new(extents: &'a [Extent], window: Extent, longest: u32) -> Self {
        let mut segments = Self {
            extents: extents.iter(),
            rest: Extent { start: 0, len: 0 },
            before: 0,
            skip: window.start,
            left: window.len,
            longest,
        };
        if let Some(first) = segments.next_extent() {
            segments.rest = first;
        }
        segments
    }

    /// Returns how many bytes of the first piece are before the first segment. The iterator must
    /// not have returned a segment yet.
    pub(crate) fn before_first(&self) -> u64 {
        self.before
    }

    /// Returns the number of segments. Returns an error if the extents end before the window ends,
    /// because the device could otherwise use addresses that do not exist. Also returns an error if
    /// there are no segments, or more than a `u32` can count.
    pub(crate) fn entries(&self) -> Result<u32> {
        let mut entries = self.entries_of(self.rest);
        // Usually the window ends in the first extent.
        if self.left > 0 {
            let mut others = self.clone();
            let mut turns = Turns::new();
            while let Some(extent) = others.next_extent() {
                entries = entries.wrapping_add(others.entries_of(extent));
                turns.step();
            }
            if others.left > 0 {
                return Err(EIO);
            }
        }
        match entries {
            0 => Err(EIO),
            entries => u32::try_from(entries).map_err(|_| ENOMEM),
        }
    }

    /// Returns the number of segments in `extent`, the current extent.
    fn entries_of(&self, extent: Extent) -> u64 {
        let longest = u64::from(self.longest);
        match extent.len.saturating_add(self.before) {
            0 => 0,
            // Usually an extent is one segment. That case needs no division.
            len if len <= longest => 1,
            len => divided_up(len, longest),
        }
    }

    /// Returns the part of the next extent that is in the window.
    fn next_extent(&mut self) -> Option<Extent> {
        while self.left > 0 {
            let extent = *self.extents.next()?;
            let skipped = extent.len.min(self.skip);
            self.skip -= skipped;
            self.before = match skipped {
                0 => 0,
                // A plain `%` would compile a call to `panic`, because the compiler does not know
                // that `longest` is not 0.
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
        let len = self
            .rest
            .len
            .min(u64::from(self.longest).wrapping_sub(self.before));
        self.before = 0;
        let start = self.rest.start;
        // The sum wraps if the extent ends at the end of the bus. No bytes of the extent remain
        // then.
        self.rest.start = start.wrapping_add(len);
        self.rest.len -= len;
        // The length is at most `longest`, so it fits a `u32`.
        let len = len as u32;
        Some(Segment { start, len })
    }
}

/// Returns `dividend / divisor`, rounded up. `dividend` must not be 0. For a divisor of 0 the result
/// is 0.
fn divided_up(dividend: u64, divisor: u64) -> u64 {
    let below = dividend.wrapping_sub(1).checked_div(divisor);
    below.map_or(0, |quotient| quotient.wrapping_add(1))
}

/// Returns the length of the longest segment for a device that accepts at most `device_limit`
/// bytes. The result is a power of two, so each piece is aligned to its own length, or at least as
/// well as its extent. The result is at least `page`, the kernel's page size. `page` must be a
/// power of two that fits 32 bits.
pub(crate) fn longest_segment(device_limit: u32, page: u64) -> u32 {
    let page = u32::try_from(page).unwrap_or(u32::MAX);
    device_limit
        .checked_ilog2()
        .map_or(page, |log| 1_u32.wrapping_shl(log).max(page))
}
