// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Numbers near which arithmetic on addresses and lengths goes wrong.

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
