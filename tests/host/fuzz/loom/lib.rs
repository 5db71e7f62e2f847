// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the models use of loom, under loom's names. Where loom tries every order of threads, here they
//! run in one: whoever has spawned a thread says when it goes on, and at which *point* it stops. A point
//! is a place at which another thread may come in between: taking a lock, and each access to an atomic.

pub mod sync;
pub mod thread;
