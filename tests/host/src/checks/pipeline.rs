// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! From a user's range to segments, all steps together, with sizes as they are in life.

use super::{
    points::PAGES,
    units::{put_together, take_apart},
};
use crate::{
    extents::{longest_segment, merge, segments, Extent, Range, GPU_PAGE},
    random::Random,
};

/// The device's limit on one segment.
fn limit(random: &mut Random) -> u32 {
    match random.below(3) {
        0 => random.one_of(&[0, 4096, 65_535, 65_536, 1 << 20, 1 << 31, u32::MAX]),
        1 => random.below(1 << 21) as u32,
        _ => random.next() as u32,
    }
}

/// Bus addresses for `count` pages of `page` bytes, with neighbours in part of the cases. The last
/// may end with the bus.
fn bus(random: &mut Random, count: u64, page: u64) -> Vec<Extent> {
    let mut list: Vec<Extent> = Vec::new();
    let jumps = random.one_of(&[1, 3, 20]);
    for at in 0..count {
        let left = count - at;
        let start = match list.last() {
            Some(last) if random.below(jumps) > 0 => last.start.checked_add(page),
            _ => None,
        };
        let start = start.unwrap_or_else(|| match random.below(8) {
            // From here the rest just fits.
            0 => (left * page).wrapping_neg(),
            _ => (random.next() >> 1) / page * page,
        });
        list.push(Extent { start, len: page });
    }
    list
}

#[test]
fn registrations() {
    let mut random = Random::new();
    let (mut at_the_end, mut long, mut split) = (0, 0, 0);
    for _ in 0..5_000 {
        // Pages of the kernel that the GPU's page holds, and the driver's own page, which is not
        // smaller than the kernel's.
        let page = random.one_of(&PAGES[..3]);
        let gpu_page = random.one_of(&[page, GPU_PAGE]);
        let address = random.of_any_size() >> 1;
        let len = 1 + random.below(40 * GPU_PAGE);
        let Some(range) = Range::new(address, len) else {
            panic!("{len:#x} bytes at {address:#x}");
        };
        let list = bus(&mut random, range.pinned() / gpu_page, gpu_page);
        let window = range.window(page).unwrap();
        let limit = limit(&mut random);
        let longest = longest_segment(limit, page);
        let what = || {
            format!("{len:#x} at {address:#x}, pages {page:#x} of {gpu_page:#x}, limit {limit:#x}")
        };

        let all: Vec<Extent> = segments(merge(list.iter().copied()), window, longest).collect();
        let pages = take_apart(&list, page);
        let first = (window.start / page) as usize;
        let seen = &pages[first..first + (window.len / page) as usize];
        assert_eq!(all, put_together(seen, page, longest), "{}", what());
        assert_eq!(
            all.iter().map(|segment| segment.len).sum::<u64>(),
            window.len,
            "{}",
            what()
        );
        for segment in &all {
            assert_eq!(
                (segment.start % page, segment.len % page),
                (0, 0),
                "{}",
                what()
            );
            assert!(u32::try_from(segment.len).is_ok(), "{}", what());
            long += u32::from(segment.len > gpu_page);
            split += u32::from(segment.len == longest);
            at_the_end += u32::from(segment.start.checked_add(segment.len).is_none());
        }
    }
    // All that is interesting did happen.
    assert!(at_the_end > 100 && long > 100 && split > 100);
}

/// More than a scatterlist entry can count: nothing is lost where one ends and the next begins.
#[test]
fn more_than_four_gigabytes_in_one_piece() {
    let len = (8 << 30) + GPU_PAGE;
    let user = Range::new(3 * GPU_PAGE + 1, len - 2).unwrap();
    assert_eq!(user.pinned(), len);
    let pages = (0..len / GPU_PAGE).map(|at| Extent {
        start: (1 << 40) + at * GPU_PAGE,
        len: GPU_PAGE,
    });
    for page in &PAGES[..3] {
        let window = user.window(*page).unwrap();
        let longest = longest_segment(u32::MAX, *page);
        let found: Vec<Extent> = segments(merge(pages.clone()), window, longest).collect();
        let mut next = 1 << 40;
        for segment in &found {
            assert_eq!(segment.start, next);
            assert!(u32::try_from(segment.len).is_ok());
            next += segment.len;
        }
        assert_eq!(next, (1 << 40) + len);
        assert_eq!(found.len(), 3);
    }
}

/// A driver that gave fewer pages than it said: the sum shows it.
#[test]
fn fewer_pages_than_the_window() {
    let user = Range::new(0, 4 * GPU_PAGE).unwrap();
    let window = user.window(4096).unwrap();
    let pages = (0..3).map(|at| Extent {
        start: at * GPU_PAGE,
        len: GPU_PAGE,
    });
    let sum: u64 = segments(merge(pages), window, 1 << 20)
        .map(|segment| segment.len)
        .sum();
    assert_eq!(sum, 3 * GPU_PAGE);
}
