// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share: owners and locks.

use std::{
    cell::Cell,
    marker::PhantomData,
    ops::Deref,
    sync::{
        atomic::{AtomicUsize, Ordering},
        MutexGuard,
    },
    thread,
};

use crate::host::{allocations, fail, Counted};
use kernel::{
    new_spinlock,
    prelude::*,
    rbtree::RBTree,
    sync::{Arc, Guard, SpinLock},
};

fn shared<T>(state: T) -> Arc<SpinLock<T>> {
    Arc::pin_init(new_spinlock!(state, "shared"), GFP_KERNEL).unwrap()
}

#[test]
fn the_last_owner_drops_it() {
    let live = AtomicUsize::new(0);
    let first = shared(Counted::new(&live));
    let second = first.clone();
    let raw = Arc::into_raw(first);
    drop(second);
    assert_eq!(live.load(Ordering::Relaxed), 1);
    // SAFETY: From `into_raw`, once.
    let third = unsafe { Arc::from_raw(raw) };
    assert_eq!(live.load(Ordering::Relaxed), 1);
    drop(third);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn without_memory_there_is_none() {
    let live = AtomicUsize::new(0);
    fail(1);
    let none = Arc::pin_init(new_spinlock!(Counted::new(&live)), GFP_KERNEL);
    assert_eq!(none.err(), Some(ENOMEM));
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn lock_owners_and_object_are_one_piece_of_memory() {
    let before = allocations();
    let _one = shared([0_u64; 4]);
    assert_eq!(allocations(), before + 1);
}

/// The host's `spin_lock` goes by that, as a kernel that checks the order of locks.
#[test]
fn locks_made_in_different_places_are_of_different_kinds() {
    let inner = Arc::pin_init(new_spinlock!(2), GFP_KERNEL).unwrap();
    let outer = shared(inner.clone());
    let sum = *outer.lock().deref().lock() + 1;
    assert_eq!(sum, 3);
}

/// Whether a type may go to another thread, or be looked at by several: what stands beside it is
/// taken where its bounds hold, and else what the trait has.
struct Probe<T>(PhantomData<T>);

trait Neither {
    const SEND: bool = false;
    const SYNC: bool = false;
}

impl<T> Neither for Probe<T> {}

impl<T: Send> Probe<T> {
    const SEND: bool = true;
}

impl<T: Sync> Probe<T> {
    const SYNC: bool = true;
}

#[test]
fn only_what_may_goes_to_other_threads() {
    type OfOne = *mut u8;
    type NotAtOnce = Cell<u8>;
    type Mutexed = MutexGuard<'static, u8>;
    fn both<const SEND: bool, const SYNC: bool>() -> (bool, bool) {
        (SEND, SYNC)
    }
    macro_rules! probe {
        ($type:ty) => {
            both::<{ Probe::<$type>::SEND }, { Probe::<$type>::SYNC }>()
        };
    }
    assert_eq!(probe!(Arc<u8>), (true, true));
    assert_eq!(probe!(Arc<OfOne>), (false, false));
    assert_eq!(probe!(Arc<NotAtOnce>), (false, false));
    assert_eq!(probe!(Arc<Mutexed>), (false, false));
    assert_eq!(probe!(SpinLock<NotAtOnce>), (true, true));
    assert_eq!(probe!(SpinLock<OfOne>), (false, false));
    assert_eq!(probe!(SpinLock<Mutexed>), (false, false));
    assert_eq!(probe!(Guard<'static, u8>), (false, false));
    assert_eq!(probe!(KBox<u8>), (true, true));
    assert_eq!(probe!(KBox<OfOne>), (false, false));
    assert_eq!(probe!(KBox<NotAtOnce>), (true, false));
    assert_eq!(probe!(KVVec<u8>), (true, true));
    assert_eq!(probe!(KVVec<OfOne>), (false, false));
    assert_eq!(probe!(RBTree<u8, NotAtOnce>), (true, false));
    assert_eq!(probe!(RBTree<NotAtOnce, u8>), (true, false));
    assert_eq!(probe!(RBTree<u8, Mutexed>), (false, true));
    assert_eq!(probe!(RBTree<OfOne, u8>), (false, false));
}

const THREADS: u64 = 4;
const TIMES: u64 = 200;

#[test]
fn one_thread_at_a_time_sees_the_state() {
    let state = shared(0_u64);
    let threads = (0..THREADS).map(|_| {
        let state = state.clone();
        thread::spawn(move || {
            for _ in 0..TIMES {
                *state.lock() += 1;
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    assert_eq!(*state.lock(), THREADS * TIMES);
}

#[test]
fn owners_come_and_go_on_all_threads() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let state = shared((Counted::new(&LIVE), vec![0_u8; 64]));
    let threads = (0..THREADS).map(|number| {
        let state = state.clone();
        thread::spawn(move || {
            for _ in 0..TIMES {
                drop(state.clone());
            }
            state.lock().1[number as usize] = 1;
        })
    });
    let threads = threads.collect::<Vec<_>>();
    // Whichever thread is the last one drops it.
    drop(state);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}
