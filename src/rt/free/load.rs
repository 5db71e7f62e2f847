// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module's beginning and its end, which C calls.

use core::{
    cell::UnsafeCell,
    mem::MaybeUninit, //
};

use super::{
    ffi::c_int,
    Module, //
};
use crate::errno;

/// Room for the module while it is loaded.
///
/// # Invariants
///
/// The module is there from the end of a [`Self::load`] that returned 0 to [`Self::unload`].
pub(crate) struct Loaded<M>(UnsafeCell<MaybeUninit<M>>);

// SAFETY: Only `load` and `unload` look into it, and by their requirements never at once.
unsafe impl<M: Send + Sync> Sync for Loaded<M> {}

impl<M: Module> Loaded<M> {
    pub(crate) const fn new() -> Self {
        // INVARIANT: Nobody has called `load`.
        Self(UnsafeCell::new(MaybeUninit::uninit()))
    }

    /// Makes the module: 0, or a negative error number.
    ///
    /// # Safety
    ///
    /// Called once.
    pub(crate) unsafe fn load(&self) -> c_int {
        let made = M::load().map(|module| {
            // SAFETY: By this function's requirement nobody else looks.
            unsafe { self.0.get().write(MaybeUninit::new(module)) };
        });
        // INVARIANT: It is there if this is 0.
        errno::to_c(made)
    }

    /// Drops it.
    ///
    /// # Safety
    ///
    /// Called once, when `load` has returned 0.
    pub(crate) unsafe fn unload(&self) {
        // SAFETY: By the type's invariant it is there, and by this function's requirement nobody
        // looks at it again.
        unsafe { (*self.0.get()).assume_init_drop() };
    }
}

/// Makes the crate a module, of which one `$module` is there from loading to unloading.
macro_rules! module {
    ($module:ident) => {
        static LOADED: $crate::rt::Loaded<$module> = $crate::rt::Loaded::new();

        #[no_mangle]
        extern "C" fn nvpm_load() -> $crate::rt::ffi::c_int {
            // SAFETY: `free.c` calls this once, when the kernel loads the module.
            unsafe { LOADED.load() }
        }

        #[no_mangle]
        extern "C" fn nvpm_unload() {
            // SAFETY: `free.c` calls this once, when the kernel unloads the module, which it does
            // only if loading it has succeeded.
            unsafe { LOADED.unload() }
        }
    };
}
pub(crate) use module;
