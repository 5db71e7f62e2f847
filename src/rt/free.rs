// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground *free*: nothing but `core`, and functions of C that every kernel gives to every
//! module (`free.c`).

mod load;
mod log;
mod memory;
mod shared;

pub(crate) use load::*;
pub(crate) use log::*;
pub(crate) use memory::*;
pub(crate) use shared::*;

use super::Module;
