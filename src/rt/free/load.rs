// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's beginning and its end, which C calls.

use core::cell::UnsafeCell;

use super::Module;
use crate::{
    errno,
    ffi::c_int, //
};

/// Room for the module while it is loaded.
pub(crate) struct Loaded<M>(UnsafeCell<Option<M>>);

// SAFETY: Only `load` and `unload` look into it, and by their requirements never at once.
unsafe impl<M: Send> Sync for Loaded<M> {}

impl<M: Module> Loaded<M> {
    pub(crate) const fn new() -> Self {
        Self(UnsafeCell::new(None))
    }

    /// Makes the module: 0, or a negative error number.
    ///
    /// # Safety
    ///
    /// Neither this nor [`Self::unload`] is called meanwhile.
    pub(crate) unsafe fn load(&self) -> c_int {
        errno::to_c(M::load().map(|module| {
            // SAFETY: By this function's requirement nobody else looks.
            unsafe { *self.0.get() = Some(module) };
        }))
    }

    /// Drops it, if it is there.
    ///
    /// # Safety
    ///
    /// As for [`Self::load`].
    pub(crate) unsafe fn unload(&self) {
        // SAFETY: By this function's requirement nobody else looks.
        unsafe { *self.0.get() = None };
    }
}

/// Makes the crate a module, of which one `$module` is there from loading to unloading.
macro_rules! module {
    ($module:ident) => {
        static LOADED: $crate::rt::Loaded<$module> = $crate::rt::Loaded::new();

        #[no_mangle]
        extern "C" fn nvpm_load() -> $crate::ffi::c_int {
            // SAFETY: `free.c` calls this once, when the kernel loads the module.
            unsafe { LOADED.load() }
        }

        #[no_mangle]
        extern "C" fn nvpm_unload() {
            // SAFETY: `free.c` calls this once, when the kernel unloads the module: after loading.
            unsafe { LOADED.unload() }
        }
    };
}
pub(crate) use module;
