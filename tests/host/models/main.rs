// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Runs the module between models of its two neighbours, in every interleaving.
//!
//! The module's files are compiled unchanged in this crate, together with a model of the `kernel`
//! crate. loom runs a scenario again and again, until its threads have run in every order. Models
//! of the driver, the RDMA core and the kernel replace the module's C files and its neighbours. The
//! models take their locks as the real neighbours do, count every object, and fail at the first
//! breach of a contract.
#![cfg(test)]

extern crate self as kernel;

// The model of the kernel crate. The model uses the module's own error.rs.
#[path = "../../doubles/models/alloc.rs"]
mod alloc;
#[path = "../../../src/kernel/error.rs"]
pub mod error;
#[path = "../../doubles/models/print.rs"]
mod print;
#[path = "../../doubles/models/rbtree.rs"]
mod rbtree;

/// The type by which the kernel crate identifies a module. The module does not use it.
pub(crate) struct ThisModule;

/// Loads the module, as the kernel does. Dropping the result unloads the module.
pub(crate) trait Module: Sized + Sync + Send {
    fn init(module: &'static ThisModule) -> error::Result<Self>;
}

/// The part of the kernel's crate that most of the module's files use.
mod prelude {
    pub(crate) use crate::alloc::{KBox, KVVec, GFP_KERNEL};
    pub(crate) use crate::error::{code::*, Error, Result};
    pub(crate) use crate::print::{pr_err, pr_info, pr_warn};
    pub(crate) use crate::ThisModule;
}

#[path = "../../../src/abi.rs"]
#[expect(dead_code, reason = "resched.rs of the module has a model")]
mod abi;
#[path = "../../../src/device.rs"]
mod device;
#[path = "../../../src/dma.rs"]
mod dma;
#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/extents.rs"]
mod extents;
#[path = "../../../src/global.rs"]
mod global;
#[path = "../../../src/large_ranges.rs"]
mod large_ranges;
#[path = "../../../src/map_type.rs"]
mod map_type;
#[path = "../../../src/module.rs"]
mod module;
#[path = "../../../src/module_ref.rs"]
mod module_ref;
#[path = "../../../src/orphans.rs"]
mod orphans;
#[path = "../../../src/page_table.rs"]
mod page_table;
#[path = "../../../src/parameters.rs"]
mod parameters;
#[path = "../../../src/peer_client.rs"]
mod peer_client;
#[path = "../../../src/persistent.rs"]
mod persistent;
#[path = "../../../src/phase.rs"]
mod phase;
#[path = "../../../src/pin.rs"]
mod pin;
#[path = "../../../src/process.rs"]
mod process;
#[path = "../../../src/ratelimit.rs"]
mod ratelimit;
#[path = "../../../src/registry.rs"]
mod registry;
#[path = "../../../src/revocable.rs"]
mod revocable;
#[path = "../../../src/sg_table.rs"]
mod sg_table;
#[path = "../../../src/stats.rs"]
mod stats;

#[path = "../../doubles/models/atomic.rs"]
mod atomic;
#[path = "../../doubles/models/c.rs"]
mod c;
#[path = "../../doubles/models/counts.rs"]
mod counts;
#[path = "../../doubles/models/driver.rs"]
mod driver;
mod explore;
#[path = "../../doubles/models/failure.rs"]
mod failure;
#[path = "../../doubles/models/linux.rs"]
mod linux;
#[path = "../../doubles/models/rdma.rs"]
mod rdma;
#[path = "../../doubles/models/resched.rs"]
mod resched;
mod scenarios;
#[path = "../../doubles/models/world.rs"]
mod world;
