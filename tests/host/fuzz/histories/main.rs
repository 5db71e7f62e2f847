// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Runs histories of the module and its neighbours. libFuzzer makes up the histories, and calls the
//! functions below with them. It keeps the inputs that reach code or an order of acts that no other
//! input has reached.

mod act;
mod coverage;
mod expect;
mod mutate;
mod overlap;
mod play;
mod settings;
mod stage;
mod verify;
mod words;

use std::{cell::RefCell, slice};

use mutate::Random;

use crate::failure::report_and_abort_on_failure;

thread_local! {
    /// The history that is running now. The report of a failure prints the history in words.
    static HISTORY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

extern "C" {
    fn atexit(function: extern "C" fn()) -> i32;
}

extern "C" fn at_exit() {
    coverage::report(act::name);
}

#[no_mangle]
extern "C" fn LLVMFuzzerInitialize(_: *mut i32, _: *mut *mut *mut u8) -> i32 {
    coverage::begin();
    report_and_abort_on_failure();
    say_the_history_on_failure();
    // SAFETY: The function exists until the process ends.
    unsafe { atexit(at_exit) }
}

/// Lets the report of a failure print the history before the trail of events.
fn say_the_history_on_failure() {
    let after = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let words = HISTORY.with_borrow(|bytes| act::read(bytes));
        if let Some((world, acts)) = words {
            eprintln!(
                "\nthe history that fails:\n{}",
                words::in_words(&world, &acts)
            );
        }
        after(info);
    }));
}

/// # Safety
///
/// `data` must be `size` bytes that can be read.
#[no_mangle]
unsafe extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
    // SAFETY: By this function's requirement the pointers are to memory of the given sizes.
    let bytes = unsafe { bytes(data, size) };
    let Some((world, acts)) = act::read(bytes) else {
        return -1;
    };
    HISTORY.replace(bytes.to_vec());
    play::play(world, &acts);
    coverage::ended();
    0
}

/// # Safety
///
/// `data` must be `room` bytes that can be read and written. The first `size` bytes are a history.
#[no_mangle]
unsafe extern "C" fn LLVMFuzzerCustomMutator(
    data: *mut u8,
    size: usize,
    room: usize,
    seed: u32,
) -> usize {
    // SAFETY: By this function's requirement the pointers are to memory of the given sizes.
    let room = unsafe { slice::from_raw_parts_mut(data, room) };
    mutate::mutate(room, size, &mut Random::new(seed))
}

/// # Safety
///
/// Each pointer must be to the given number of bytes. The bytes at the first two pointers must be
/// readable, and the bytes at the last pointer writable.
#[no_mangle]
unsafe extern "C" fn LLVMFuzzerCustomCrossOver(
    one: *const u8,
    one_size: usize,
    other: *const u8,
    other_size: usize,
    room: *mut u8,
    room_size: usize,
    seed: u32,
) -> usize {
    // SAFETY: By this function's requirement the pointers are to memory of the given sizes.
    let (one, other) = unsafe { (bytes(one, one_size), bytes(other, other_size)) };
    // SAFETY: By this function's requirement the pointers are to memory of the given sizes.
    let room = unsafe { slice::from_raw_parts_mut(room, room_size) };
    mutate::cross(one, other, room, &mut Random::new(seed))
}

/// # Safety
///
/// `data` must be `size` bytes that can be read, or `size` must be 0.
unsafe fn bytes<'a>(data: *const u8, size: usize) -> &'a [u8] {
    match size {
        0 => &[],
        // SAFETY: By this function's requirement the pointers are to memory of the given sizes.
        _ => unsafe { slice::from_raw_parts(data, size) },
    }
}
