// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share on the ground *free*, in every order in which they can meet: `shared.rs`
//! over `free.c` as it is, which here stands on loom (`in_loom.rs`).
//!
//! What is shared are cells of loom's: it fails for two threads that look at one at once.
#![cfg(test)]
#![allow(dead_code, unreachable_pub, unused_imports, unused_macros)]

// free.c, compiled by build.rs.
#[link(name = "free", kind = "static")]
extern "C" {}

mod abi;
#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/ffi.rs"]
mod ffi;
mod rt;

mod in_loom;

use in_loom::explore;
use loom::{cell::Cell, thread};
use rt::{Arc, Monitor};

/// Something that notices if it is dropped while somebody else looks at it.
struct Watchful(Cell<u64>);

impl Drop for Watchful {
    fn drop(&mut self) {
        self.0.set(0);
    }
}

fn watchful() -> Arc<Monitor<Watchful, Cell<u64>>> {
    Monitor::new(Watchful(Cell::new(7)), Cell::new(0))
        .ok()
        .unwrap()
}

#[test]
fn the_last_owner_is_alone() {
    explore(|| {
        let monitor = watchful();
        let others = [monitor.clone(), monitor.clone()];
        let threads = others.map(|other| {
            thread::spawn(move || {
                assert_eq!(other.fixed().0.get(), 7);
                drop(other.clone());
            })
        });
        drop(monitor);
        threads.map(|thread| thread.join().unwrap());
    });
}

#[test]
fn an_owner_goes_from_thread_to_thread() {
    explore(|| {
        let monitor = watchful();
        let given = Arc::into_raw(monitor.clone()) as usize;
        let thread = thread::spawn(move || {
            // SAFETY: Taken back once.
            let taken = unsafe { Arc::from_raw(given as *const Monitor<Watchful, Cell<u64>>) };
            assert_eq!(taken.fixed().0.get(), 7);
        });
        drop(monitor);
        thread.join().unwrap();
    });
}

#[test]
fn one_thread_at_a_time_sees_the_state() {
    explore(|| {
        let monitor = watchful();
        let threads = [monitor.clone(), monitor.clone()].map(|monitor| {
            thread::spawn(move || {
                let state = monitor.lock();
                state.set(state.get() + 1);
            })
        });
        threads.map(|thread| thread.join().unwrap());
        assert_eq!(monitor.lock().get(), 2);
    });
}

/// Waits until the state is `this`.
fn wait_for(monitor: &Monitor<Watchful, Cell<u64>>, this: u64) {
    let mut state = monitor.lock();
    while state.get() != this {
        monitor.wait(&mut state);
    }
}

/// Makes the state `this`, and says so.
fn say(monitor: &Monitor<Watchful, Cell<u64>>, this: u64) {
    let state = monitor.lock();
    state.set(this);
    monitor.notify(state);
}

#[test]
fn no_notification_is_lost() {
    explore(|| {
        let monitor = watchful();
        let other = monitor.clone();
        let thread = thread::spawn(move || {
            wait_for(&other, 1);
            say(&other, 2);
        });
        say(&monitor, 1);
        wait_for(&monitor, 2);
        thread.join().unwrap();
    });
}

#[test]
fn a_notification_wakes_every_waiter() {
    explore(|| {
        let monitor = watchful();
        let threads = [monitor.clone(), monitor.clone()]
            .map(|monitor| thread::spawn(move || wait_for(&monitor, 1)));
        say(&monitor, 1);
        // Whichever of them is the last owner.
        drop(monitor);
        threads.map(|thread| thread.join().unwrap());
    });
}
