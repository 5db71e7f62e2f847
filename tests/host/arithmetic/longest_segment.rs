// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The longest segment for a device.

use proptest::{prelude::any, sample::select};

use crate::{extents::longest_segment, numbers::PAGES, random};

fn check(limit: u32, page: u64) {
    let longest = u64::from(longest_segment(limit, page));
    let what = || format!("limit {limit:#x}, pages of {page:#x}: {longest:#x}");
    assert_eq!(longest % page, 0, "{}", what());
    assert!(longest >= page, "{}", what());
    // Segments are mapped one by one: what follows one begins as round as it does.
    assert!(longest.is_power_of_two(), "{}", what());
    if u64::from(limit) < page {
        // No device takes less than a page: there is nothing smaller to give it.
        assert_eq!(longest, page, "{}", what());
    } else {
        assert!(longest <= u64::from(limit), "{}", what());
        assert!(2 * longest > u64::from(limit), "{}", what());
    }
}

#[test]
fn around_every_edge() {
    for page in PAGES {
        let edges = [0, 4096, 16384, 65536, 131_072, 1 << 31, u32::MAX];
        for edge in edges {
            for step in 0..=4_u32 {
                check(edge.wrapping_add(step).wrapping_sub(2), page);
            }
        }
        (0..300_000).for_each(|limit| check(limit, page));
    }
}

#[test]
fn any_limit() {
    random::check(
        20_000,
        (any::<u32>(), 0..32_u32, select(&PAGES)),
        |(limit, shift, page)| {
            check(limit >> shift, page);
        },
    );
}

#[test]
fn examples() {
    for (limit, with_4k, with_64k) in [
        (0, 4096, 65_536),
        (1, 4096, 65_536),
        (4095, 4096, 65_536),
        (4096, 4096, 65_536),
        (65_535, 32_768, 65_536),
        (65_536, 65_536, 65_536),
        (1 << 31, 1 << 31, 1 << 31),
        (u32::MAX, 1 << 31, 1 << 31),
    ] {
        assert_eq!(longest_segment(limit, 4 << 10), with_4k);
        assert_eq!(longest_segment(limit, 64 << 10), with_64k);
    }
}
