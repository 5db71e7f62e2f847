// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The GPU pages that cover what a user asked for.

use super::points::{points, MOST_PAGES};
use crate::{
    extents::{Range, GPU_PAGE},
    random::Random,
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
fn every_length_up_to_three_pages() {
    let near_an_edge = [0, 1, 2, GPU_PAGE / 2, GPU_PAGE - 2, GPU_PAGE - 1];
    let pages = [0, 1, 1 << 32, 1 << 47];
    let from_the_end = [1, 2, 3, 4].map(|count: u64| (count * GPU_PAGE).wrapping_neg());
    for page in pages
        .map(|page| page * GPU_PAGE)
        .into_iter()
        .chain(from_the_end)
    {
        for offset in near_an_edge {
            for len in 0..=3 * GPU_PAGE {
                check(page.wrapping_add(offset), len);
            }
        }
    }
}

#[test]
fn every_address_of_two_pages() {
    for page in [0, 7 * GPU_PAGE, (2 * GPU_PAGE).wrapping_neg()] {
        for offset in 0..2 * GPU_PAGE {
            for len in [0, 1, 2, GPU_PAGE - 1, GPU_PAGE, GPU_PAGE + 1, MOST_PAGES] {
                check(page + offset, len);
            }
        }
    }
}

#[test]
fn anywhere() {
    let mut random = Random::new();
    let mut there = 0;
    for _ in 0..1_000_000 {
        let address = match random.below(3) {
            0 => random.next(),
            1 => random.of_any_size(),
            _ => random.of_any_size().wrapping_neg(),
        };
        let len = match random.below(4) {
            0 => random.next(),
            // Nearly up to the end of the address space, or a little beyond.
            1 => address
                .wrapping_neg()
                .wrapping_add(random.below(4 * GPU_PAGE))
                .wrapping_sub(2 * GPU_PAGE),
            _ => random.of_any_size(),
        };
        there += u32::from(check(address, len).is_some());
    }
    // Neither answer may be a rare one here, or the test would say little.
    assert!((100_000..900_000).contains(&there), "{there} ranges");
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
