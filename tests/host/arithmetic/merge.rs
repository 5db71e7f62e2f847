// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Neighbours become one.

use proptest::{collection::vec, sample::select};

use crate::{
    extents::{merge, Extent},
    random,
    units::{each_list, places, put_together, take_apart},
};

fn merged(extents: &[Extent]) -> Vec<Extent> {
    let mut merge = merge(extents.iter().copied());
    let found: Vec<Extent> = merge.by_ref().collect();
    assert_eq!(merge.next(), None, "more after the end of {extents:?}");
    found
}

fn check(extents: &[Extent]) {
    let found = merged(extents);
    let expected = put_together(&take_apart(extents, 1), 1, u64::MAX);
    assert_eq!(found, expected, "of {extents:?}");
    assert_eq!(merged(&found), found, "once more, of {extents:?}");
}

#[test]
fn every_short_list() {
    for count in 0..=5 {
        each_list(count, 2, |list| {
            places(list).iter().for_each(|list| check(list));
        });
    }
}

#[test]
fn long_lists() {
    let gaps_and_lengths = vec((select(&[0, 0, 0, 1, 5]), 1..10_u64), 0..60);
    random::check(1_000, gaps_and_lengths, |list| {
        let mut next = 0;
        let list: Vec<Extent> = list
            .into_iter()
            .map(|(gap, len)| {
                let start = next + gap;
                next = start + len;
                Extent { start, len }
            })
            .collect();
        places(&list).iter().for_each(|list| check(list));
    });
}

/// The last byte of the bus and the first have nothing to do with each other.
#[test]
fn not_around_the_end_of_the_bus() {
    let list = [
        Extent {
            start: u64::MAX - 3,
            len: 4,
        },
        Extent { start: 0, len: 4 },
    ];
    assert_eq!(merged(&list), list);
    check(&list);
}

/// All of the bus is one byte more than a length can say.
#[test]
fn the_whole_bus() {
    let half = 1 << 63;
    let list = [
        Extent {
            start: 0,
            len: half,
        },
        Extent {
            start: half,
            len: half,
        },
    ];
    assert_eq!(merged(&list), list);
    let list = [
        Extent {
            start: 1,
            len: half - 1,
        },
        Extent {
            start: half,
            len: half,
        },
    ];
    assert_eq!(
        merged(&list),
        [Extent {
            start: 1,
            len: u64::MAX
        }]
    );
}

/// A copy goes on from where the original was.
#[test]
fn copies() {
    each_list(4, 2, |list| {
        let mut original = merge(list.iter().copied());
        let mut all = merged(list);
        all.reverse();
        while let Some(expected) = all.pop() {
            assert_eq!(original.clone().count(), all.len() + 1, "of {list:?}");
            assert_eq!(original.next(), Some(expected), "of {list:?}");
        }
    });
}
