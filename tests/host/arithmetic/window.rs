// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The part of the pinned bytes that the RDMA core sees.

use std::cell::Cell;

use crate::{
    extents::{Extent, Range, GPU_PAGE},
    numbers::{address_and_len, points, PAGES},
    random,
};

/// The user's range widened to whole pages, as addresses, and whether they are all pinned.
fn reference(range: &Range, address: u64, len: u64, page: u64) -> Option<Extent> {
    let [start, pinned, address, len, page] =
        [range.start(), range.pinned(), address, len, page].map(u128::from);
    let first = address / page * page;
    let last = (address + len - 1) / page * page;
    let end = last + page;
    let inside = first >= start && end <= start + pinned;
    inside.then(|| Extent {
        start: u64::try_from(first - start).unwrap(),
        len: u64::try_from(end - first).unwrap(),
    })
}

/// Checks all page sizes, and returns whether there is a range at all.
fn check(address: u64, len: u64) -> bool {
    let Some(range) = Range::new(address, len) else {
        return false;
    };
    for page in PAGES {
        let window = range.window(page);
        let what = || format!("{len:#x} bytes at {address:#x} in pages of {page:#x}");
        assert_eq!(window, reference(&range, address, len, page), "{}", what());
        // With pages no larger than the GPU's there is nothing that could be missing.
        assert!(window.is_some() || page > GPU_PAGE, "{}", what());
        let Some(window) = window else { continue };
        let start = range.start() + window.start;
        let end = start + window.len;
        assert_eq!((start % page, end % page), (0, 0), "{}", what());
        assert!(start <= address && address + len <= end, "{}", what());
        assert!(
            address - start < page && end - (address + len) < page,
            "{}",
            what()
        );
    }
    true
}

#[test]
fn around_every_edge() {
    let points = points();
    let mut there = 0;
    for &address in &points {
        for &len in &points {
            there += u32::from(check(address, len));
            there += u32::from(check(address, len.wrapping_sub(address)));
        }
    }
    assert!(there > 5_000, "{there} ranges");
}

#[test]
fn anywhere() {
    const CASES: u32 = 50_000;
    let there = Cell::new(0);
    random::check(CASES, address_and_len(), |(address, len)| {
        there.set(there.get() + u32::from(check(address, len)));
    });
    assert!(there.get() > CASES / 10, "{} ranges", there.get());
}

#[test]
fn a_page_larger_than_the_gpus() {
    let page = 2 * GPU_PAGE;
    let whole = Some(Extent {
        start: 0,
        len: page,
    });
    // The even one of two GPU pages begins such a page, the odd one is within.
    assert_eq!(Range::new(page, page).unwrap().window(page), whole);
    assert_eq!(Range::new(page, GPU_PAGE).unwrap().window(page), None);
    assert_eq!(Range::new(page + GPU_PAGE, 1).unwrap().window(page), None);
    // Both GPU pages are needed for a user's two bytes around their border.
    let around = Range::new(page + GPU_PAGE - 1, 2).unwrap();
    assert_eq!(around.window(page), whole);
}
