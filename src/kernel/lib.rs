// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The `kernel` crate for kernels that have none, or none that the module may use: what the module
//! takes from the kernel's own crate, by the same names, over `core` and C (`kernel.c`).
//!
//! Where versions of the kernel's crate differ, this is as strict as the strictest: what compiles
//! here compiles there.

#![no_std]
// The module uses neither `Default`, nor most of what the kernel's crate has.
#![allow(clippy::new_without_default)]

pub mod alloc;
pub mod error;
pub mod print;
pub mod rbtree;
pub mod sync;

/// What most files need.
pub mod prelude {
    pub use crate::alloc::{flags::GFP_KERNEL, KBox, KVVec};
    pub use crate::error::{code::*, Error, Result};
    pub use crate::{module, pr_err, pr_info, pr_warn, sync::InPlaceInit, ThisModule};
    pub use core::pin::Pin;
}

/// The module as the kernel knows it.
pub struct ThisModule(());

impl ThisModule {
    /// For `module!`.
    #[doc(hidden)]
    pub const ONE: Self = Self(());
}

/// What is there from loading the module to unloading it.
pub trait Module: Sized + Sync + Send {
    /// Makes it; an error ends the loading.
    fn init(module: &'static ThisModule) -> error::Result<Self>;
}

/// Makes the crate a module, of which one `$module` is there from loading to unloading. Its name
/// and its licence also stand in `kernel.c`.
#[macro_export]
macro_rules! module {
    (type: $module:ty, name: "nv_peer_mem", license: "Dual BSD/GPL" $(,)?) => {
        const _: () = {
            static mut MODULE: Option<$module> = None;

            #[no_mangle]
            extern "C" fn nvpm_load() -> ::core::ffi::c_int {
                match <$module as $crate::Module>::init(&$crate::ThisModule::ONE) {
                    Ok(module) => {
                        // SAFETY: Only this function and `nvpm_unload` use `MODULE`. `kernel.c` calls
                        // one after the other. It may do so on different threads: `Module: Send`.
                        unsafe { MODULE = Some(module) };
                        0
                    }
                    Err(error) => error.to_errno(),
                }
            }

            #[no_mangle]
            extern "C" fn nvpm_unload() {
                // SAFETY: As in `nvpm_load`.
                unsafe { MODULE = None };
            }
        };
    };
}
