// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A gate that only one thread at a time can pass. Only a thread that is inside the gate walks
//! through the list of objects. During a fork no thread is inside.
//!
//! A lock of the dynamic linker protects the list, and glibc does not release that lock in a child
//! of `fork()`. If another thread is in the middle of a walk when the process forks, the child
//! waits for ever in its own first walk. A fork therefore waits until no thread is inside the gate.
//! The fork waits only a short time, because a walk calls no function that waits.
//!
//! No thread waits for the gate much longer than two seconds, because a longer wait could be a
//! deadlock. A program may fork, or register memory, during a walk of its own. It then holds the
//! linker's lock, for which the thread inside the gate may be waiting. A thread counts its tries,
//! and sleeps a millisecond between them. `pthread_mutex_timedlock()` would wait for a time of the
//! system's clock, which may be set back meanwhile, and its variant with another clock is only in
//! glibc since 2.30.
//!
//! In one case a child still waits for ever. At the time of the fork, another part of the program
//! is walking through the list or changing it, and later the child walks through the list. A child
//! therefore walks only if CUDA may work in it (initialized.rs). That is wrong only if the parent
//! had initialized CUDA, but no registration of the parent had failed before the fork.

use core::cell::UnsafeCell;
use core::ffi::c_int;

use crate::initialized;
use crate::libc::{self, Mutex};

/// The number of tries between which a thread only lets other threads run, because most walks are
/// over after some microseconds.
const TRIES_AT_ONCE: u32 = 100;
/// The number of tries after each of which a thread sleeps a millisecond.
const TRIES: u32 = 2000;

struct Gate(UnsafeCell<Mutex>);

// SAFETY: only functions of the C library change the mutex, except in a child that has only one
// thread.
unsafe impl Sync for Gate {}

/// The mutex is recursive, because a walk may begin another walk (bypass.rs).
static GATE: Gate = Gate(UnsafeCell::new(Mutex::RECURSIVE));

/// While this object exists, the thread is inside the gate. If the thread has waited too long, it
/// continues without being inside, and the object exists nevertheless.
pub(crate) struct Passage(());

impl Passage {
    pub(crate) fn enter() -> Self {
        enter();
        Self(())
    }
}

impl Drop for Passage {
    fn drop(&mut self) {
        leave();
    }
}

/// The functions that the library gives to `fork()`: for its beginning, for its end in the parent,
/// and for its end in the child. With them, a fork waits until no thread is inside.
pub(crate) const DURING_FORKS: [extern "C" fn(); 3] = [enter, leave, open_in_child];

extern "C" fn enter() {
    for tried in 0..TRIES_AT_ONCE + TRIES {
        // SAFETY: this is a mutex.
        if unsafe { libc::pthread_mutex_trylock(GATE.0.get()) } == 0 {
            return;
        }
        if tried < TRIES_AT_ONCE {
            libc::let_others_run();
        } else {
            libc::sleep_a_millisecond();
        }
    }
}

/// Leaves the gate. If the thread has waited too long and is not inside, the C library refuses to
/// unlock the mutex, and nothing happens.
extern "C" fn leave() {
    // SAFETY: this is a mutex, and its kind makes the C library check its owner.
    let _: c_int = unsafe { libc::pthread_mutex_unlock(GATE.0.get()) };
}

/// Makes the mutex new in the child, and notes that this process is a child. The C library would
/// refuse to unlock the old mutex, because the thread has another number in the child.
extern "C" fn open_in_child() {
    // SAFETY: the child has one thread, which does not use the mutex now.
    unsafe { GATE.0.get().write(Mutex::RECURSIVE) };
    initialized::in_child();
}
