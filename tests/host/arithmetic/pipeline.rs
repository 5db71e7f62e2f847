// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! From a user's range to segments, all steps together, with sizes as they are in life.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    extents::{longest_segment, Range, GPU_PAGE},
    random,
    range::{of_any_size, PAGES},
    units::{collected, cut, extent, put_together, take_apart},
};

/// Most GPU pages of a registration here.
const MOST: usize = 40;

/// Where the bus has `count` pages: from `place` on, in GPU pages, each right behind the one before, or
/// not. The last one may end where the bus ends.
fn bus(count: u64, place: u64, neighbours: &[bool], to_the_end: bool) -> Vec<u64> {
    let mut end = place;
    let next = |neighbour: &bool| {
        end += 1 + u64::from(!neighbour);
        (end - 1) * GPU_PAGE
    };
    let pages: Vec<u64> = neighbours[..count as usize].iter().map(next).collect();
    let shift = (end * GPU_PAGE * u64::from(to_the_end)).wrapping_neg();
    pages.iter().map(|page| page.wrapping_add(shift)).collect()
}

/// Checks the segments page by page of the kernel.
#[test]
fn registrations() {
    let addresses = of_any_size().prop_map(|address| address >> 1);
    let limits = prop_oneof![
        select(&[0, 4096, 65_535, 65_536, 1 << 20, 1 << 31, u32::MAX]),
        0..1_u32 << 21,
        any::<u32>(),
    ];
    let user = (addresses, 1..MOST as u64 * GPU_PAGE);
    // The kernel's page is not larger than the GPU's.
    let sizes = (select(&PAGES[..3]), limits);
    let place = (1..1_u64 << 40, vec(any::<bool>(), MOST + 1), any::<bool>());
    random::check(3_000, (user, sizes, place), |(user, sizes, place)| {
        let (page, limit) = sizes;
        let range = Range::new(user.0, user.1).expect("it is small");
        let addresses = bus(range.pages().into(), place.0, &place.1, place.2);
        let window = range
            .window(page)
            .expect("the page is not larger than the GPU's");
        let longest = longest_segment(limit, page);
        let found = cut(&collected(&addresses, GPU_PAGE), window, longest);

        let gpu_pages = addresses.iter().map(|&start| extent(start, GPU_PAGE));
        let all: Vec<_> = gpu_pages.collect();
        let pages = take_apart(&all, page);
        let first = (window.start / page) as usize;
        let seen = &pages[first..first + (window.len / page) as usize];
        assert_eq!(found, put_together(seen, page, longest.into()));
    });
}

/// More than a scatterlist entry can count: nothing is lost where one ends and the next begins.
#[test]
fn more_than_four_gigabytes_in_one_piece() {
    let len = (8 << 30) + GPU_PAGE;
    let user = Range::new(3 * GPU_PAGE + 1, len - 2).unwrap();
    assert_eq!(user.pinned(), len);
    let start = 1 << 40;
    let pages: Vec<u64> = (start..start + len).step_by(GPU_PAGE as usize).collect();
    let extents = collected(&pages, GPU_PAGE);
    assert_eq!(extents, [extent(start, len)]);
    for page in &PAGES[..3] {
        let window = user.window(*page).unwrap();
        let found = cut(&extents, window, longest_segment(u32::MAX, *page));
        assert_eq!(
            found,
            put_together(&take_apart(&extents, GPU_PAGE), GPU_PAGE, 1 << 31)
        );
        assert_eq!(found.len(), 5);
    }
}
