// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Other preloaded libraries that wrap the same functions, and come after this one in the order of
//! preloading. Each function of this library calls the next library's function of the same name, as
//! `RTLD_NEXT` would find it. A library that comes before calls this one by itself.

use core::ffi::{c_void, CStr};
use core::marker::PhantomData;
use core::mem;
use core::ops::ControlFlow;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{Object, Version};
use crate::loaded::each_object;
use crate::verbs::{self, RegMr, RegMrEx, RegMrIova};

/// The next function of one name, of type `F`. No preloaded library is ever closed.
pub(crate) struct Shim<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    kind: PhantomData<F>,
}

pub(crate) static REG_MR: Shim<RegMr> = Shim::new(verbs::REG_MR);
pub(crate) static REG_MR_IOVA: Shim<RegMrIova> = Shim::new(verbs::REG_MR_IOVA);
pub(crate) static REG_MR_IOVA2: Shim<RegMrIova> = Shim::new(verbs::REG_MR_IOVA2);
pub(crate) static REG_MR_EX: Shim<RegMrEx> = Shim::new(verbs::REG_MR_EX);

impl<F: Copy> Shim<F> {
    const fn new(name: &'static CStr) -> Self {
        const { assert!(mem::size_of::<F>() == mem::size_of::<*mut c_void>()) }
        Self { name, found: AtomicPtr::new(null_mut()), kind: PhantomData }
    }

    pub(crate) fn get(&self) -> Option<F> {
        let found = self.found.load(Ordering::Relaxed);
        // SAFETY: a library that wraps a function of libibverbs gives its own the same type.
        (!found.is_null()).then(|| unsafe { mem::transmute_copy(&found) })
    }

    fn look_in(&self, object: &Object<'_>) {
        if self.found.load(Ordering::Relaxed).is_null() {
            let found = object.function(self.name, Version::Default);
            self.found.store(found.cast_mut(), Ordering::Relaxed);
        }
    }
}

/// Looks at the objects between this library and the first libibverbs. It is called when the library
/// is loaded: later the process also has objects that were opened for one plug-in only.
pub(crate) fn find() {
    let mut is_after = false;
    each_object(|object, _| {
        if !object.function(verbs::REG_MR, verbs::FIRST).is_null() {
            return ControlFlow::Break(());
        }
        if is_after {
            REG_MR.look_in(object);
            REG_MR_IOVA.look_in(object);
            REG_MR_IOVA2.look_in(object);
            REG_MR_EX.look_in(object);
        }
        is_after |= object.contains(find as *const () as u64);
        ControlFlow::Continue(())
    });
}
