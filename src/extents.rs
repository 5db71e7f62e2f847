// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! From a user's address range to scatterlist entries: pure arithmetic.
//!
//! Three sizes meet here and none is assumed to equal another: the GPU page in which the driver
//! pins (64 KiB), the page of the kernel (4 KiB to 64 KiB) in which the RDMA core counts, and the
//! longest segment that the device takes.

/// Bytes of the page in which the NVIDIA driver pins: addresses and lengths are multiples of it.
pub(crate) const GPU_PAGE: u64 = 64 * 1024;

/// A run of bytes that is contiguous on some bus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte.
    pub(crate) start: u64,
    /// Number of bytes.
    pub(crate) len: u64,
}

/// What a user asked to register, and the whole GPU pages that cover it.
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
        // INVARIANT: Neither sum did wrap.
        Some(Self { address, len })
    }

    /// A range again, from its [`Self::address`] and [`Self::len`].
    pub(crate) fn again(address: u64, len: u64) -> Self {
        // INVARIANT: It was one before.
        Self { address, len }
    }

    /// First byte that the user asked for.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }

    /// Number of bytes that the user asked for.
    #[allow(clippy::len_without_is_empty)] // It never is.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// First byte to pin, in the user's address space: a multiple of [`GPU_PAGE`].
    pub(crate) fn start(&self) -> u64 {
        self.address - self.address % GPU_PAGE
    }

    /// Number of bytes to pin: a multiple of [`GPU_PAGE`].
    pub(crate) fn pinned(&self) -> u64 {
        // By the type's invariant nothing wraps here.
        let len = self.len.wrapping_add(self.address % GPU_PAGE);
        len.wrapping_add(GPU_PAGE - 1) & !(GPU_PAGE - 1)
    }

    /// Number of GPU pages to pin.
    pub(crate) fn pages(&self) -> u32 {
        // Lossless by the type's invariant.
        (self.pinned() / GPU_PAGE) as u32
    }

    /// The first GPU page alone.
    pub(crate) fn first_page(&self) -> Self {
        // INVARIANT: It is one of the range's pages.
        Self {
            address: self.start(),
            len: GPU_PAGE,
        }
    }

    /// The last GPU page alone.
    pub(crate) fn last_page(&self) -> Self {
        // INVARIANT: As above.
        Self {
            address: self
                .start()
                .wrapping_add(self.pinned())
                .wrapping_sub(GPU_PAGE),
            len: GPU_PAGE,
        }
    }

    /// The part of the pinned bytes that the RDMA core wants to see: the user's range widened to
    /// pages of `page` bytes, as an offset from [`Self::start`] and a length.
    ///
    /// `page` is a power of two. A page larger than the GPU's could reach beyond what is pinned;
    /// [`None`] then.
    pub(crate) fn window(&self, page: u64) -> Option<Extent> {
        let first = self.address - self.address % page;
        let end = self
            .address
            .checked_add(self.len)?
            .checked_next_multiple_of(page)?;
        let start = first.checked_sub(self.start())?;
        let len = end - first;
        if start.checked_add(len)? > self.pinned() {
            return None;
        }
        Some(Extent { start, len })
    }
}

/// Pages that [`runs`] looks at before it lets others have the processor.
pub(crate) const AT_A_TIME: usize = 1 << 12;

/// Gives the maximal contiguous runs of `pages`, of `page` bytes each (not zero), whose addresses
/// `address` returns, to `each`, in order, until that fails. A region may have millions of pages:
/// `pause` is called after each [`AT_A_TIME`].
#[inline]
pub(crate) fn runs<T, E>(
    pages: &[T],
    page: u64,
    address: impl Fn(&T) -> u64,
    pause: impl Fn(),
    mut each: impl FnMut(Extent) -> Result<(), E>,
) -> Result<(), E> {
    let Some((first, rest)) = pages.split_first() else {
        return Ok(());
    };
    let mut start = address(first);
    let mut end = start.wrapping_add(page);
    for (number, some) in rest.chunks(AT_A_TIME).enumerate() {
        if number > 0 {
            pause();
        }
        // Every page of every region passes here, so this does no more with one than to see whether
        // it is the one that is expected.
        for address in some.iter().map(&address) {
            // The end of the bus and its beginning are no neighbours.
            if address == end && end > start {
                end = end.wrapping_add(page);
                continue;
            }
            each(Extent {
                start,
                len: end.wrapping_sub(start),
            })?;
            start = address;
            end = start.wrapping_add(page);
        }
    }
    each(Extent {
        start,
        len: end.wrapping_sub(start),
    })
}

/// A piece of an extent that fits an entry of a scatterlist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// First byte.
    pub(crate) start: u64,
    /// Number of bytes.
    pub(crate) len: u32,
}

/// Cuts extents down to a window of the bytes that they hold, counted through all of them, and
/// into segments no longer than the device takes.
pub(crate) struct Cut {
    /// Bytes still to skip.
    skip: u64,
    /// Bytes still to give.
    left: u64,
    longest: u32,
}

impl Cut {
    /// For the bytes of `window`, in segments of at most `longest` bytes (not zero).
    pub(crate) fn new(window: Extent, longest: u32) -> Self {
        Self {
            skip: window.start,
            left: window.len,
            longest,
        }
    }

    /// Gives the segments of `extent`, which follows those before, to `each`, until that fails; and
    /// with each, whether there is more of the window behind it.
    #[inline]
    pub(crate) fn extent<E>(
        &mut self,
        extent: Extent,
        mut each: impl FnMut(Segment, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let longest = u64::from(self.longest);
        // Nearly all are within the window, and not too long.
        let easy = 1..=self.left.min(longest);
        if self.skip == 0 && easy.contains(&extent.len) {
            self.left -= extent.len;
            let segment = Segment {
                start: extent.start,
                // Lossless: it is not longer than the longest.
                len: extent.len as u32,
            };
            return each(segment, self.left > 0);
        }
        self.parts(extent, each)
    }

    #[inline(never)]
    fn parts<E>(
        &mut self,
        extent: Extent,
        mut each: impl FnMut(Segment, bool) -> Result<(), E>,
    ) -> Result<(), E> {
        let skipped = extent.len.min(self.skip);
        self.skip -= skipped;
        // Where an extent ends at the end of the bus this wraps, but only when nothing is left.
        let mut start = extent.start.wrapping_add(skipped);
        let mut rest = (extent.len - skipped).min(self.left);
        self.left -= rest;
        while rest > 0 {
            // Lossless, as above.
            let len = rest.min(u64::from(self.longest)) as u32;
            rest -= u64::from(len);
            each(Segment { start, len }, rest > 0 || self.left > 0)?;
            start = start.wrapping_add(u64::from(len));
        }
        Ok(())
    }

    /// Bytes of the window that no extent has had yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }
}

/// The longest segment for a device that takes `device_limit` bytes, in whole pages of `page`
/// bytes (a power of two, of 32 bits). It is a power of two as well: segments are mapped one by one,
/// and the one that follows begins at an address of the bus that is as round as the user's.
pub(crate) fn longest_segment(device_limit: u32, page: u64) -> u32 {
    let page = u32::try_from(page).unwrap_or(u32::MAX);
    device_limit
        .checked_ilog2()
        .map_or(page, |log| 1_u32.wrapping_shl(log).max(page))
}
