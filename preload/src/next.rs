// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Finds the functions that this library replaces, in the object that comes next after this
//! library. The object is another preloaded library that replaces the same function, or the C
//! library. `dlsym()` with `RTLD_NEXT` would find the same function, but auditors of the dynamic
//! linker would also see the call, such as the one in audit.rs.

use core::ffi::{c_int, c_ulong, c_void, CStr};
use core::marker::PhantomData;
use core::mem;
use core::ops::ControlFlow;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::libc;
use crate::loaded::each_object;

/// A function that has the type `F`, or nothing before the library has looked for the function. The
/// address stays valid, because neither the C library nor preloaded libraries are ever closed.
struct Next<F> {
    name: &'static CStr,
    found: AtomicPtr<c_void>,
    kind: PhantomData<F>,
}

type Ioctl = unsafe extern "C" fn(c_int, c_ulong, *mut c_void) -> c_int;
type RegisterAtfork =
    unsafe extern "C" fn(extern "C" fn(), extern "C" fn(), extern "C" fn(), *const c_void) -> c_int;

static IOCTL: Next<Ioctl> = Next::new(c"ioctl");
static REGISTER_ATFORK: Next<RegisterAtfork> = Next::new(c"__register_atfork");

impl<F: Copy> Next<F> {
    const fn new(name: &'static CStr) -> Self {
        const { assert!(mem::size_of::<F>() == mem::size_of::<*mut c_void>()) }
        Self { name, found: AtomicPtr::new(null_mut()), kind: PhantomData }
    }

    fn get(&self) -> Option<F> {
        let found = self.found.load(Ordering::Relaxed);
        // SAFETY: a function of this name has the type `F`.
        (!found.is_null()).then(|| unsafe { mem::transmute_copy(&found) })
    }

    fn find(&self) {
        let mut is_after = false;
        let found = each_object(|object, _| {
            let found = if is_after {
                object.function(self.name)
            } else {
                is_after = object.contains(find as *const () as u64);
                null_mut()
            };
            if found.is_null() {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(found)
            }
        });
        self.found.store(found.unwrap_or(null_mut()).cast_mut(), Ordering::Relaxed);
    }
}

/// Looks for the functions. The library calls this function when it is loaded. Later the list also
/// has objects that the process has opened only for a plug-in, and these must not be found.
pub(crate) fn find() {
    IOCTL.find();
    REGISTER_ATFORK.find();
}

/// Calls the next `ioctl()`. Before the library is loaded completely, for example in a constructor
/// of another library, this is the system call itself.
///
/// # Safety
///
/// The arguments are valid for `ioctl()`.
pub(crate) unsafe fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    match IOCTL.get() {
        // SAFETY: the caller promises that the arguments are valid for `ioctl()`, and `next` is an
        // `ioctl()`.
        Some(next) => unsafe { next(fd, request, argument) },
        // SAFETY: the caller promises that the arguments are valid for `ioctl()`.
        None => unsafe { libc::system_ioctl(fd, request, argument) },
    }
}

/// Gives three functions to `fork()`: for its beginning, for its end in the parent, and for its end
/// in the child. Only glibc has this function. With another C library nothing happens, because its
/// programs have no CUDA.
pub(crate) fn register_atfork([first, in_parent, in_child]: [extern "C" fn(); 3]) {
    if let Some(register) = REGISTER_ATFORK.get() {
        // SAFETY: this library is never unmapped (`-z nodelete`), so the functions stay.
        unsafe { register(first, in_parent, in_child, core::ptr::null()) };
    }
}
