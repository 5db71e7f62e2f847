// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the module makes of lists, as lists; and the slow way to merge and cut extents: take them apart into units of one size (a byte, or a
//! page), and put them together again one by one.

use std::convert::Infallible;

use crate::extents::{runs, Cut, Extent};

/// The runs of pages of `page` bytes.
pub(crate) fn merged(addresses: &[u64], page: u64) -> Vec<Extent> {
    let mut found = Vec::new();
    let each = |extent| {
        found.push(extent);
        Ok::<(), Infallible>(())
    };
    runs(addresses, page, |&address| address, || (), each).unwrap();
    found
}

/// The segments of `extents`, each of at most `longest` bytes.
pub(crate) fn cut(extents: &[Extent], window: Extent, longest: u32) -> Vec<Extent> {
    let mut found = Vec::new();
    let mut cut = Cut::new(window, longest);
    for extent in extents {
        cut.extent(*extent, |segment, more| {
            found.push((segment, more));
            Ok::<(), Infallible>(())
        })
        .unwrap();
    }
    let bytes: u64 = found
        .iter()
        .map(|(segment, _)| u64::from(segment.len))
        .sum();
    assert_eq!(cut.left(), window.len - bytes);
    // There is more behind all of them but the one that ends the window.
    let (last, others) = match found.split_last() {
        Some((last, others)) => (last.1, others),
        None => (cut.left() > 0, &[][..]),
    };
    assert!(others.iter().all(|(_, more)| *more));
    assert_eq!(last, cut.left() > 0);
    found
        .into_iter()
        .map(|(segment, _)| Extent {
            start: segment.start,
            len: segment.len.into(),
        })
        .collect()
}

/// The first byte of each unit of `extents`, in order. Addresses are in a type in which the end
/// of the bus is a number like any other.
pub(crate) fn take_apart(extents: &[Extent], unit: u64) -> Vec<u128> {
    let mut units = Vec::new();
    for extent in extents {
        assert_eq!(extent.len % unit, 0);
        let count = extent.len / unit;
        units.extend((0..count).map(|at| u128::from(extent.start) + u128::from(at * unit)));
    }
    units
}

/// The fewest extents of at most `longest` bytes that hold `units`, in order.
pub(crate) fn put_together(units: &[u128], unit: u64, longest: u64) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for &start in units {
        let last = extents.last_mut().filter(|last| {
            let end = u128::from(last.start) + u128::from(last.len);
            end == start && last.len + unit <= longest
        });
        match last {
            Some(last) => last.len += unit,
            None => extents.push(Extent {
                start: u64::try_from(start).unwrap(),
                len: unit,
            }),
        }
    }
    extents
}

/// Extents of whole units, each of 1 to `longest` units and either right behind the one before, or
/// a unit further, or at the same place: each such list of `count` extents, from unit 0 on.
pub(crate) fn each_list(count: usize, longest: u64, mut visit: impl FnMut(&[Extent])) {
    let choices = 3 * longest as usize;
    for number in 0..choices.pow(count as u32) {
        let mut list: Vec<Extent> = Vec::new();
        let mut number = number;
        for _ in 0..count {
            let len = (number % longest as usize) as u64 + 1;
            let place = number / longest as usize % 3;
            number /= choices;
            let start = match (list.last(), place) {
                (Some(last), 0) => last.start + last.len,
                (Some(last), 1) => last.start + last.len + 1,
                (Some(last), _) => last.start,
                (None, _) => 0,
            };
            list.push(Extent { start, len });
        }
        visit(&list);
    }
}

/// `list` at the beginning of the bus, somewhere in it, and so that it ends with it.
pub(crate) fn places(list: &[Extent]) -> [Vec<Extent>; 3] {
    let end = list.iter().map(|extent| extent.start + extent.len).max();
    let to_the_end = end.unwrap_or(0).wrapping_neg();
    [0, 1 << 32, to_the_end].map(|base: u64| {
        list.iter()
            .map(|extent| Extent {
                start: base.wrapping_add(extent.start),
                len: extent.len,
            })
            .collect()
    })
}
