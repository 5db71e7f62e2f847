// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The parts of loom's interface that the models use. loom tries every order of threads. This crate
//! runs threads in one order, which the code that spawns the threads decides. This code says when a
//! thread continues, and at which *point* the thread stops. At a point, another thread may run. A
//! thread passes a point before it takes a lock, and at each access to an atomic.

pub mod sync;
pub mod thread;
