// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A library for `LD_PRELOAD`: a plain `ibv_reg_mr()` of GPU memory works where the RDMA core has
//! no peer memory, because the library registers that memory as a dma-buf (nvpm_preload(7)).
//!
//! The real verb is always called first, with what the caller gave, and its success is returned as
//! it is. So host memory costs one more call, and a machine with peer memory notices nothing.
#![no_std]

mod cuda;
mod inside;
mod libc;
mod loaded;
mod log;
mod translate;
mod verbs;

use core::ffi::{c_uint, c_void};

use verbs::{Mr, MrInitAttr, Pd, Request};

/// The dynamic linker calls this when it loads the library, before there are threads.
#[used]
#[link_section = ".init_array"]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    inside::create_key();
    log::read_environment();
}

/// Whether the real verb's answer is the last word. On demand, it says nothing of the memory yet.
fn stands(mr: *mut Mr, access: c_uint) -> bool {
    !mr.is_null() && access & verbs::ACCESS_ON_DEMAND == 0
}

/// `ibv_reg_mr_iova2()` of libibverbs. Its own `ibv_reg_mr()` and `ibv_reg_mr_iova()` call this
/// one, too, by its name. So it is reached by who found these in libibverbs itself.
///
/// # Safety
///
/// As libibverbs wants it: `pd` is a protection domain that stays until this returns.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_iova2(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut Mr {
    let Some(real) = verbs::REG_MR_IOVA2.get() else {
        return verbs::missing();
    };
    // SAFETY: these are the caller's own arguments.
    let mr = unsafe { real(pd, addr, length, iova, access) };
    if stands(mr, access) {
        return mr;
    }
    // SAFETY: `pd` is the caller's, as above.
    unsafe { translate::reconsider(mr, &Request { pd, addr, length, iova, access }) }
}

/// `ibv_reg_mr()` of libibverbs, which is no more than this. Where libibverbs was linked with
/// `-Bsymbolic-functions`, as Ubuntu does, its own calls within reach nobody else.
///
/// # Safety
///
/// As `ibv_reg_mr_iova2`.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    access: c_uint,
) -> *mut Mr {
    // SAFETY: the caller promises the same.
    unsafe { ibv_reg_mr_iova2(pd, addr, length, addr as u64, access) }
}

/// `ibv_reg_mr_iova()` of libibverbs, for the same reason.
///
/// # Safety
///
/// As `ibv_reg_mr_iova2`.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_iova(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    iova: u64,
    access: c_uint,
) -> *mut Mr {
    // SAFETY: the caller promises the same.
    unsafe { ibv_reg_mr_iova2(pd, addr, length, iova, access) }
}

/// `ibv_reg_mr_ex()` of libibverbs (rdma-core 59), which perftest calls where it finds it.
///
/// # Safety
///
/// As libibverbs wants it: `pd` is a protection domain and `attr` what to register; both stay
/// until this returns.
#[no_mangle]
pub unsafe extern "C" fn ibv_reg_mr_ex(pd: *mut Pd, attr: *mut MrInitAttr) -> *mut Mr {
    let Some(real) = verbs::REG_MR_EX.get() else {
        return verbs::missing();
    };
    // SAFETY: these are the caller's own arguments.
    let mr = unsafe { real(pd, attr) };
    // SAFETY: each version of the structure begins with these members.
    let attr = unsafe { &*attr };
    let MrInitAttr { length, access, addr, .. } = *attr;
    if stands(mr, access) {
        return mr;
    }
    // With a descriptor, or anything that is not known here, the real answer stands.
    let iova = match attr.comp_mask {
        verbs::MASK_ADDR => addr as u64,
        verbs::MASK_ADDR_AND_IOVA => attr.iova,
        _ => return mr,
    };
    // SAFETY: `pd` is the caller's, as above.
    unsafe { translate::reconsider(mr, &Request { pd, addr, length, iova, access }) }
}

/// Nothing here panics; Rust wants this to be said.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::abort() }
}
