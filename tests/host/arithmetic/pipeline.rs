// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! From a user's range to segments, all steps together, with sizes as they are in life.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    extents::{longest_segment, Extent, Range, GPU_PAGE},
    numbers::{of_any_size, PAGES},
    random,
    units::{cut, merged, put_together, take_apart},
};

/// A registration, and what it meets.
#[derive(Debug)]
struct Registration {
    address: u64,
    len: u64,
    /// The kernel's page, which is not larger than the GPU's.
    page: u64,
    /// The device's limit on one segment.
    limit: u32,
    /// For each GPU page, whether it is right behind the one before on the bus.
    neighbours: Vec<bool>,
    /// Where a page is that is not, in GPU pages.
    place: u64,
    /// The last page ends where the bus ends.
    to_the_end: bool,
}

fn registration() -> impl Strategy<Value = Registration> {
    const MOST: u64 = 40;
    let limits = prop_oneof![
        select(&[0, 4096, 65_535, 65_536, 1 << 20, 1 << 31, u32::MAX]),
        0..1_u32 << 21,
        any::<u32>(),
    ];
    (
        of_any_size().prop_map(|address| address >> 1),
        1..MOST * GPU_PAGE,
        select(&PAGES[..3]),
        limits,
        vec(any::<bool>(), MOST as usize + 2),
        1..1_u64 << 40,
        any::<bool>(),
    )
        .prop_map(
            |(address, len, page, limit, neighbours, place, to_the_end)| Registration {
                address,
                len,
                page,
                limit,
                neighbours,
                place,
                to_the_end,
            },
        )
}

impl Registration {
    /// Where the bus has the pages.
    fn bus(&self, count: u64) -> Vec<Extent> {
        let mut next = self.place;
        let mut list: Vec<Extent> = Vec::new();
        for at in 0..count {
            next += 1 + u64::from(!self.neighbours[at as usize]);
            list.push(Extent {
                start: next * GPU_PAGE,
                len: GPU_PAGE,
            });
        }
        if self.to_the_end {
            let shift = ((next + 1) * GPU_PAGE).wrapping_neg();
            for extent in &mut list {
                extent.start = extent.start.wrapping_add(shift);
            }
        }
        list
    }

    /// Checks the segments page by page.
    fn check(&self) {
        let range = Range::new(self.address, self.len).expect("it is small");
        let list = self.bus(range.pinned() / GPU_PAGE);
        let page = self.page;
        let window = range
            .window(page)
            .expect("the page is not larger than the GPU's");
        let longest = longest_segment(self.limit, page);
        let addresses: Vec<u64> = list.iter().map(|extent| extent.start).collect();
        let all = cut(&merged(&addresses, GPU_PAGE), window, longest);
        let longest = u64::from(longest);

        let pages = take_apart(&list, page);
        let first = (window.start / page) as usize;
        let seen = &pages[first..first + (window.len / page) as usize];
        assert_eq!(all, put_together(seen, page, longest));
        let sum: u64 = all.iter().map(|segment| segment.len).sum();
        assert_eq!(sum, window.len);
        for segment in &all {
            assert_eq!((segment.start % page, segment.len % page), (0, 0));
            assert!(u32::try_from(segment.len).is_ok());
        }
    }
}

#[test]
fn registrations() {
    random::check(3_000, registration(), |registration| registration.check());
}

/// More than a scatterlist entry can count: nothing is lost where one ends and the next begins.
#[test]
fn more_than_four_gigabytes_in_one_piece() {
    let len = (8 << 30) + GPU_PAGE;
    let user = Range::new(3 * GPU_PAGE + 1, len - 2).unwrap();
    assert_eq!(user.pinned(), len);
    let pages: Vec<u64> = (0..len / GPU_PAGE)
        .map(|at| (1 << 40) + at * GPU_PAGE)
        .collect();
    for page in &PAGES[..3] {
        let window = user.window(*page).unwrap();
        let longest = longest_segment(u32::MAX, *page);
        let found = cut(&merged(&pages, GPU_PAGE), window, longest);
        let mut next = 1 << 40;
        for segment in &found {
            assert_eq!(segment.start, next);
            assert!(u32::try_from(segment.len).is_ok());
            next += segment.len;
        }
        assert_eq!(next, (1 << 40) + len);
        assert_eq!(found.len(), 5);
    }
}

/// A driver that gave fewer pages than it said: the sum shows it.
#[test]
fn fewer_pages_than_the_window() {
    let user = Range::new(0, 4 * GPU_PAGE).unwrap();
    let window = user.window(4096).unwrap();
    let pages = [0, 1, 2].map(|at| at * GPU_PAGE);
    let sum: u64 = cut(&merged(&pages, GPU_PAGE), window, 1 << 20)
        .iter()
        .map(|segment| segment.len)
        .sum();
    assert_eq!(sum, 3 * GPU_PAGE);
}
