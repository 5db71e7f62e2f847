// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Has the parts of loom that the models use, under loom's names. loom tries every order of
//! threads; this crate runs them in one order, and the code that has spawned a thread decides when
//! the thread continues, and at which *point* it stops. A point is a place at which another thread
//! may come in between: taking a lock, and each access to an atomic.

pub mod sync;
pub mod thread;
