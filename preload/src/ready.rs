// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tells whether the dynamic linker has relocated a library.
//!
//! While one thread is inside `dlopen()`, the list of objects already has the new library. But the
//! library cannot be called, because its pointers are still addresses in the file. A thread that
//! registers memory cannot wait for the linker's lock. A constructor runs under the same lock, and
//! may wait for the thread that registers memory, so both would wait for ever. This file therefore
//! uses two signs that need no lock:
//!
//! - `_dl_find_object()`, since glibc 2.35, finds an address only in a library that has been
//!   relocated. `dlopen()` adds all new libraries to the table of this function after the last
//!   point at which loading can fail. The function takes no lock.
//! - As the last step of relocating a library, an older glibc makes some of the library's pages
//!   read-only (`PT_GNU_RELRO`). The kernel can say whether a page is read-only.
//!
//! With an older glibc, a library without such pages always counts as relocated. And a library that
//! was relocated is unmapped again if another library that is opened with it cannot be loaded.
//!
//! Neither sign says whether the constructors of the library have run, but that does not matter.
//! Before its constructors have run, libcuda answers as it does before `cuInit()`. In version
//! 580.159, `cuPointerGetAttribute()` then returns `CUDA_ERROR_NOT_INITIALIZED`. An error is the
//! right answer, because a process has no GPU memory before `cuInit()`. Libibverbs has no
//! constructors on which a registration depends.

use core::ffi::{c_int, c_void};
use core::mem;
use core::ops::ControlFlow;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf::{Object, Version};
use crate::libc;
use crate::loaded::each_object;

/// A buffer that is large enough for a `struct dl_find_object`, which has 12 words.
type Found = [u64; 16];
type FindObject = unsafe extern "C" fn(*const c_void, *mut Found) -> c_int;

/// The address of `_dl_find_object()`, or NULL in a glibc before 2.35.
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
        None => !object.protected().is_some_and(|page| libc::is_writable(page as usize, 1)),
    }
}
