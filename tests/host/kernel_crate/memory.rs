// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests single objects, and arrays.

use std::{
    ffi::c_long,
    ptr,
    sync::atomic::{AtomicUsize, Ordering},
};

use crate::host::{allocations, fail, Counted};
use kernel::{alloc::AllocError, prelude::*};

#[test]
fn a_box_has_its_object_and_drops_it_once() {
    let live = AtomicUsize::new(0);
    let mut one = KBox::new((Counted::new(&live), 7_u64), GFP_KERNEL)
        .ok()
        .unwrap();
    let place = ptr::from_ref(&*one);
    one.1 += 1;
    let raw = KBox::into_raw(one);
    assert_eq!(raw.cast_const(), place, "C has pointers to it");
    // SAFETY: The pointer is from `into_raw`, and is used once.
    let moved = unsafe { KBox::from_raw(raw) };
    assert_eq!(moved.1, 8);
    assert_eq!(live.load(Ordering::Relaxed), 1);
    drop(moved);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn without_memory_there_is_no_box() {
    let live = AtomicUsize::new(0);
    fail(1);
    assert!(KBox::new(Counted::new(&live), GFP_KERNEL).is_err());
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

/// Tests an array that is larger than the largest size of kmalloc, because a registration of 64 GiB
/// may need such an array.
#[test]
fn an_array_may_be_large() {
    const LEN: usize = 1 << 20;
    let mut array = KVVec::with_capacity(LEN, GFP_KERNEL).unwrap();
    for number in 0..LEN as u64 {
        array.push(number, GFP_KERNEL).unwrap();
    }
    assert_eq!(array[LEN - 1], LEN as u64 - 1);
}

/// Returns the numbers from 0 on.
fn numbers(len: usize) -> Vec<u64> {
    (0..len as u64).collect()
}

#[test]
fn an_array_grows_and_keeps_what_is_in_it() {
    for capacity in [0, 1, 2, 15, 16, 17, 1000] {
        let mut array = KVVec::with_capacity(capacity, GFP_KERNEL).unwrap();
        assert!(array.is_empty());
        for number in numbers(1030) {
            array.push(number, GFP_KERNEL).unwrap();
        }
        assert_eq!(*array, numbers(1030));
        array.iter_mut().for_each(|number| *number += 1);
        assert_eq!(array.first(), Some(&1));
        assert_eq!(array.last(), Some(&1030));
    }
}

#[test]
fn an_array_grows_in_no_more_steps_than_by_doubling() {
    let before = allocations();
    let mut array = KVVec::new();
    for number in numbers(100_000) {
        match number % 2 {
            0 => array.push(number, GFP_KERNEL),
            _ => array.extend_from_slice(&[number], GFP_KERNEL),
        }
        .unwrap();
        let doublings = array.len().next_power_of_two().ilog2();
        assert!(allocations() - before <= 1 + c_long::from(doublings as i32));
    }
}

#[test]
fn an_array_takes_a_slice() {
    for (capacity, before, more) in [
        (0, 0, 0),
        (0, 0, 5),
        (8, 3, 5),
        (8, 3, 6),
        (3, 3, 0),
        (1, 1, 400),
    ] {
        let mut array = KVVec::with_capacity(capacity, GFP_KERNEL).unwrap();
        let all = numbers(before + more);
        let steps = allocations();
        array.extend_from_slice(&all[..before], GFP_KERNEL).unwrap();
        assert_eq!(allocations(), steps, "there was room");
        array.extend_from_slice(&all[before..], GFP_KERNEL).unwrap();
        assert!(allocations() <= steps + 1);
        assert_eq!(*array, all);
    }
}

#[test]
fn without_memory_an_array_stays_as_it_is() {
    fail(1);
    assert_eq!(
        KVVec::<u64>::with_capacity(1, GFP_KERNEL).err(),
        Some(AllocError)
    );
    let mut array = KVVec::with_capacity(1, GFP_KERNEL).unwrap();
    array.push(1_u64, GFP_KERNEL).unwrap();
    fail(1);
    assert_eq!(array.push(2, GFP_KERNEL), Err(AllocError));
    fail(1);
    assert_eq!(
        array.extend_from_slice(&[2, 3], GFP_KERNEL),
        Err(AllocError)
    );
    assert_eq!(*array, [1]);
    array.extend_from_slice(&[2, 3], GFP_KERNEL).unwrap();
    assert_eq!(*array, [1, 2, 3]);
}

#[test]
fn no_array_is_larger_than_memory() {
    for capacity in [usize::MAX, usize::MAX / 8 + 1] {
        assert_eq!(
            KVVec::<u64>::with_capacity(capacity, GFP_KERNEL).err(),
            Some(AllocError)
        );
    }
}
