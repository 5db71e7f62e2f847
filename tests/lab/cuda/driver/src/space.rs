// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPU addresses: where in this process' address space the next mapping goes.
//!
//! The lowest ones that are free, from the same address on in every process: a
//! buffer that is freed gives its address to the next one, and two processes use
//! the same addresses for different memory, as both happens with CUDA.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

use crate::error::Result;
use crate::gpu::BLOCK;
use crate::{locked, sys};

const FIRST: u64 = 0x3_0200_0000;
const END: u64 = FIRST + (64 << 30);

/// Sizes of the ranges in use, by their start.
static TAKEN: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// `size` bytes of addresses, which `map` makes something of. Where others have
/// been faster than we, it is asked again, further up.
pub fn take(size: u64, align: u64, map: impl Fn(u64) -> io::Result<u64>) -> Result<u64> {
    let mut taken = locked(&TAKEN);
    let mut from = FIRST;
    while let Some(start) = gap(&taken, from, size, align) {
        match map(start) {
            Ok(_) => {
                taken.insert(start, size);
                return Ok(start);
            }
            Err(error) if error.raw_os_error() == Some(sys::EEXIST as i32) => from = start + BLOCK,
            Err(_) => return Err(sys::CUDA_ERROR_OUT_OF_MEMORY),
        }
    }
    Err(sys::CUDA_ERROR_OUT_OF_MEMORY)
}

/// Gives addresses back that nothing is mapped at any more.
pub fn give(start: u64) {
    locked(&TAKEN).remove(&start);
}

fn gap(taken: &BTreeMap<u64, u64>, from: u64, size: u64, align: u64) -> Option<u64> {
    if size > END {
        return None;
    }
    let mut start = from.next_multiple_of(align);
    for (&other, &length) in taken {
        if other + length <= start {
            continue;
        }
        if start + size <= other {
            break;
        }
        start = (other + length).next_multiple_of(align);
    }
    (start <= END - size).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_gap_that_fits() {
        let mut taken = BTreeMap::new();
        let next = |taken: &BTreeMap<u64, u64>, size| gap(taken, FIRST, size, BLOCK);
        assert_eq!(next(&taken, BLOCK), Some(FIRST));
        taken.insert(FIRST + BLOCK, BLOCK);
        assert_eq!(next(&taken, BLOCK), Some(FIRST));
        assert_eq!(next(&taken, 2 * BLOCK), Some(FIRST + 2 * BLOCK));
        taken.insert(FIRST, BLOCK);
        assert_eq!(next(&taken, BLOCK), Some(FIRST + 2 * BLOCK));
        assert_eq!(next(&taken, END), None);
        assert_eq!(next(&taken, u64::MAX), None);
    }
}
