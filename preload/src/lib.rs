// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A library for `LD_PRELOAD`. With it, a plain `ibv_reg_mr()` of GPU memory works on an RDMA core
//! without peer memory, because the library registers the memory as a dma-buf (nvpm_preload(7)).
//!
//! The library replaces `ioctl()`, by which libibverbs gives its commands to the kernel. It does
//! not matter how the program has found libibverbs and its functions. The library first calls the
//! real function with the program's own arguments, and returns a success unchanged. A registration
//! never waits for a thread that is inside `dlopen()`.
//!
//! The dynamic linker may also load the library as an auditor (`LD_AUDIT`, audit.rs).
#![no_std]

mod audit;
mod bypass;
mod cuda;
mod elf;
mod gate;
mod initialized;
mod libc;
mod loaded;
mod log;
mod next;
mod request;
mod translate;
mod uverbs;

use core::ffi::{c_int, c_ulong, c_void};

/// The dynamic linker calls this function when it loads the library, before the program starts.
/// Only a constructor of another library can have started a thread.
#[used]
#[link_section = ".init_array"]
static AT_LOAD: extern "C" fn() = at_load;

extern "C" fn at_load() {
    loaded::find_walk();
    next::find();
    next::register_atfork(gate::DURING_FORKS);
    log::read_environment();
}

/// The dynamic linker calls this function when the process ends.
#[used]
#[link_section = ".fini_array"]
static AT_END: extern "C" fn() = at_end;

extern "C" fn at_end() {
    bypass::report();
}

/// Replaces `ioctl()`. A command of the RDMA core that has failed gets a second look. A command
/// that has succeeded gets one only for the log.
///
/// In C, the function has a variable number of arguments. On the processors for which there is an
/// NVIDIA driver, a third argument is passed as in a function with three.
///
/// # Safety
///
/// The arguments are valid for `ioctl()`.
#[no_mangle]
pub unsafe extern "C" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    if request as u32 != uverbs::REQUEST {
        // SAFETY: these are the caller's own arguments.
        return unsafe { next::ioctl(fd, request, argument) };
    }
    let before = libc::errno();
    // SAFETY: these are the caller's own arguments.
    let answered = unsafe { next::ioctl(fd, request, argument) };
    if answered != -1 && !log::on() {
        return answered;
    }
    // SAFETY: the caller has given this command to `ioctl()`, so no other thread uses the command
    // before `ioctl()` returns.
    let registered = unsafe { translate::reconsider(fd, argument, answered) };
    if registered {
        libc::set_errno(before);
        return 0;
    }
    answered
}

/// Ends the process. Nothing in this library panics, but Rust requires this function.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::abort() }
}
