// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests all steps together, from a user's range to segments, with realistic sizes.

use proptest::{collection::vec, prelude::*, sample::select};

use crate::{
    extents::{longest_segment, Extent, Range, GPU_PAGE},
    random,
    range::{of_any_size, PAGES},
    units::{collected, cut, extent, put_together, take_apart, trim},
};

/// The largest number of GPU pages in a registration of these tests.
pub(crate) const MOST: usize = 40;

/// Returns the bus addresses of `count` pages. `place` is the number of GPU pages before the first
/// page. For each other page, `neighbours` says whether it follows the page before it directly or
/// after a gap. If `to_the_end` is set, all pages are moved so that the last page ends at the end
/// of the bus.
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

/// A range to register, and the places of its pages on the bus.
#[derive(Debug)]
pub(crate) struct Case {
    /// The address and the length.
    pub(crate) user: (u64, u64),
    /// The size of the kernel's pages.
    pub(crate) page: u64,
    /// The longest segment that the device accepts, in bytes.
    pub(crate) limit: u32,
    /// See [`bus`].
    pub(crate) place: u64,
    pub(crate) neighbours: Vec<bool>,
    pub(crate) to_the_end: bool,
}

/// Checks the segments of a case, one page of the kernel after the other.
pub(crate) fn check(case: &Case) {
    let Case { user, page, .. } = *case;
    let range = Range::new(user.0, user.1).expect("it is small");
    let pages = range.pages().into();
    let addresses = bus(pages, case.place, &case.neighbours, case.to_the_end);
    let window = range
        .window(page)
        .expect("the page is not larger than the GPU's");
    let longest = longest_segment(case.limit, page);
    let found = cut(&collected(&addresses, GPU_PAGE), window, longest);

    let gpu_pages = addresses.iter().map(|&start| extent(start, GPU_PAGE));
    let all: Vec<_> = gpu_pages.collect();
    let pages = take_apart(&all, page);
    let all = put_together(&pages, page, longest.into());
    assert_eq!(found, trim(&all, window), "{case:?}");
}

#[test]
fn registrations() {
    let addresses = of_any_size().prop_map(|address| address >> 1);
    let limits = prop_oneof![
        select(&[0, 4096, 65_535, 65_536, 1 << 20, 1 << 31, u32::MAX]),
        0..1_u32 << 21,
        any::<u32>(),
    ];
    let user = (addresses, 1..MOST as u64 * GPU_PAGE);
    // Uses only page sizes that are at most as large as the GPU's page.
    let sizes = (select(&PAGES[..3]), limits);
    let place = (1..1_u64 << 40, vec(any::<bool>(), MOST + 1), any::<bool>());
    random::check(3_000, (user, sizes, place), |(user, sizes, place)| {
        let (page, limit) = sizes;
        let (place, neighbours, to_the_end) = place;
        check(&Case {
            user,
            page,
            limit,
            place,
            neighbours,
            to_the_end,
        });
    });
}

/// Returns the size of the pages with which a device can map `segments` to the user's addresses
/// from `address` on. The function chooses the largest size that fulfils two conditions, as RDMA
/// cores before MLNX_OFED 25.07 do. Each address must have the same offset in a page on the bus as
/// in the user's address space. Pages must end where segments end, except at the end of the last
/// segment.
fn largest_page(segments: &[Extent], address: u64) -> u64 {
    let mut differ = 0;
    let mut user = address;
    for (at, segment) in segments.iter().enumerate() {
        differ |= user ^ segment.start;
        if at > 0 {
            differ |= user;
        }
        user += segment.len;
    }
    1 << differ.trailing_zeros()
}

/// A range may begin anywhere in a GPU page. The device's pages must nevertheless be as large as
/// the GPU's.
#[test]
fn pages_as_large_as_the_gpus() {
    let len = (6 << 30) + 5 * GPU_PAGE;
    for page in &PAGES[..3] {
        for limit in [65_536, 1 << 20, 1 << 31, u32::MAX] {
            for into in [0, 1, *page, 3 * page + 7, GPU_PAGE - 1] {
                let address = (1 << 40) + GPU_PAGE + into;
                let range = Range::new(address, len).unwrap();
                let window = range.window(*page).unwrap();
                // The bus address has the same alignment as the user's address, and not a larger
                // one.
                let bus = [extent((1 << 44) + range.start(), range.pinned_len())];
                let found = cut(&bus, window, longest_segment(limit, *page));
                let first = range.start() + window.start;
                let smaller = "the device's pages are smaller than the GPU's";
                let largest = largest_page(&found, first);
                assert!(largest >= GPU_PAGE, "{smaller}: {into:#x}, {limit:#x}");
            }
        }
    }
}

/// Tests an extent that has more bytes than one scatterlist entry can count. No byte may be lost
/// between two entries.
#[test]
fn more_than_four_gigabytes_in_one_piece() {
    let len = (8 << 30) + GPU_PAGE;
    let user = Range::new(3 * GPU_PAGE + 1, len - 2).unwrap();
    assert_eq!(user.pinned_len(), len);
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
