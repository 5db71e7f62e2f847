// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share: owners, lock, waiting.

use std::{
    cell::Cell,
    marker::PhantomData,
    sync::{
        atomic::{AtomicUsize, Ordering},
        MutexGuard,
    },
    thread,
};

use crate::{
    errno::Errno,
    kernel::{fail, Counted},
    rt::{Arc, Held, KBox, KVVec, Monitor},
};

#[test]
fn the_last_owner_drops_it() {
    let live = AtomicUsize::new(0);
    let first = Monitor::new(Counted::new(&live), Counted::new(&live)).unwrap();
    let second = first.clone();
    let raw = Arc::into_raw(first);
    drop(second);
    assert_eq!(live.load(Ordering::Relaxed), 2);
    // SAFETY: Taken back once.
    let third = unsafe { Arc::from_raw(raw) };
    assert_eq!(live.load(Ordering::Relaxed), 2);
    drop(third);
    assert_eq!(live.load(Ordering::Relaxed), 0);
}

#[test]
fn without_memory_there_is_none() {
    let live = AtomicUsize::new(0);
    fail(1);
    let none = Monitor::new(Counted::new(&live), ());
    assert_eq!(none.err(), Some(Errno::NOMEM));
    assert_eq!(live.load(Ordering::Relaxed), 0);
    let dropped = AtomicUsize::new(0);
    fail(1);
    let none = Monitor::new(Order(&dropped, 1), Order(&dropped, 0));
    assert!(none.is_err());
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
}

/// Says that it is dropped, and in which order.
struct Order<'a>(&'a AtomicUsize, usize);

impl Drop for Order<'_> {
    fn drop(&mut self) {
        assert_eq!(self.0.fetch_add(1, Ordering::Relaxed), self.1);
    }
}

#[test]
fn what_never_changes_is_dropped_last() {
    let dropped = AtomicUsize::new(0);
    drop(Monitor::new(Order(&dropped, 1), Order(&dropped, 0)).unwrap());
    assert_eq!(dropped.load(Ordering::Relaxed), 2);
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
    assert_eq!(probe!(Monitor<u8, NotAtOnce>), (true, true));
    assert_eq!(probe!(Monitor<NotAtOnce, u8>), (true, false));
    assert_eq!(probe!(Monitor<OfOne, u8>), (false, false));
    assert_eq!(probe!(Monitor<Mutexed, u8>), (false, true));
    assert_eq!(probe!(Monitor<u8, OfOne>), (false, false));
    assert_eq!(probe!(Held<'static, u8>), (false, false));
    assert_eq!(probe!(KBox<u8>), (true, true));
    assert_eq!(probe!(KBox<OfOne>), (false, false));
    assert_eq!(probe!(KBox<NotAtOnce>), (true, false));
    assert_eq!(probe!(KVVec<u8>), (true, true));
    assert_eq!(probe!(KVVec<OfOne>), (false, false));
}

const THREADS: u64 = 4;
const TIMES: u64 = 200;

#[test]
fn one_thread_at_a_time_sees_the_state() {
    let monitor = Monitor::new((), 0_u64).unwrap();
    let threads = (0..THREADS).map(|_| {
        let monitor = monitor.clone();
        thread::spawn(move || {
            for _ in 0..TIMES {
                *monitor.lock() += 1;
            }
        })
    });
    for thread in threads.collect::<Vec<_>>() {
        thread.join().unwrap();
    }
    assert_eq!(*monitor.lock(), THREADS * TIMES);
}

#[test]
fn owners_come_and_go_on_all_threads() {
    static LIVE: AtomicUsize = AtomicUsize::new(0);
    let monitor = Monitor::new(Counted::new(&LIVE), vec![0_u8; 64]).unwrap();
    let threads = (0..THREADS).map(|number| {
        let monitor = monitor.clone();
        thread::spawn(move || {
            for _ in 0..TIMES {
                drop(monitor.clone());
            }
            monitor.lock()[number as usize] = 1;
        })
    });
    let threads = threads.collect::<Vec<_>>();
    // Whichever thread is the last one drops it.
    drop(monitor);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(LIVE.load(Ordering::Relaxed), 0);
}

/// Threads that wait, that were let go, and whether they may.
#[derive(Default)]
struct Waiters {
    waiting: u64,
    gone: u64,
    may_go: bool,
}

#[test]
fn a_notification_wakes_every_waiter() {
    let monitor = Monitor::new((), Waiters::default()).unwrap();
    let threads = (0..THREADS).map(|_| {
        let monitor = monitor.clone();
        thread::spawn(move || {
            let mut waiters = monitor.lock();
            waiters.waiting += 1;
            monitor.notify(waiters);
            let mut waiters = monitor.lock();
            while !waiters.may_go {
                monitor.wait(&mut waiters);
            }
            waiters.gone += 1;
        })
    });
    let threads = threads.collect::<Vec<_>>();
    let mut waiters = monitor.lock();
    while waiters.waiting < THREADS {
        monitor.wait(&mut waiters);
    }
    waiters.may_go = true;
    monitor.notify(waiters);
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(monitor.lock().gone, THREADS);
}

#[test]
fn no_notification_is_lost() {
    // A ball between two threads: each must be woken each time.
    let monitor = Monitor::new((), 0_u64).unwrap();
    let other = monitor.clone();
    let player = |monitor: Arc<Monitor<(), u64>>, parity: u64| {
        for _ in 0..TIMES {
            let mut ball = monitor.lock();
            while *ball % 2 != parity {
                monitor.wait(&mut ball);
            }
            *ball += 1;
            monitor.notify(ball);
        }
    };
    let thread = thread::spawn(move || player(other, 1));
    player(monitor.clone(), 0);
    thread.join().unwrap();
    assert_eq!(*monitor.lock(), 2 * TIMES);
}
