// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Functions that return the module's results as lists, and the slow model of the arithmetic. The
//! model divides extents into units of one size (bytes or pages), and joins the units again.

use crate::{
    error::code::EIO,
    extents::{Extent, Extents, Segment, Segments},
};

pub(crate) fn extent(start: u64, len: u64) -> Extent {
    Extent { start, len }
}

/// Returns the extents into which the module collects pages of `page` bytes.
pub(crate) fn collected(addresses: &[u64], page: u64) -> Vec<Extent> {
    let extents = Extents::collect(addresses, page, |&address| address);
    extents.expect("there is memory").as_slice().to_vec()
}

/// Returns the segments of `extents`, and no segment has more than `longest` bytes. Checks that
/// [`Segments::entries`] returns the number of the segments, or an error if the extents end before
/// the window.
pub(crate) fn cut(extents: &[Extent], window: Extent, longest: u32) -> Vec<Extent> {
    let segments = Segments::new(extents, window, longest);
    let entries = segments.entries();
    let extents = segments.map(|Segment { start, len }| extent(start, len.into()));
    let found: Vec<Extent> = extents.collect();
    let bytes: u64 = found.iter().map(|extent| extent.len).sum();
    let whole = bytes == window.len && bytes > 0;
    assert_eq!(entries, whole.then_some(found.len() as u32).ok_or(EIO));
    found
}

/// Returns the first byte of each unit of `extents`, in order. The result has the type `u128`,
/// which can also express the end of the bus.
pub(crate) fn take_apart(extents: &[Extent], unit: u64) -> Vec<u128> {
    let mut units = Vec::new();
    for one in extents {
        assert_eq!(one.len % unit, 0);
        let count = one.len / unit;
        units.extend((0..count).map(|at| u128::from(one.start) + u128::from(at * unit)));
    }
    units
}

/// Returns the shortest list of extents that contains `units`, in order. No extent has more than
/// `longest` bytes.
pub(crate) fn put_together(units: &[u128], unit: u64, longest: u64) -> Vec<Extent> {
    let mut extents: Vec<Extent> = Vec::new();
    for &start in units {
        let last = extents.last_mut().filter(|last| {
            let end = u128::from(last.start) + u128::from(last.len);
            end == start && last.len + unit <= longest
        });
        match last {
            Some(last) => last.len += unit,
            None => extents.push(extent(u64::try_from(start).unwrap(), unit)),
        }
    }
    extents
}

/// Returns the part of `extents` that is in `window`. The window counts the bytes of all extents
/// together.
pub(crate) fn trim(extents: &[Extent], window: Extent) -> Vec<Extent> {
    let end = window.start + window.len;
    let mut passed = 0;
    let trimmed = extents.iter().map(|one| {
        let (first, last) = (passed, passed + one.len);
        passed = last;
        let (from, to) = (first.max(window.start), last.min(end));
        let start = one.start.wrapping_add(from - first);
        extent(start, to.saturating_sub(from))
    });
    trimmed.filter(|one| one.len > 0).collect()
}

/// Calls `visit` with every possible list of `count` extents. The first extent begins at unit 0. An
/// extent has 1 to `longest` whole units. It begins directly after the extent before it, or one
/// unit later, or at the same place.
pub(crate) fn each_list(count: usize, longest: u64, mut visit: impl FnMut(&[Extent])) {
    let choices = 3 * longest as usize;
    for number in 0..choices.pow(count as u32) {
        let mut list: Vec<Extent> = Vec::new();
        let mut number = number;
        for _ in 0..count {
            let len = (number % longest as usize) as u64 + 1;
            let place = number / longest as usize % 3;
            number /= choices;
            let start = list.last().map_or(0, |last| match place {
                2 => last.start,
                gap => last.start + last.len + gap as u64,
            });
            list.push(extent(start, len));
        }
        visit(&list);
    }
}

/// Returns `list` at the beginning of the bus, in its middle, and at its end.
pub(crate) fn places(list: &[Extent]) -> [Vec<Extent>; 3] {
    let end = list.iter().map(|extent| extent.start + extent.len).max();
    let to_the_end = end.unwrap_or(0).wrapping_neg();
    [0, 1 << 32, to_the_end].map(|base: u64| {
        let moved = |one: &Extent| extent(base.wrapping_add(one.start), one.len);
        list.iter().map(moved).collect()
    })
}
