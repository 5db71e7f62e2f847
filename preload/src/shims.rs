// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Finds shims, which are other preloaded libraries that wrap the same functions. Each function of
//! this library calls the function of the same name in the next shim after this library.
//! `RTLD_NEXT` would find the same function. A shim before this library is called first, and calls
//! this library itself.

use core::ffi::{c_void, CStr};
use core::marker::PhantomData;
use core::mem;
use core::ops::ControlFlow;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{Object, Version};
use crate::loaded::each_object;
use crate::verbs::{self, RegMr, RegMrEx, RegMrIova};

/// The next function with a certain name, which has the type `F`. The address stays valid, because
/// preloaded libraries are never closed.
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
        // SAFETY: a function that wraps a function of libibverbs has the same type.
        (!found.is_null()).then(|| unsafe { mem::transmute_copy(&found) })
    }

    fn look_in(&self, object: &Object<'_>) {
        if self.found.load(Ordering::Relaxed).is_null() {
            let found = object.function(self.name, Version::Default);
            self.found.store(found.cast_mut(), Ordering::Relaxed);
        }
    }
}

/// Searches the objects between this library and the first libibverbs. The library calls this
/// function when it is loaded. Later the list also has objects that the process has opened only for
/// a plug-in, and these must not be found.
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
