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
/// `len > 0`; `start` and `pinned` are multiples of [`GPU_PAGE`]; the range
/// `address..address + len` lies within `start..start + pinned`, which does not wrap; the number
/// of GPU pages fits a `u32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    address: u64,
    len: u64,
    start: u64,
    pinned: u64,
}

impl Range {
    /// The range of `len` bytes at `address`, or [`None`] if it is empty, wraps around, or has
    /// more pages than the driver can count.
    pub(crate) fn new(address: u64, len: u64) -> Option<Self> {
        let end = address
            .checked_add(len)?
            .checked_next_multiple_of(GPU_PAGE)?;
        let start = address - address % GPU_PAGE;
        let pinned = end - start;
        if len == 0 || pinned / GPU_PAGE > u64::from(u32::MAX) {
            return None;
        }
        // INVARIANT: `end` is a multiple of the page, not below `address + len`, and did not wrap.
        Some(Self {
            address,
            len,
            start,
            pinned,
        })
    }

    /// First byte to pin, in the user's address space.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// Number of bytes to pin.
    pub(crate) fn pinned(&self) -> u64 {
        self.pinned
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
        let start = first.checked_sub(self.start)?;
        let len = end - first;
        if start.checked_add(len)? > self.pinned {
            return None;
        }
        Some(Extent { start, len })
    }
}

/// Merges neighbours: yields the maximal contiguous runs of what `inner` yields, in order.
#[derive(Clone)]
pub(crate) struct Merge<I> {
    inner: I,
    held: Option<Extent>,
}

/// Merges the neighbours among `extents`.
pub(crate) fn merge<I: Iterator<Item = Extent>>(extents: I) -> Merge<I> {
    Merge {
        inner: extents,
        held: None,
    }
}

impl<I: Iterator<Item = Extent>> Iterator for Merge<I> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        loop {
            let Some(next) = self.inner.next() else {
                return self.held.take();
            };
            let Some(held) = &mut self.held else {
                self.held = Some(next);
                continue;
            };
            match joined(*held, next) {
                Some(both) => *held = both,
                None => return self.held.replace(next),
            }
        }
    }
}

/// `a` followed by `b`, if they touch.
fn joined(a: Extent, b: Extent) -> Option<Extent> {
    if a.start.checked_add(a.len)? != b.start {
        return None;
    }
    Some(Extent {
        start: a.start,
        len: a.len.checked_add(b.len)?,
    })
}

/// Cuts extents down to a window of the bytes that they hold, counted through all of them, and
/// into segments no longer than the device takes.
#[derive(Clone)]
pub(crate) struct Segments<I> {
    inner: I,
    /// Bytes still to skip.
    skip: u64,
    /// Bytes still to yield.
    left: u64,
    /// What is left of the extent being cut.
    rest: Extent,
    longest: u64,
}

/// The segments of `extents` that hold the bytes of `window`, each of at most `longest` bytes
/// (not zero).
pub(crate) fn segments<I: Iterator<Item = Extent>>(
    extents: I,
    window: Extent,
    longest: u64,
) -> Segments<I> {
    Segments {
        inner: extents,
        skip: window.start,
        left: window.len,
        rest: Extent { start: 0, len: 0 },
        longest,
    }
}

impl<I: Iterator<Item = Extent>> Iterator for Segments<I> {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        if self.left == 0 {
            return None;
        }
        while self.rest.len == 0 {
            let extent = self.inner.next()?;
            let skipped = extent.len.min(self.skip);
            self.skip -= skipped;
            self.rest = Extent {
                start: extent.start.wrapping_add(skipped),
                len: extent.len - skipped,
            };
        }
        let len = self.rest.len.min(self.left).min(self.longest);
        let segment = Extent {
            start: self.rest.start,
            len,
        };
        self.rest = Extent {
            // Wraps only when nothing is left: an extent may end at the end of the bus.
            start: segment.start.wrapping_add(len),
            len: self.rest.len - len,
        };
        self.left -= len;
        Some(segment)
    }
}

/// The longest segment for a device that takes `device_limit` bytes, in whole pages of `page`
/// bytes (a power of two): a scatterlist counts in 32 bits.
pub(crate) fn longest_segment(device_limit: u32, page: u64) -> u64 {
    let limit = u64::from(device_limit);
    (limit - limit % page).max(page)
}
