// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! References to this module, which the kernel crate lacks.

use crate::abi;

/// A reference to this module. While a reference exists, the module cannot be unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// Takes a reference. Returns [`None`] if the module is about to be unloaded.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: The module is loaded, because it runs this code.
        let live = unsafe { abi::nvpm_try_module_get() };
        // `then_some(Self(()))` would make the object even if `live` is false. Dropping the object
        // would then give back a reference that was not taken.
        live.then(|| Self(()))
    }

    /// Makes the object again for a reference whose object was passed to `mem::forget`. In the
    /// meantime the reference has kept the module loaded.
    ///
    /// # Safety
    ///
    /// For each call, one result of [`Self::get`] must have been forgotten.
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
