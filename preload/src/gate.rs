// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A gate that lets one thread at a time walk through the list of objects, and closes during a
//! fork.
//!
//! The list has a lock of the dynamic linker, and glibc does not free that lock in a child of
//! `fork()`. If another thread is in the middle of a walk at the fork, then the child waits for
//! ever in its own first walk. Therefore a fork waits until no thread of this library walks. The
//! wait is short, because a walk calls nothing that waits.
//!
//! No wait is longer than two seconds. A program may fork, or register memory, inside a walk of its
//! own, while it holds the lock that the thread inside the gate waits for.
//!
//! A child may still wait for ever if the child walks, and another part of the program walked or
//! changed the list at the fork. Most registrations do not walk (known.rs).

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_long};

use crate::libc::{self, Mutex};

struct Gate(UnsafeCell<Mutex>);

// SAFETY: only the C library's functions change the mutex, and a child that has one thread.
unsafe impl Sync for Gate {}

/// The same thread may enter again, in a handler of a signal.
static GATE: Gate = Gate(UnsafeCell::new(Mutex::RECURSIVE));

/// While this exists, the thread is inside the gate, or has waited too long and goes on outside.
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

/// Arranges that forks wait. The library calls this function when it is loaded.
pub(crate) fn close_during_forks() {
    // SAFETY: the library is never unmapped (`-z nodelete`), so the functions stay.
    unsafe { libc::__register_atfork(enter, leave, open_in_child, core::ptr::null()) };
}

extern "C" fn enter() {
    // SAFETY: the time is only returned, since the pointer is NULL.
    let now = unsafe { libc::time(core::ptr::null_mut()) };
    let end: [c_long; 2] = [now + 2, 0];
    // SAFETY: this is a mutex, and `end` has a `struct timespec`.
    let _: c_int = unsafe { libc::pthread_mutex_timedlock(GATE.0.get(), &raw const end) };
}

/// Leaves. If the thread waited too long and is not inside, the C library refuses, and nothing
/// happens.
extern "C" fn leave() {
    // SAFETY: this is a mutex, of the kind that knows its owner.
    let _: c_int = unsafe { libc::pthread_mutex_unlock(GATE.0.get()) };
}

/// Makes the mutex new in the child. The thread has another number there, so the C library would
/// refuse to unlock the mutex.
extern "C" fn open_in_child() {
    // SAFETY: the child has one thread, which does not use the mutex now.
    unsafe { GATE.0.get().write(Mutex::RECURSIVE) };
}
