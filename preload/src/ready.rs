// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tells whether the dynamic linker has relocated a library.
//!
//! While one thread is inside `dlopen()`, the list of objects already has the new library, but the
//! library cannot be called: its pointers are still addresses in the file. A thread that took the
//! linker's lock would wait until the library is complete. But that thread would wait for ever if a
//! constructor, which runs under the same lock, waits for the thread. So two signs that need no
//! lock tell when a library has been relocated:
//!
//! - `_dl_find_object()`, since glibc 2.35, finds an address only in a library that has been
//!   relocated: `dlopen()` adds all new libraries to the table of this function after the last
//!   point at which loading can fail. The function takes no lock.
//! - An older glibc makes some of the library's pages read-only (`PT_GNU_RELRO`), and this is its
//!   last step with the library. The kernel tells whether a page is read-only.
//!
//! With an older glibc, a library without such pages counts as relocated.
//!
//! Neither sign tells whether the constructors of the library have run. Libcuda does not need its
//! constructors in order to answer: `cuPointerGetAttribute()` of version 580.159 returns
//! `CUDA_ERROR_NOT_INITIALIZED` before them, as it does before `cuInit()`. A process has no GPU
//! memory before `cuInit()`, so an error is the right answer. Libibverbs has no constructors that
//! a registration depends on.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ops::ControlFlow;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{Object, Version};
use crate::libc;
use crate::loaded::each_object;

/// Has room for a `struct dl_find_object`, which has 12 words.
type Found = [u64; 16];
type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// `_dl_find_object()`, or NULL before glibc 2.35.
static FIND_OBJECT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Looks for `_dl_find_object()`. The library calls this function when it is loaded.
pub(crate) fn find() {
    let version = Version::Only(c"GLIBC_2.35");
    let found = each_object(|object, _| {
        let found = object.function(c"_dl_find_object", version);
        if found.is_null() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(found)
        }
    });
    FIND_OBJECT.store(found.unwrap_or(null_mut()).cast_mut(), Ordering::Relaxed);
}

/// Returns whether `object` has been relocated.
pub(crate) fn is_relocated(object: &Object<'_>) -> bool {
    let found = FIND_OBJECT.load(Ordering::Relaxed);
    // SAFETY: `dlfcn.h` declares a function of this name with this type.
    match unsafe { mem::transmute::<*mut c_void, Option<FindObject>>(found) } {
        Some(find_object) => {
            let address = object.start() as *const c_void;
            // SAFETY: there is room for the answer, and the address may be any.
            unsafe { find_object(address, &mut Found::default()) == 0 }
        }
        // SAFETY: the function gives only protected pages, which stay mapped like the object.
        None => !object.protected().is_some_and(|page| unsafe { libc::is_writable(page) }),
    }
}
