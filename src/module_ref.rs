// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What keeps this module from being unloaded.

use super::abi;

/// A reference to this module: while there is one, the module is not unloaded.
pub(crate) struct ModuleRef(());

impl ModuleRef {
    /// A reference, unless the module is about to go.
    pub(crate) fn get() -> Option<Self> {
        // SAFETY: Takes no arguments; the module is at least still running this code.
        // (Not `then_some`: that makes the object, and drops it, in any case.)
        unsafe { abi::nvpm_module_get() }.then(|| Self(()))
    }
}

impl Drop for ModuleRef {
    fn drop(&mut self) {
        // SAFETY: Gives back the one reference that `get` took for this object.
        unsafe { abi::nvpm_module_put() };
    }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/module_ref.rs"]
mod kunit;
