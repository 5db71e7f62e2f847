// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPUDirect RDMA for NVIDIA GPUs. With this module, the RDMA core registers GPU memory like any
//! other memory.
//!
//! This file is the root of the module's crate, and lists the other files. If the kernel has a
//! crate `kernel` that the module can use, the module uses that crate. Otherwise the module uses
//! the crate in `kernel/`.

use kernel::prelude::*;

mod abi;
mod atomic;
mod device;
mod dma;
mod errno;
mod extents;
mod global;
#[cfg(nvpm_kunit)]
mod kunit;
mod large_ranges;
mod map_type;
mod module;
mod module_ref;
mod orphans;
mod page_table;
mod parameters;
mod peer_client;
mod persistent;
mod phase;
mod pin;
mod process;
mod ratelimit;
mod registry;
mod resched;
mod revocable;
mod sg_table;
mod stats;

use module::NvPeerMem;

module! {
    type: NvPeerMem,
    name: "nv_peer_mem",
    license: "Dual BSD/GPL",
}
