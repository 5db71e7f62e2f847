// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests which GPU pages cover a user's range, and which part of the pages the RDMA core sees.

use std::cell::Cell;

use proptest::{
    prelude::{any, prop_oneof, Strategy},
    sample::select,
};

use crate::{
    error::code::EINVAL,
    extents::{Range, GPU_PAGE},
    random,
    units::extent,
};

/// The page sizes of kernels, and a size that is larger than the GPU's page.
pub(crate) const PAGES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 128 << 10];

/// Returns the whole pages that cover `len` bytes at `address`. The first number of the result is
/// the first byte, and the second number is the number of bytes. The type `u128` is large enough
/// for every sum.
fn cover(address: u64, len: u64, page: u64) -> (u128, u128) {
    let [address, len, page] = [address, len, page].map(u128::from);
    let (first, last) = (address / page, (address + len - 1) / page);
    (first * page, (last + 1 - first) * page)
}

/// Checks the range, and its window for each page size. Returns whether the range is valid.
pub(crate) fn check(address: u64, len: u64) -> bool {
    let what = format!("{len:#x} bytes at {address:#x}");
    let range = Range::new(address, len);
    let found = range.map(|range| (u128::from(range.start()), u128::from(range.pinned_len())));
    let gpu_page = u128::from(GPU_PAGE);
    // The end of the pages must also be an address of 64 bits, so a range in the last page of all
    // addresses is invalid.
    let fits = |&(start, pinned): &_| start + pinned < 1 << 64 && pinned / gpu_page < 1 << 32;
    let expected = (len > 0).then(|| cover(address, len, GPU_PAGE));
    let expected = expected.filter(fits);
    assert_eq!(found, expected, "{what}");
    let (Some(range), Some((start, pinned))) = (range, expected) else {
        return false;
    };
    assert_eq!((range.address(), range.len()), (address, len));
    assert_eq!(u128::from(range.pages()), pinned / gpu_page);
    let last = start + pinned - gpu_page;
    for (page, start) in [(range.first_page(), start), (range.last_page(), last)] {
        assert_eq!(
            (u128::from(page.start()), page.pinned_len()),
            (start, GPU_PAGE)
        );
    }
    for page in PAGES {
        let (first, len) = cover(address, len, page);
        // A window of pages that are at most as large as the GPU's is always inside the pinned
        // bytes.
        let inside = page <= GPU_PAGE || (first >= start && first + len <= start + pinned);
        let window = inside.then(|| extent((first - start) as u64, len as u64));
        assert_eq!(range.window(page), window.ok_or(EINVAL), "{what}");
    }
    true
}

/// Returns numbers that are edges or next to an edge. The edges are multiples of pages, powers of
/// two, and the largest number of bytes whose pages the driver can count.
fn points() -> Vec<u64> {
    // The largest number of GPU pages that the driver can count.
    let most = u64::from(u32::MAX) * GPU_PAGE;
    let mut edges = vec![0, 1 << 31, 1 << 32, 1 << 47, most, 1 << 48, 1 << 63];
    for page in PAGES {
        edges.extend([page, 2 * page, 3 * page]);
        // Adds the same distances, but measured from the end of the address space.
        edges.extend([page.wrapping_neg(), (2 * page).wrapping_neg()]);
    }
    let near = |edge: &u64| [0, 1, 2, 3, 4].map(|step| edge.wrapping_add(step).wrapping_sub(2));
    edges.iter().flat_map(near).collect()
}

#[test]
fn around_every_edge() {
    let points = points();
    for &address in &points {
        for &len in &points {
            check(address, len);
            // Uses the second number as the end of the range instead of the length.
            check(address, len.wrapping_sub(address));
        }
    }
}

/// Returns a strategy for numbers in which each length in bits is equally frequent.
pub(crate) fn of_any_size() -> impl Strategy<Value = u64> {
    (0..=64_u32, any::<u64>()).prop_map(|(bits, number)| number.checked_shr(64 - bits).unwrap_or(0))
}

/// Returns a strategy for an address or a length. The number may be small, near the end of all
/// addresses, at an edge, or any other number.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        of_any_size(),
        of_any_size().prop_map(u64::wrapping_neg),
        select(points()),
        any::<u64>(),
    ]
}

#[test]
fn anywhere() {
    const CASES: u32 = 50_000;
    let there = Cell::new(0);
    random::check(CASES, (number(), number()), |(address, len)| {
        for len in [len, len.wrapping_sub(address)] {
            there.set(there.get() + u32::from(check(address, len)));
        }
    });
    // The test proves little unless both valid and invalid ranges are frequent.
    let expected = CASES / 5..CASES / 5 * 9;
    assert!(expected.contains(&there.get()), "{there:?}");
}
