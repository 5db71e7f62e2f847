// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! References to this module.

use crate::abi;

/// A reference to this module: while one exists, the module is not unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// A reference, unless the module is about to be unloaded.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: The module is loaded, since it runs this code.
        let live = unsafe { abi::nvpm_try_module_get() };
        // (`then_some` would create the object even without a reference, and drop it.)
        live.then(|| Self(()))
    }

    /// Takes back a reference that was forgotten on purpose, to hold the module for longer.
    ///
    /// # Safety
    ///
    /// A result of [`Self::get`] must have been forgotten for this, and for no other call.
    pub(crate) unsafe fn recover() -> Self {
        Self(())
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: Gives back the one reference that `get` took for this object.
        unsafe { abi::nvpm_module_put() };
    }
}
