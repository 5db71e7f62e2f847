// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A library for `LD_PRELOAD`: a plain `ibv_reg_mr()` of GPU memory works where the RDMA core has
//! no peer memory, because the library registers that memory as a dma-buf (nvpm_preload(7)).
//!
//! Each function here first calls the real function, with the caller's own arguments, and returns a
//! success unchanged. The real function belongs to the libibverbs that made the protection domain, or
//! to another preloaded library. A registration never waits for a thread that is in `dlopen()`.
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

/// The dynamic linker calls this when it loads the library, before there are threads.
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

/// Calls `real`. If `real` refuses GPU memory, the translation gives the answer. With an access on
/// demand, the translation also sees a success, because the kernel has not looked at the memory yet.
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
    // The real function may have called this library again by another name. Then the answer is
    // that of a translation already.
    if inside::times() != before {
        return mr;
    }
    // SAFETY: the caller promises the same.
    unsafe { translate::reconsider(mr, asked) }
}

/// Registers at the address that the program chose for the device: by the function of the next
/// preloaded library if there is one, else by `verb` of the libibverbs that made the protection domain.
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

/// `ibv_reg_mr_iova2()` of libibverbs. The `ibv_reg_mr()` and `ibv_reg_mr_iova()` of libibverbs call
/// this name. So a caller that looked those two up in libibverbs reaches this function.
///
/// # Safety
///
/// The caller gives what libibverbs wants: `pd` is a protection domain that stays until this returns.
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

/// `ibv_reg_mr()` of libibverbs. If libibverbs was linked with `-Bsymbolic-functions`, as in
/// Ubuntu, its own call of `ibv_reg_mr_iova2()` does not reach this library, so this name is
/// needed.
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

/// `ibv_reg_mr_iova()` of libibverbs, which is needed for the same reason as `ibv_reg_mr()`.
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

/// `ibv_reg_mr_ex()` of libibverbs, since rdma-core 59. Perftest calls this function if there is one.
///
/// # Safety
///
/// The caller gives what libibverbs wants: `pd` is a protection domain, and `attr` says what to
/// register; both stay until this returns.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_ex(pd: *mut Pd, attr: *mut MrInitAttr) -> *mut Mr {
    // SAFETY: each version of the structure begins with these members.
    let MrInitAttr { length, access, comp_mask, iova, addr } = *unsafe { &*attr };
    let asked = match comp_mask {
        verbs::MASK_ADDR => Some(addr as u64),
        verbs::MASK_ADDR_AND_IOVA => Some(iova),
        // With a descriptor, or with a member that is not known here, the real answer stands.
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
            // A program that looks for the name finds this library's function, even if its
            // libibverbs has none. SAFETY: `pd` belongs to this copy.
            (None, Some(asked)) => unsafe { copy.reg_mr_iova2(asked) },
            (None, None) => verbs::missing(),
        }
    };
    match &asked {
        // SAFETY: `pd` is the caller's.
        Some(asked) => unsafe { answered(asked, real) },
        None => real(),
    }
}

/// Ends the process. Nothing here panics, but Rust demands this function.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::abort() }
}
