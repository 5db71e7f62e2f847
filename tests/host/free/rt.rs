// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's ground, put together as `rt.rs` and `rt/free.rs` do it.

use crate::errno::Errno;

#[path = "../../../src/rt/free/load.rs"]
mod load;
#[path = "../../../src/rt/free/log.rs"]
mod log;
#[path = "../../../src/rt/free/memory.rs"]
mod memory;
#[path = "../../../src/rt/free/shared.rs"]
mod shared;

pub(crate) use load::{module, Loaded};
pub(crate) use log::{pr_err, pr_info, pr_warn, print};
pub(crate) use memory::{AllocError, KBox, KVVec, GFP_KERNEL};
pub(crate) use shared::{Arc, Held, Monitor};

pub(crate) trait Module: Sized + Send + Sync + 'static {
    fn load() -> Result<Self, Errno>;
}
