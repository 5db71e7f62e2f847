// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's own `kernel` crate. The module uses it if the kernel has no `kernel` crate that the
//! module may use. The crate has only those items of the kernel's own crate that the module uses,
//! with the same names. The items are built on `core` and on C (`kernel.c`).
//!
//! Where versions of the kernel's own crate differ, this crate accepts only code that all versions
//! accept, so that code that compiles with this crate compiles with all versions.

#![no_std]
// Types of this crate have no `Default`, because the module does not use it.
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
    /// The only value. Only `module!` uses it.
    #[doc(hidden)]
    pub const ONE: Self = Self(());
}

/// The module's state, from loading to unloading.
pub trait Module: Sized + Sync + Send {
    /// Initialises the module. If this fails, the module is not loaded.
    fn init(module: &'static ThisModule) -> error::Result<Self>;
}

/// Makes the crate a kernel module whose state is a `$module`. The macro only checks the name and
/// the licence, because the build sets the name and `kernel.c` sets the licence.
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
                        // calls one after the other. They may run on different threads, because
                        // `Module` is `Send`.
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
