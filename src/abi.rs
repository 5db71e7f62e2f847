// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The declarations of `peer_mem.h`, `nv-p2p.h` and `nvpm.h`, which bindgen has translated from C
//! (see `include/bindings.h`). Assertions check that the structures have the layouts with which the
//! RDMA core and the driver were compiled.
//!
//! With the kernel's own crate, bindgen generates the declarations during the build. With this
//! module's `kernel` crate, the build uses `include/bindings.rs`, which was generated in advance.
//! The C files assert that the structures of the kernel have the same layouts.

use core::mem::{offset_of, size_of};

/// The integer types of C in the kernel, where `char` is unsigned and `long` is as wide as a
/// pointer. The kernel's own crate defines the same types only since 6.14, so the module does not
/// use the crate's definitions.
#[allow(dead_code, non_camel_case_types)]
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

/// The generated declarations. The names come from C, and the style from bindgen.
#[allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub
)]
mod bindings {
    use super::ffi;

    /// C types whose contents this module never reads. The module only passes pointers to them on.
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
}
pub(crate) use bindings::*;

// core.c and nvidia.c assert the same sizes and offsets. The assertions in C check the compiler of
// the kernel, and the assertions below check bindgen. Both must use the layouts with which the RDMA
// core and the driver were compiled.
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

/// Returns the size of the kernel's page in bytes.
pub(crate) fn page_size() -> u64 {
    // SAFETY: C defines `nvpm_page_size` as a constant.
    unsafe { nvpm_page_size }
}

/// Lets other threads run. The caller may sleep.
pub(crate) fn cond_resched() {
    // SAFETY: The caller may sleep.
    unsafe { nvpm_cond_resched() }
}
