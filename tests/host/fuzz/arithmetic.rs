// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the module's arithmetic with numbers from libFuzzer. The first number of an input chooses
//! one of the comparisons in `../arithmetic` between the module and a slow model.

use std::{cell::Cell, sync::atomic::AtomicU64, sync::atomic::Ordering::Relaxed};

use crate::{
    collect, error_numbers,
    extents::{Extent, GPU_PAGE},
    pipeline::{self, Case, MOST},
    range::{self, PAGES},
    segments,
    units::{extent, take_apart},
};

/// The largest number of extents in a list, and the largest number of bytes in an extent. The
/// numbers are small, because the models handle each byte separately.
const EXTENTS: usize = 12;
const LONGEST: u64 = 40;

/// Makes numbers from the bytes of an input. After the last byte, every byte is 0.
struct Numbers<'a>(Cell<&'a [u8]>);

impl Numbers<'_> {
    fn byte(&self) -> u8 {
        let bytes = self.0.get();
        let (&first, rest) = bytes.split_first().unwrap_or((&0, &[]));
        self.0.set(rest);
        first
    }

    fn number(&self) -> u64 {
        (0..8).fold(0, |number, _| (number << 8) | u64::from(self.byte()))
    }

    /// Returns an element of a list.
    fn one_of<T: Copy>(&self, list: &[T]) -> T {
        list[usize::from(self.byte()) % list.len()]
    }
}

/// Returns extents that are near each other. Each extent follows the extent before it directly or
/// after a gap, or overlaps it.
fn list(numbers: &Numbers<'_>) -> Vec<Extent> {
    let mut end = match numbers.byte() & 1 {
        0 => 1 << 20,
        // With this start, the last extent can end at the end of the bus.
        _ => u64::MAX - EXTENTS as u64 * LONGEST,
    };
    let count = usize::from(numbers.byte()) % (EXTENTS + 1);
    let next = |_| {
        let len = 1 + u64::from(numbers.byte()) % LONGEST;
        let start = match numbers.byte() % 4 {
            0 => end - 1,
            1 => end.saturating_add(1),
            _ => end,
        };
        let start = start.min(u64::MAX - len);
        end = start + len;
        extent(start, len)
    };
    (0..count).map(next).collect()
}

fn check(numbers: &Numbers<'_>) {
    match numbers.byte() % 6 {
        0 => drop(range::check(numbers.number(), numbers.number())),
        // Uses the second number as the end of the range instead of the length.
        1 => {
            let (address, end) = (numbers.number(), numbers.number());
            range::check(address, end.wrapping_sub(address));
        }
        2 => error_numbers::check(numbers.number() as i32),
        3 => {
            let pages = take_apart(&list(numbers), 1);
            let pages: Vec<_> = pages.into_iter().map(|page| page as u64).collect();
            if !pages.is_empty() {
                collect::check(&pages, 1);
            }
        }
        4 => {
            let bytes = take_apart(&list(numbers), 1);
            let window = extent(numbers.byte().into(), numbers.byte().into());
            segments::check(&bytes, window, u32::from(numbers.byte()).max(1));
        }
        _ => registration(numbers),
    }
}

/// Checks all steps of a registration together.
fn registration(numbers: &Numbers<'_>) {
    let case = Case {
        user: (
            numbers.number() >> 1,
            1 + numbers.number() % (MOST as u64 * GPU_PAGE - 1),
        ),
        page: numbers.one_of(&PAGES[..3]),
        limit: numbers.number() as u32,
        place: 1 + numbers.number() % (1 << 40),
        neighbours: (0..=MOST).map(|_| numbers.byte() & 1 != 0).collect(),
        to_the_end: numbers.byte() & 1 != 0,
    };
    segments::check_longest(case.limit, case.page);
    pipeline::check(&case);
}

/// The number of inputs that have passed.
static CHECKED: AtomicU64 = AtomicU64::new(0);

extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

extern "C" fn at_exit() {
    eprintln!("arithmetic: {}", CHECKED.load(Relaxed));
}

#[no_mangle]
extern "C" fn LLVMFuzzerInitialize(_: *mut i32, _: *mut *mut *mut u8) -> i32 {
    // SAFETY: The function exists until the process ends.
    unsafe { atexit(at_exit) }
}

/// # Safety
///
/// `data` must be `size` bytes that can be read.
#[no_mangle]
unsafe extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    let bytes = match size {
        0 => &[],
        // SAFETY: By this function's requirement `data` is `size` bytes that can be read.
        _ => unsafe { std::slice::from_raw_parts(data, size) },
    };
    check(&Numbers(Cell::new(bytes)));
    CHECKED.fetch_add(1, Relaxed);
    0
}
