// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Has the parts of loom that the models use, under loom's names. loom tries every order of
//! threads. This crate runs threads in one order: the code that spawns a thread decides when the
//! thread continues, and at which *point* it stops. At a point another thread may come in between;
//! points are taking a lock, and each access to an atomic.

pub mod sync;
pub mod thread;
