// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Functions of libraries that the process has loaded. None is ever loaded here.

use core::ffi::{c_void, CStr};
use core::marker::PhantomData;
use core::mem;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::libc;

/// A function of type `F` in a library that is found by its soname. `RTLD_NEXT` would not do: it
/// does not find what a program opened with `RTLD_LOCAL`.
pub(crate) struct Function<F> {
    library: &'static CStr,
    name: &'static CStr,
    version: Option<&'static CStr>,
    /// NULL until it was found.
    found: AtomicPtr<c_void>,
    kind: PhantomData<F>,
}

impl<F: Copy> Function<F> {
    /// # Safety
    ///
    /// `F` is the type of a pointer to the function that has this name and version.
    pub(crate) const unsafe fn new(
        library: &'static CStr,
        name: &'static CStr,
        version: Option<&'static CStr>,
    ) -> Self {
        const { assert!(mem::size_of::<F>() == mem::size_of::<*mut c_void>()) }
        Self { library, name, version, found: AtomicPtr::new(null_mut()), kind: PhantomData }
    }

    /// The function, or nothing while the process has no such library. What was not found is looked
    /// for again by the next call, since the library may have come.
    pub(crate) fn get(&self) -> Option<F> {
        let mut found = self.found.load(Ordering::Acquire);
        if found.is_null() {
            found = self.look_up();
        }
        // SAFETY: a pointer to this function is an `F`, as `new` was promised.
        (!found.is_null()).then(|| unsafe { mem::transmute_copy(&found) })
    }

    /// Two threads may both look; they find the same.
    #[cold]
    fn look_up(&self) -> *mut c_void {
        // SAFETY: the name is a string, and nothing is loaded.
        let library =
            unsafe { libc::dlopen(self.library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if library.is_null() {
            return null_mut();
        }
        let name = self.name.as_ptr();
        let found = match self.version {
            // SAFETY: `library` is referenced, and both are strings.
            Some(version) => unsafe { libc::dlvsym(library, name, version.as_ptr()) },
            // SAFETY: as above.
            None => unsafe { libc::dlsym(library, name) },
        };
        if found.is_null() {
            // SAFETY: this is the reference that was taken above.
            unsafe { libc::dlclose(library) };
        } else {
            // The reference is kept, so the function stays where it is.
            self.found.store(found, Ordering::Release);
        }
        found
    }
}
