// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Extents cut to a window and to the length that a device takes.

use crate::{
    extents::Extent,
    units::{cut, each_list, places, put_together, take_apart},
};

/// Checks the segments byte by byte, and the rules for them one by one.
/// Extents that are neighbours come as one.
fn check(extents: &[Extent], bytes: &[u128], window: Extent, longest: u32) {
    let what = || format!("{window:?} of {extents:?}, at most {longest}");
    let merged = put_together(bytes, 1, u64::MAX);
    let found = cut(&merged, window, longest);
    let longest = u64::from(longest);
    let first = bytes.len().min(window.start as usize);
    let end = bytes.len().min((window.start + window.len) as usize);
    let wanted = &bytes[first..end];

    assert_eq!(take_apart(&found, 1), wanted, "{}", what());
    for segment in &found {
        assert!(segment.len > 0 && segment.len <= longest, "{}", what());
    }
    for pair in found.windows(2) {
        let end = u128::from(pair[0].start) + u128::from(pair[0].len);
        let touch = end == u128::from(pair[1].start);
        assert!(!touch || pair[0].len == longest, "{}", what());
    }
    assert_eq!(found, put_together(wanted, 1, longest), "{}", what());
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
                    // Also one byte beyond what there is: then there is less, not more.
                    for len in 0..=total + 1 - start {
                        for longest in [1, 2, 3, 5, u32::MAX] {
                            check(&list, &bytes, Extent { start, len }, longest);
                            checked += 1;
                        }
                    }
                }
            }
        });
    }
    println!("{checked} windows");
    assert!(checked > 1_000_000);
}

/// An extent without bytes neither ends the list nor adds to it.
#[test]
fn extents_without_bytes() {
    each_list(3, 2, |list| {
        for hole in 0..=list.len() {
            let mut list = list.to_vec();
            list.insert(hole, Extent { start: 77, len: 0 });
            let bytes = take_apart(&list, 1);
            for start in 0..bytes.len() {
                for end in start..=bytes.len() {
                    let window = Extent {
                        start: start as u64,
                        len: (end - start) as u64,
                    };
                    let found = cut(&list, window, 2);
                    assert_eq!(take_apart(&found, 1), bytes[start..end]);
                    assert!(found.iter().all(|segment| segment.len > 0));
                }
            }
        }
    });
}

/// Up to the last byte of the bus, in the longest segment and in the shortest.
#[test]
fn up_to_the_end_of_the_bus() {
    let extent = Extent {
        start: u64::MAX - 7,
        len: 8,
    };
    let window = Extent { start: 0, len: 8 };
    assert_eq!(cut(&[extent], window, u32::MAX), [extent]);
    assert_eq!(cut(&[extent], window, 8), [extent]);
    let singles = cut(&[extent], window, 1);
    assert_eq!(singles.len(), 8);
    assert_eq!(
        singles[7],
        Extent {
            start: u64::MAX,
            len: 1
        }
    );
}
