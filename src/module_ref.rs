// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! References to this module.

use crate::abi;

/// A reference to this module. While a reference exists, the module cannot be unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// Takes a reference. Returns [`None`] if the module is about to be unloaded.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: The module is loaded, because it runs this code.
        let live = unsafe { abi::nvpm_try_module_get() };
        // With `then_some`, the object would be made and dropped even without a reference.
        live.then(|| Self(()))
    }

    /// Takes back a reference that was forgotten on purpose, to hold the module for longer.
    ///
    /// # Safety
    ///
    /// Each call must have its own forgotten result of [`Self::get`].
    pub(crate) unsafe fn recover() -> Self {
        Self(())
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: This object has the reference that `get` took, and gives it back once.
        unsafe { abi::nvpm_module_put() };
    }
}
