// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module between models of its two neighbours, in every interleaving.
//!
//! The module's files come in here as they are, byte for byte; what they stand on is replaced:
//! `rt` by one over loom, which runs a scenario again and again until its threads have met in
//! every order, and `abi`, the C side, by models of the driver, the RDMA core and the kernel. The
//! models hold their own locks as the real ones do, keep count of everything, and stop at the
//! first breach of a contract.
#![cfg(test)]
#![allow(dead_code)]

#[path = "../../../src/client.rs"]
mod client;
#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/extents.rs"]
mod extents;
#[path = "../../../src/ffi.rs"]
mod ffi;
#[path = "../../../src/listed.rs"]
mod listed;
#[path = "../../../src/module_ref.rs"]
mod module_ref;
#[path = "../../../src/notify.rs"]
mod notify;
#[path = "../../../src/p2p.rs"]
mod p2p;
#[path = "../../../src/peer.rs"]
mod peer;
#[path = "../../../src/region.rs"]
mod region;
#[path = "../../../src/scatter.rs"]
mod scatter;
#[path = "../../../src/stats.rs"]
mod stats;

mod abi;
mod rt;

mod driver;
mod explore;
mod kernel;
mod rdma;
mod scenarios;
mod world;
