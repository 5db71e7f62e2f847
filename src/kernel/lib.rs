// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The `kernel` crate for kernels without a crate that the module may use. This crate has the items
//! that the module takes from the kernel's own crate, with the same names, built on `core` and C
//! (`kernel.c`).
//!
//! If versions of the kernel's crate differ, this crate is as strict as the strictest version, so
//! that code that compiles with this crate compiles with all versions.

#![no_std]
// The module does not use `Default`.
#![allow(clippy::new_without_default)]

pub mod alloc;
pub mod error;
pub mod print;
pub mod rbtree;

/// The names that most files need.
pub mod prelude {
    pub use crate::alloc::{flags::GFP_KERNEL, KBox, KVVec};
    pub use crate::error::{code::*, Error, Result};
    pub use crate::{module, pr_err, pr_info, pr_warn, ThisModule};
}

/// The module, as the kernel identifies it.
pub struct ThisModule(());

impl ThisModule {
    /// The only value, for `module!`.
    #[doc(hidden)]
    pub const ONE: Self = Self(());
}

/// The module's state, from loading to unloading.
pub trait Module: Sized + Sync + Send {
    /// Initialises the module. If this fails, the module is not loaded.
    fn init(module: &'static ThisModule) -> error::Result<Self>;
}

/// Makes the crate a kernel module whose state is a `$module`. `kernel.c` also has the module's
/// name and licence.
#[macro_export]
macro_rules! module {
    (type: $module:ty, name: "nv_peer_mem", license: "Dual BSD/GPL" $(,)?) => {
        const _: () = {
            static mut MODULE: Option<$module> = None;

            #[no_mangle]
            extern "C" fn nvpm_load() -> ::core::ffi::c_int {
                match <$module as $crate::Module>::init(&$crate::ThisModule::ONE) {
                    Ok(module) => {
                        // SAFETY: Only this function and `nvpm_unload` use `MODULE`, and `kernel.c`
                        // calls one after the other. The threads may differ: `Module: Send`.
                        unsafe { MODULE = Some(module) };
                        0
                    }
                    Err(error) => error.to_errno(),
                }
            }

            #[no_mangle]
            extern "C" fn nvpm_unload() {
                // SAFETY: Only this function and `nvpm_load` use `MODULE`, and `kernel.c` calls one
                // after the other.
                unsafe { MODULE = None };
            }
        };
    };
}
