// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Numbers with which arithmetic on addresses and lengths goes wrong.

use proptest::{
    prelude::{any, prop_oneof, Strategy},
    sample::select,
};

use crate::extents::GPU_PAGE;

/// The page sizes of kernels, and one that is larger than the GPU's page.
pub(crate) const PAGES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 128 << 10];

/// As many GPU pages as the driver can count, in bytes.
pub(crate) const MOST_PAGES: u64 = u32::MAX as u64 * GPU_PAGE;

/// Each number at which something begins or ends, and its neighbours.
pub(crate) fn points() -> Vec<u64> {
    let mut edges = vec![0, 1 << 31, 1 << 32, 1 << 47, MOST_PAGES, 1 << 48, 1 << 63];
    for page in PAGES {
        edges.extend([page, 2 * page, 3 * page]);
        // Counted from the end of the address space.
        edges.extend([page.wrapping_neg(), (2 * page).wrapping_neg()]);
    }
    let mut points: Vec<u64> = edges
        .iter()
        .flat_map(|edge| (0..=4).map(move |step| edge.wrapping_add(step).wrapping_sub(2)))
        .collect();
    points.sort_unstable();
    points.dedup();
    points
}

/// A number of which each count of bits is as likely as any other.
pub(crate) fn of_any_size() -> impl Strategy<Value = u64> {
    (0..=64_u32, any::<u64>()).prop_map(|(bits, number)| number.checked_shr(64 - bits).unwrap_or(0))
}

/// An address: small, near the end of all addresses, at an edge, or any.
pub(crate) fn address() -> impl Strategy<Value = u64> {
    prop_oneof![
        of_any_size(),
        of_any_size().prop_map(u64::wrapping_neg),
        select(points()),
        any::<u64>(),
    ]
}

/// An address and a length, which often ends near the end of all addresses.
pub(crate) fn address_and_len() -> impl Strategy<Value = (u64, u64)> {
    let len = prop_oneof![
        of_any_size().prop_map(|len| (false, len)),
        select(points()).prop_map(|len| (false, len)),
        (0..8 * GPU_PAGE).prop_map(|len| (true, len.wrapping_sub(4 * GPU_PAGE))),
    ];
    (address(), len).prop_map(|(address, (to_the_end, len))| match to_the_end {
        true => (address, len.wrapping_sub(address)),
        false => (address, len),
    })
}
