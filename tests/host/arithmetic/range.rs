// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The GPU pages that cover what a user asked for.

use std::cell::Cell;

use crate::{
    extents::{Range, GPU_PAGE},
    numbers::{address_and_len, points, MOST_PAGES},
    random,
};

/// First byte and number of bytes of the pages, counted page by page in numbers that hold all.
fn reference(address: u64, len: u64) -> Option<(u128, u128)> {
    let page = u128::from(GPU_PAGE);
    let last_byte = (u128::from(address) + u128::from(len)).checked_sub(1)?;
    let (first, last) = (u128::from(address) / page, last_byte / page);
    let end = (last + 1) * page;
    let count = last + 1 - first;
    // The end of the pages must be an address too: not even the page at the very end will do.
    (len > 0 && end < 1 << 64 && count < 1 << 32).then_some((first * page, count * page))
}

fn check(address: u64, len: u64) -> Option<Range> {
    let range = Range::new(address, len);
    let found = range.map(|range| (u128::from(range.start()), u128::from(range.pinned())));
    assert_eq!(
        found,
        reference(address, len),
        "{len:#x} bytes at {address:#x}"
    );
    if let Some(range) = range {
        let page = |page: Range| (page.start(), page.pinned());
        let last = range.start() + (range.pinned() - GPU_PAGE);
        assert_eq!(page(range.first_page()), (range.start(), GPU_PAGE));
        assert_eq!(page(range.last_page()), (last, GPU_PAGE));
        assert_eq!(u64::from(range.pages()), range.pinned() / GPU_PAGE);
    }
    range
}

#[test]
fn around_every_edge() {
    let points = points();
    for &address in &points {
        for &len in &points {
            check(address, len);
            // The same point as the end of the range.
            check(address, len.wrapping_sub(address));
        }
    }
}

#[test]
fn anywhere() {
    const CASES: u32 = 50_000;
    let there = Cell::new(0);
    random::check(CASES, address_and_len(), |(address, len)| {
        there.set(there.get() + u32::from(check(address, len).is_some()));
    });
    // Neither answer may be a rare one here, or the test would say little.
    let there = there.get();
    assert!(
        (CASES / 10..CASES / 10 * 9).contains(&there),
        "{there} ranges"
    );
}

#[test]
fn what_is_refused() {
    let last_page = GPU_PAGE.wrapping_neg();
    assert_eq!(Range::new(0, 0), None);
    assert_eq!(Range::new(GPU_PAGE, 0), None);
    assert_eq!(Range::new(u64::MAX, 0), None);
    assert_eq!(Range::new(u64::MAX, 1), None);
    assert_eq!(Range::new(1, u64::MAX), None);
    assert_eq!(Range::new(0, u64::MAX), None);
    // Its page ends where addresses end.
    assert_eq!(Range::new(last_page, 1), None);
    assert_eq!(Range::new(last_page - 1, 2), None);
    assert!(Range::new(last_page - 1, 1).is_some());
    assert!(Range::new(0, MOST_PAGES).is_some());
    assert_eq!(Range::new(0, MOST_PAGES + 1), None);
    // The same length, but it touches one page more.
    assert_eq!(Range::new(1, MOST_PAGES), None);
    assert!(Range::new(1, MOST_PAGES - 1).is_some());
}
