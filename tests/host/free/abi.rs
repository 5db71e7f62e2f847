// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The C side: the module's own view of it.

#![allow(
    clippy::all,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals
)]

use super::ffi;

#[repr(C)]
pub struct device([u8; 0]);
#[repr(C)]
pub struct pci_dev([u8; 0]);

include!("../../../src/abi/bindings.rs");
