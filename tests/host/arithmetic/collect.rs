// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests that pages that follow each other on the bus become one extent.

use crate::{
    alloc::{MEMORY, TURNS},
    error::code::{EIO, ENOMEM},
    extents::{Extent, Extents, Segments},
    resched::AT_A_TIME,
    sg_table::SgTable,
    units::{collected, each_list, places, put_together},
};

pub(crate) fn check(addresses: &[u64], page: u64) {
    let found = collected(addresses, page);
    let units: Vec<u128> = addresses.iter().copied().map(u128::from).collect();
    let expected = put_together(&units, page, u64::MAX);
    assert_eq!(found, expected, "of pages of {page:#x} at {addresses:x?}");
}

#[test]
fn every_short_list() {
    for count in 1..=8 {
        each_list(count, 1, |list| {
            for list in places(list) {
                let starts: Vec<u64> = list.iter().map(|extent| extent.start).collect();
                check(&starts, 1);
            }
        });
    }
}

/// A page at the end of the bus and a page at address 0 must be two extents.
#[test]
fn not_around_the_end_of_the_bus() {
    let (page, last) = (1 << 16, u64::MAX << 16);
    check(&[last, 0], page);
    check(&[last - page, last, 0, 0], page);
}

/// An empty list of pages is an error. A single extent needs no allocation. Several extents need an
/// array. Its first allocation can fail, and a later allocation by which the array grows can fail
/// also.
#[test]
fn without_pages_or_memory() {
    let none = Extents::collect(&[], 1, |&at| at);
    assert_eq!(none.err(), Some(EIO));
    for (addresses, allocations) in [
        (&[0, 1, 2][..], 0),
        (&[0, 2][..], 1),
        // The first extent is longer than the others, so the first array has room for only two
        // extents and must grow.
        (&[0, 1, 3, 5][..], 2),
    ] {
        for memory in 0..=allocations {
            MEMORY.set(memory);
            let result = Extents::collect(addresses, 1, |&at| at);
            let expected = (memory < allocations).then_some(ENOMEM);
            assert_eq!(result.err(), expected, "{addresses:?}");
        }
    }
}

/// A loop over many pages lets other threads run, whether or not the pages follow each other. A
/// loop over few pages does not let other threads run.
#[test]
fn a_long_walk_gives_way() {
    for step in [1, 2] {
        for (pages, turns) in [
            (1, 0),
            (AT_A_TIME, 0),
            (AT_A_TIME + 1, 0),
            (AT_A_TIME + 2, 1),
            (1_300_000, 1_299_998 / AT_A_TIME),
        ] {
            let addresses: Vec<u64> = (0..pages as u64).map(|at| at * step).collect();
            TURNS.set(0);
            let extents = collected(&addresses, 1);
            assert_eq!(TURNS.get(), turns);
            assert_eq!(extents.len(), if step == 1 { 1 } else { pages });
        }
    }
}

/// Counts the segments of `count` extents, and then reads the entries of their scatterlist. Returns
/// how often other threads can run during the first step, and how often during the second.
fn turns_of_walks(count: usize) -> [usize; 2] {
    let apart = |at| Extent {
        start: 2 * at,
        len: 1,
    };
    let extents: Vec<Extent> = (0..count as u64).map(apart).collect();
    let whole = Extent {
        start: 0,
        len: count as u64,
    };
    let segments = Segments::new(&extents, whole, 1);
    TURNS.set(0);
    assert_eq!(segments.entries(), Ok(count as u32));
    let counting = TURNS.replace(0);
    let mut table = SgTable::empty(&segments).expect("there is memory");
    // SAFETY: The list has `count` entries.
    crate::END.set(unsafe { table.for_core().sgl.add(count) });
    TURNS.set(0);
    let mut walked = 0;
    let walk = table.for_each_entry(|_| {
        walked += 1;
        Ok(())
    });
    assert!(walk.is_ok() && walked == count);
    [counting, TURNS.get()]
}

#[test]
fn a_long_walk_over_entries_gives_way() {
    for count in [
        1,
        AT_A_TIME - 1,
        AT_A_TIME,
        AT_A_TIME + 1,
        3 * AT_A_TIME + 1,
    ] {
        // The loop that counts handles all extents except the first.
        let expected = [(count - 1) / AT_A_TIME, count / AT_A_TIME];
        assert_eq!(turns_of_walks(count), expected, "{count} entries");
    }
}
