// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests how the module cuts extents to a window and to a device's longest segment, and how it
//! computes the longest segment.

use crate::{
    extents::{longest_segment, Extent},
    range::PAGES,
    units::{cut, each_list, extent, places, put_together, take_apart, trim},
};

/// Checks the segments of `bytes` in `window` byte by byte.
pub(crate) fn check(bytes: &[u128], window: Extent, longest: u32) {
    let mut extents = put_together(bytes, 1, u64::MAX);
    // Adds an extent without bytes. It must neither end the list of segments nor add a segment.
    extents.insert(extents.len() / 2, extent(77, 0));
    let found = cut(&extents, window, longest);
    let expected = trim(&put_together(bytes, 1, longest.into()), window);
    assert_eq!(
        found, expected,
        "{window:?} of {extents:?}, at most {longest}"
    );
}

#[test]
fn every_window_of_every_short_list() {
    let mut checked = 0_u64;
    for count in 0..=4 {
        each_list(count, 3, |list| {
            for list in places(list) {
                let bytes = take_apart(&list, 1);
                let total = bytes.len() as u64;
                for start in 0..=total {
                    // The largest value of `len` is one byte too long. It must give an error, and
                    // no byte beyond the end.
                    for len in 0..=total + 1 - start {
                        for longest in [1, 2, 3, 5, u32::MAX] {
                            check(&bytes, extent(start, len), longest);
                            checked += 1;
                        }
                    }
                }
            }
        });
    }
    assert!(checked > 1_000_000);
}

pub(crate) fn check_longest(limit: u32, page: u64) {
    let longest = u64::from(longest_segment(limit, page));
    let what = format!("limit {limit:#x}, pages of {page:#x}: {longest:#x}");
    // Because the length is a power of two, each piece is aligned to its own length, or at least as
    // well as its extent.
    assert!(longest.is_power_of_two() && longest >= page, "{what}");
    // A limit below a page counts as a page, because a segment is never shorter than a page.
    let limit = u64::from(limit).max(page);
    assert!((limit / 2 + 1..=limit).contains(&longest), "{what}");
}

#[test]
fn any_limit() {
    for page in PAGES {
        (0..300_000).for_each(|limit| check_longest(limit, page));
        for edge in (0..=32).map(|log| 1_u64 << log) {
            (0..=4).for_each(|step| check_longest((edge + step).wrapping_sub(2) as u32, page));
        }
    }
}
