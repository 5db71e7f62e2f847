// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Pages that are neighbours become one extent.

use std::cell::Cell;

use proptest::{collection::vec, prelude::any, sample::select};

use crate::{
    extents::{runs, Extent, AT_A_TIME},
    random,
    units::{each_list, merged, places, put_together},
};

fn check(addresses: &[u64], page: u64) {
    let found = merged(addresses, page);
    let units: Vec<u128> = addresses.iter().copied().map(u128::from).collect();
    let expected = put_together(&units, page, u64::MAX);
    assert_eq!(found, expected, "of pages of {page:#x} at {addresses:x?}");
}

fn starts(list: &[Extent]) -> Vec<u64> {
    list.iter().map(|extent| extent.start).collect()
}

#[test]
fn every_short_list() {
    for count in 0..=8 {
        each_list(count, 1, |list| {
            places(list).iter().for_each(|list| check(&starts(list), 1));
        });
    }
}

#[test]
fn long_lists() {
    let steps = vec(select(&[0, 1, 1, 1, 1, 2, 7]), 0..200_usize);
    let lists = (
        any::<u32>(),
        select(&[4_u64 << 10, 64 << 10, 128 << 10]),
        steps,
    );
    random::check(2_000, lists, |(first, page, steps)| {
        let mut place = u64::from(first);
        let addresses: Vec<u64> = steps
            .into_iter()
            .map(|step| {
                place += step;
                place * page
            })
            .collect();
        check(&addresses, page);
        // So that the last one ends with the bus.
        let shift = addresses
            .last()
            .map_or(0, |last| (last + page).wrapping_neg());
        let shifted: Vec<u64> = addresses.iter().map(|at| at.wrapping_add(shift)).collect();
        check(&shifted, page);
    });
}

/// The last byte of the bus and the first have nothing to do with each other.
#[test]
fn not_around_the_end_of_the_bus() {
    let page = 1 << 16;
    let last = 0_u64.wrapping_sub(page);
    let extent = |start| Extent { start, len: page };
    assert_eq!(merged(&[last, 0], page), [extent(last), extent(0)]);
    let two = Extent {
        start: last - page,
        len: 2 * page,
    };
    assert_eq!(
        merged(&[last - page, last, 0, 0], page),
        [two, extent(0), extent(0)]
    );
}

/// What fails ends it, and nothing comes after.
#[test]
fn a_failure_ends_it() {
    let mut seen = 0;
    let result = runs(
        &[0_u64, 8, 16, 24],
        1,
        |&at| at,
        || (),
        |_| {
            seen += 1;
            if seen == 2 {
                Err("enough")
            } else {
                Ok(())
            }
        },
    );
    assert_eq!((result, seen), (Err("enough"), 2));
}

/// Contiguous or not, of many pages others get their turn, and of few nobody asks.
#[test]
fn a_long_walk_gives_way() {
    for step in [1, 2] {
        for (pages, turns) in [
            (0, 0),
            (1, 0),
            (AT_A_TIME, 0),
            (AT_A_TIME + 1, 0),
            (AT_A_TIME + 2, 1),
            (1_300_000, 1_299_998 / AT_A_TIME),
        ] {
            let addresses: Vec<u64> = (0..pages as u64).map(|at| at * step).collect();
            let given = Cell::new(0);
            let (mut bytes, mut extents) = (0, 0);
            let each = |extent: Extent| {
                bytes += extent.len;
                extents += 1;
                Ok::<_, ()>(())
            };
            runs(&addresses, 1, |&at| at, || given.set(given.get() + 1), each).unwrap();
            assert_eq!((given.get(), bytes), (turns, pages as u64));
            assert_eq!(extents, if step == 1 { pages.min(1) } else { pages });
        }
    }
}
