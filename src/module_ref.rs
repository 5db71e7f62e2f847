// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What keeps this module from being unloaded.

use crate::abi;

/// A reference to this module: while one exists, the module is not unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// A reference, unless the module is about to be unloaded.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: The module is at least still running this code.
        let live = unsafe { abi::nvpm_try_module_get() };
        // (`then_some` would make the object, and drop it, in any case.)
        live.then(|| Self(()))
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: Gives back the one reference that `get` took for this object.
        unsafe { abi::nvpm_module_put() };
    }
}
