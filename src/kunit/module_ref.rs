// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests of what keeps the module from being unloaded.

use super::*;

fn module_refs() -> i32 {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_kunit_module_refs() }
}

#[kernel::macros::kunit_tests(nv_peer_mem_module_ref)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_keeps_the_module() {
        let before = module_refs();
        let reference = ModuleRef::get();
        assert!(reference.is_some());
        assert_eq!(module_refs(), before + 1);
        drop(reference);
        assert_eq!(module_refs(), before);
    }
}
