// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The C side: bindgen's view of `peer_mem.h`, `nv-p2p.h` and `shim.h` (see `abi/bindings.h`),
//! and assertions that its layouts are those that the neighbours were compiled with.
//!
//! On the ground *free* that view was made before, and is `abi/bindings.rs`: C asserts there that
//! this kernel's structures are the same.

#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub
)]

use core::mem::{
    offset_of,
    size_of, //
};

use super::ffi;

/// C types that only pass through this module behind pointers.
macro_rules! opaque {
    ($($name:ident),*) => {
        $(
            #[repr(C)]
            pub struct $name {
                _opaque: [u8; 0],
            }
        )*
    };
}
opaque!(device, pci_dev);

#[cfg(not(nvpm_free))]
include!(concat!(env!("NVPM_OBJ"), "/src/bindings_generated.rs"));
#[cfg(nvpm_free)]
include!("abi/bindings.rs");

// The same figures stand in shim.c: bindgen's compiler and the kernel's must agree on them, and
// both with the contract.
const _: () = {
    assert!(offset_of!(peer_memory_client, acquire) == 80);
    assert!(offset_of!(peer_memory_client, release) == 128);
    assert!(size_of::<nvpm_client>() == 152);
    assert!(offset_of!(nvpm_client, client) == 0);
    assert!(offset_of!(nvidia_p2p_page_table, page_size) == 4);
    assert!(offset_of!(nvidia_p2p_page_table, pages) == 8);
    assert!(offset_of!(nvidia_p2p_page_table, entries) == 16);
    assert!(size_of::<nvidia_p2p_page>() == 32);
    assert!(size_of::<nvidia_p2p_dma_mapping>() == 40);
    assert!(offset_of!(nvidia_p2p_dma_mapping, entries) == 8);
    assert!(offset_of!(nvidia_p2p_dma_mapping, dma_addresses) == 16);
};
