// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a program holds in its hands: numbers that are looked up, so that one
//! that is stale or made up is told from a good one.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::locked;

/// Never given out twice; above what CUDA gives a meaning as a stream.
pub fn fresh() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0x1000);
    LAST.fetch_add(0x10, Ordering::Relaxed)
}

pub struct Handles<T> {
    things: Mutex<BTreeMap<u64, Arc<T>>>,
}

impl<T> Handles<T> {
    pub const fn new() -> Self {
        Self {
            things: Mutex::new(BTreeMap::new()),
        }
    }

    pub fn insert(&self, handle: u64, thing: Arc<T>) {
        locked(&self.things).insert(handle, thing);
    }

    pub fn get(&self, handle: u64) -> Option<Arc<T>> {
        locked(&self.things).get(&handle).cloned()
    }

    pub fn remove(&self, handle: u64) -> Option<Arc<T>> {
        locked(&self.things).remove(&handle)
    }

    pub fn all(&self) -> Vec<Arc<T>> {
        locked(&self.things).values().cloned().collect()
    }
}

/// The range of a map from start to range that `address` lies in.
pub fn around<T>(
    ranges: &BTreeMap<u64, T>,
    address: u64,
    size: impl Fn(&T) -> u64,
) -> Option<(u64, &T)> {
    let (&start, range) = ranges.range(..=address).next_back()?;
    (address - start < size(range)).then_some((start, range))
}

/// Whether something of a map from start to range lies in `size` bytes at `start`.
pub fn overlaps<T>(
    ranges: &BTreeMap<u64, T>,
    start: u64,
    size: u64,
    size_of: impl Fn(&T) -> u64,
) -> bool {
    around(ranges, start, &size_of).is_some()
        || ranges
            .range((Excluded(start), Unbounded))
            .next()
            .is_some_and(|(&next, _)| next - start < size)
}
