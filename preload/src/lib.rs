// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A library for `LD_PRELOAD`. With it, a plain `ibv_reg_mr()` of GPU memory works on an RDMA core
//! without peer memory, because the library registers the memory as a dma-buf (nvpm_preload(7)).
//!
//! Each exported function first calls the real function with the caller's own arguments, and
//! returns a success unchanged. The real function belongs to the libibverbs that made the
//! protection domain, or to another preloaded library. A registration never waits for a thread that
//! is inside `dlopen()`.
#![no_std]

mod copies;
mod cuda;
mod elf;
mod gate;
mod inside;
mod known;
mod libc;
mod loaded;
mod log;
mod ready;
mod shims;
mod translate;
mod verbs;

use core::ffi::{c_uint, c_void};

use shims::Shim;
use verbs::{Mr, MrInitAttr, Pd, RegMrIova, Request, Verbs};

/// The dynamic linker calls this function when it loads the library, before the process starts
/// threads.
#[used]
#[link_section = ".init_array"]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    gate::close_during_forks();
    inside::create_key();
    log::read_environment();
    loaded::find_walk();
    ready::find();
    shims::find();
}

/// Calls `real`. If `real` fails, lets the translation try, and returns its answer. A success with
/// access on demand is also passed to the translation, because the kernel has not looked at the
/// memory yet.
///
/// # Safety
///
/// `asked.pd` is a protection domain that stays until this returns.
unsafe fn answered(asked: &Request, real: impl FnOnce() -> *mut Mr) -> *mut Mr {
    let before = inside::times();
    let mr = real();
    if !mr.is_null() && asked.access & verbs::ACCESS_ON_DEMAND == 0 {
        return mr;
    }
    // If the real function has called another function of this library, the translation has already
    // made the answer.
    if inside::times() != before {
        return mr;
    }
    // SAFETY: the caller promises the same.
    unsafe { translate::reconsider(mr, asked) }
}

/// Registers memory at the address that the program has chosen for the device. Calls the function
/// of the next preloaded library. If there is none, calls `verb` of the libibverbs that made the
/// protection domain.
///
/// # Safety
///
/// `asked.pd` is a protection domain that stays until this returns.
unsafe fn registered_at_iova(
    asked: &Request,
    shim: &Shim<RegMrIova>,
    verb: unsafe fn(&Verbs, &Request) -> *mut Mr,
) -> *mut Mr {
    let &Request { pd, addr, length, iova, access } = asked;
    let real = || match shim.get() {
        // SAFETY: these are the caller's own arguments.
        Some(shim) => unsafe { shim(pd, addr, length, iova, access) },
        None => {
            // SAFETY: the caller promises it for `pd`.
            let copy = unsafe { copies::of(pd) };
            // SAFETY: `pd` belongs to this copy.
            unsafe { verb(&copy, asked) }
        }
    };
    // SAFETY: the caller promises the same.
    unsafe { answered(asked, real) }
}

/// Replaces `ibv_reg_mr_iova2()` of libibverbs. In libibverbs, `ibv_reg_mr()` and
/// `ibv_reg_mr_iova()` call this function by its name. A program that has looked up those two
/// functions in libibverbs therefore reaches this library nevertheless.
///
/// # Safety
///
/// The arguments are valid for libibverbs: `pd` is a protection domain that exists until this
/// function returns.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut Mr {
    let asked = Request { pd, addr, length, iova, access };
    // SAFETY: `pd` is the caller's.
    unsafe { registered_at_iova(&asked, &shims::REG_MR_IOVA2, Verbs::reg_mr_iova2) }
}

/// Replaces `ibv_reg_mr()` of libibverbs. This function is needed if libibverbs was linked with
/// `-Bsymbolic-functions`, as in Ubuntu. The `ibv_reg_mr()` of such a libibverbs calls its own
/// `ibv_reg_mr_iova2()`, and the call does not reach this library.
///
/// # Safety
///
/// The same as for `ibv_reg_mr_iova2`.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    access: c_uint,
) -> *mut Mr {
    let asked = Request { pd, addr, length, iova: addr as u64, access };
    let real = || match shims::REG_MR.get() {
        // SAFETY: these are the caller's own arguments.
        Some(shim) => unsafe { shim(pd, addr, length, access) },
        None => {
            // SAFETY: `pd` is the caller's.
            let copy = unsafe { copies::of(pd) };
            // SAFETY: `pd` belongs to this copy.
            unsafe { copy.reg_mr(&asked) }
        }
    };
    // SAFETY: `pd` is the caller's.
    unsafe { answered(&asked, real) }
}

/// Replaces `ibv_reg_mr_iova()` of libibverbs, for the same reason as `ibv_reg_mr()`.
///
/// # Safety
///
/// The same as for `ibv_reg_mr_iova2`.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut Mr {
    let asked = Request { pd, addr, length, iova, access };
    // SAFETY: `pd` is the caller's.
    unsafe { registered_at_iova(&asked, &shims::REG_MR_IOVA, Verbs::reg_mr_iova) }
}

/// Replaces `ibv_reg_mr_ex()`, which libibverbs has had since rdma-core 59. Perftest calls this
/// function if it exists.
///
/// # Safety
///
/// The arguments are valid for libibverbs: `pd` is a protection domain, and `attr` describes the
/// registration. Both exist until this function returns.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_ex(pd: *mut Pd, attr: *mut MrInitAttr) -> *mut Mr {
    // SAFETY: each version of the structure begins with these members.
    let of_caller = unsafe { &*attr };
    let MrInitAttr { length, access, comp_mask, iova, addr, .. } = *of_caller;
    let asked = match comp_mask {
        verbs::MASK_ADDR => Some(addr as u64),
        verbs::MASK_ADDR_AND_IOVA => Some(iova),
        // If the request has a descriptor, or a member that this library does not know, the program
        // receives the real function's answer.
        _ => None,
    }
    .map(|iova| Request { pd, addr, length, iova, access });
    let real = || {
        if let Some(shim) = shims::REG_MR_EX.get() {
            // SAFETY: these are the caller's own arguments.
            return unsafe { shim(pd, attr) };
        }
        // SAFETY: `pd` is the caller's.
        let copy = unsafe { copies::of(pd) };
        match (copy.reg_mr_ex, &asked) {
            // SAFETY: these are the caller's own arguments.
            (Some(real), _) => unsafe { real(pd, attr) },
            // A program that looks for the name finds this library's function, even if the
            // program's libibverbs does not have such a function.
            // SAFETY: `pd` belongs to this copy.
            (None, Some(asked)) => unsafe { copy.reg_mr_iova2(asked) },
            // SAFETY: as above.
            (None, None) => unsafe { copy.reg_mr_of_descriptor(pd, of_caller) },
        }
    };
    match &asked {
        // SAFETY: `pd` is the caller's.
        Some(asked) => unsafe { answered(asked, real) },
        None => real(),
    }
}

/// Ends the process. Nothing in this library panics, but Rust requires this function.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::abort() }
}
