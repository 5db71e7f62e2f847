// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The library as an auditor of the dynamic linker (`LD_AUDIT`, rtld-audit(7)).
//!
//! A program that opens libibverbs with `RTLD_DEEPBIND` binds the calls of libibverbs to the C
//! library and passes the preloaded library by. UCX opens its modules in this way. Only an auditor
//! can change what a symbol is bound to.
//!
//! The dynamic linker loads an auditor a second time, with a C library of its own. The auditor does
//! nothing but give calls of the C library's `ioctl()` to the preloaded library. Calls of a library
//! that was compiled with `-fno-plt` are not shown to an auditor. Addresses that a program looks up
//! with `dlsym()` stay as they are, because other preloaded libraries find the next function in
//! this way.

use core::ffi::{c_char, c_long, c_uint, c_void, CStr};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::elf;

/// The beginning of `struct link_map`.
#[repr(C)]
pub struct LinkMap {
    base: u64,
    name: *const c_char,
}

/// `Elf64_Sym`, as far as this file uses it.
#[repr(C)]
pub struct Symbol {
    name_and_kind: u64,
    /// The address to which the symbol is bound.
    value: usize,
}

// LA_FLG_..., for objects
const BIND_TO: c_uint = 1;
const BIND_FROM: c_uint = 2;
// LA_SYMB_..., for symbols
const NO_ENTER: c_uint = 1;
const NO_EXIT: c_uint = 2;
const BY_DLSYM: c_uint = 8;
/// `LM_ID_BASE`: the program's own list of objects.
const BASE: c_long = 0;

/// The function of the preloaded library.
static IOCTL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Returns the version of the interface. The dynamic linker asks for the version first.
#[no_mangle]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    version
}

/// Returns whether the auditor is interested in symbols that are bound to or from an object. The
/// dynamic linker calls this function for each object that it loads.
///
/// # Safety
///
/// `map` describes the object.
#[no_mangle]
pub unsafe extern "C" fn la_objopen(
    map: *const LinkMap,
    list: c_long,
    _cookie: *mut usize,
) -> c_uint {
    // SAFETY: `map` points to a `struct link_map`, which begins with these two fields, and which the
    // dynamic linker keeps unchanged during this call.
    let LinkMap { base, name } = *unsafe { &*map };
    if list != BASE || name.is_null() {
        return 0;
    }
    // SAFETY: the name of an object is a string with a zero byte at its end, which the dynamic linker
    // keeps as long as the object.
    let path = unsafe { CStr::from_ptr(name) }.to_bytes();
    let file = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    if file.starts_with(b"libnvpm_preload") {
        // SAFETY: this is a library of ours, which begins with its headers.
        let object = unsafe { elf::Object::at(base) };
        let found = object.function(c"ioctl");
        IOCTL.store(found.cast_mut(), Ordering::Relaxed);
        return 0;
    }
    if file == b"libc.so.6" {
        BIND_TO
    } else {
        BIND_FROM
    }
}

/// Returns the address to which a symbol is bound.
///
/// # Safety
///
/// The pointers are those of the dynamic linker.
#[no_mangle]
pub unsafe extern "C" fn la_symbind64(
    symbol: *const Symbol,
    _index: c_uint,
    _from: *mut usize,
    _to: *mut usize,
    flags: *mut c_uint,
    name: *const c_char,
) -> usize {
    // SAFETY: `flags` points to a variable of the dynamic linker, which nothing else uses during this
    // call.
    let flags = unsafe { &mut *flags };
    *flags |= NO_ENTER | NO_EXIT;
    // SAFETY: `symbol` points to the linker's own copy of an `Elf64_Sym`, which stays unchanged during
    // this call.
    let bound = unsafe { &*symbol }.value;
    // SAFETY: the name is a string with a zero byte at its end, in a table of an object that stays
    // mapped during this call.
    if unsafe { CStr::from_ptr(name) } != c"ioctl" {
        return bound;
    }
    let ours = IOCTL.load(Ordering::Relaxed) as usize;
    if ours == 0 || *flags & BY_DLSYM != 0 {
        bound
    } else {
        ours
    }
}
