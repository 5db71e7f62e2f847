// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share by the module's own kernel crate, in every order in which they can meet: it
//! and its half in C as they are, which here stand on loom (`in_loom.rs`).
//!
//! What is shared are cells of loom's: it fails for two threads that look at one at once.
#![cfg(test)]

extern crate kernel_crate as kernel;

// kernel.c, compiled by build.rs, for the crate, which the linker sees later.
#[link(name = "crate_c", kind = "static", modifiers = "+whole-archive")]
extern "C" {}

mod in_loom;

use in_loom::explore;
use kernel::{
    new_spinlock,
    prelude::*,
    sync::{Arc, SpinLock},
};
use loom::{cell::Cell, thread};

/// Something that notices if it is dropped while somebody else looks at it.
struct Watchful(Cell<u64>);

impl Drop for Watchful {
    fn drop(&mut self) {
        self.0.set(0);
    }
}

fn watchful() -> Arc<SpinLock<Watchful>> {
    Arc::pin_init(new_spinlock!(Watchful(Cell::new(7))), GFP_KERNEL).unwrap()
}

#[test]
fn the_last_owner_is_alone() {
    explore(|| {
        let state = watchful();
        let others = [state.clone(), state.clone()];
        let threads = others.map(|other| {
            thread::spawn(move || {
                assert_eq!(other.lock().0.get(), 7);
                drop(other.clone());
            })
        });
        drop(state);
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn an_owner_goes_from_thread_to_thread() {
    explore(|| {
        let state = watchful();
        let given = Arc::into_raw(state.clone()) as usize;
        let thread = thread::spawn(move || {
            // SAFETY: From `into_raw`, once.
            let taken = unsafe { Arc::from_raw(given as *const SpinLock<Watchful>) };
            assert_eq!(taken.lock().0.get(), 7);
        });
        drop(state);
        thread.join().unwrap();
    });
}

#[test]
fn one_thread_at_a_time_sees_the_state() {
    explore(|| {
        let state = watchful();
        let threads = [state.clone(), state.clone()].map(|state| {
            thread::spawn(move || {
                let seen = state.lock();
                seen.0.set(seen.0.get() + 1);
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(state.lock().0.get(), 9);
    });
}
