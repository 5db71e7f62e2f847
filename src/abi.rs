// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The C side: bindgen's view of `peer_mem.h`, `nv-p2p.h` and `nvpm.h` (see `include/bindings.h`),
//! with assertions that the layouts are those that the neighbours were compiled with.
//!
//! With the kernel's own crate bindgen makes it during the build. Without, it was made before, and is
//! `include/bindings.rs`: C asserts that this kernel's structures are the same.

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

use core::mem::{offset_of, size_of};

use kernel::prelude::*;

/// C's types as the kernel has them: `char` is unsigned, `long` as wide as a pointer. Before 6.14 the
/// crate's own differ.
pub(crate) mod ffi {
    pub(crate) use core::ffi::c_void;
    pub(crate) type c_char = u8;
    pub(crate) type c_uchar = u8;
    pub(crate) type c_ushort = u16;
    pub(crate) type c_int = i32;
    pub(crate) type c_uint = u32;
    pub(crate) type c_ulong = usize;
    pub(crate) type c_longlong = i64;
    pub(crate) type c_ulonglong = u64;
}

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

#[cfg(not(nvpm_own_crate))]
include!(concat!(env!("NVPM_OBJ"), "/src/bindings_generated.rs"));
#[cfg(nvpm_own_crate)]
include!("include/bindings.rs");

// The same figures stand in core.c and nvidia.c: bindgen's compiler and the kernel's must agree on
// them, and both with the contract.
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

/// Operation not supported: a constant of the crate since 7.3.
pub(crate) fn eopnotsupp() -> Error {
    Error::from_errno(-95)
}

/// Disk quota exceeded: the limit is this user's, not the system's.
pub(crate) fn edquot() -> Error {
    Error::from_errno(-122)
}

/// ENOTSUPP, which the driver returns: a number of the kernel's own, which must not reach a user.
const ENOTSUPP: i32 = 524;

/// Converts the return value of a neighbour's function, 0 or a negative error number. The error has a
/// number that user space knows: a positive value, or a number that only the kernel uses, breaks the
/// neighbour's contract and becomes an I/O error.
pub(crate) fn check(ret: i32) -> Result {
    match ret.checked_neg() {
        Some(0) => Ok(()),
        Some(ENOTSUPP) => Err(eopnotsupp()),
        Some(1..=511) => Err(Error::from_errno(ret)),
        _ => Err(EIO),
    }
}

/// Converts a result for C: 0 or a negative error number.
pub(crate) fn to_c(result: Result) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}

/// Returns the size of the kernel's page in bytes.
pub(crate) fn page_size() -> u64 {
    // SAFETY: C defines it as a constant.
    unsafe { nvpm_page_size }
}

/// Lets other threads run. The caller may sleep.
pub(crate) fn cond_resched() {
    // SAFETY: Called where sleeping is allowed.
    unsafe { nvpm_cond_resched() }
}

// The module's parameters, as they were when it was loaded.

/// Whether the RDMA core is one of MLNX_OFED 4.1 to 5.0.
pub(crate) fn peerdirect_support() -> bool {
    // SAFETY: The parameter has no write permission: it does not change after loading.
    unsafe { nvpm_peerdirect_support != 0 }
}

/// Whether memory is pinned until deregistration, where the driver can do that.
pub(crate) fn persistent_api_support() -> bool {
    // SAFETY: The parameter has no write permission: it does not change after loading.
    unsafe { nvpm_persistent_api_support != 0 }
}

/// The end of a message about memory that cannot be revoked: what to do, if that is not done.
pub(crate) fn persistent_instead() -> &'static str {
    match persistent_api_support() {
        true => "",
        false => "; load the module with persistent_api_support=1",
    }
}
