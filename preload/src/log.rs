// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `NVPM_PRELOAD_LOG=1`: a line on stderr for each translation and each refusal.

use core::ffi::{c_int, CStr};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::libc;
use crate::verbs::Request;

static ON: AtomicBool = AtomicBool::new(false);

/// Called when the library is loaded, while nobody else can be changing the environment.
pub(crate) fn read_environment() {
    // SAFETY: the name is a string, and there is one thread.
    let value = unsafe { libc::getenv(c"NVPM_PRELOAD_LOG".as_ptr()) };
    if !value.is_null() {
        // SAFETY: it is a string, which nobody changes meanwhile.
        let value = unsafe { CStr::from_ptr(value) };
        ON.store(value == c"1", Ordering::Relaxed);
    }
}

/// Whether somebody wants to know.
pub(crate) fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// What became of a registration, because of what, and what was answered there; with the error
/// number that the caller gets, or 0.
pub(crate) fn line(asked: &Request, errno: c_int, became: &CStr, because: &CStr, answer: &CStr) {
    if !on() {
        return;
    }
    let format = match errno {
        0 => c"nvpm_preload: ibv_reg_mr of %p, %zu bytes: %s%s%s%s\n",
        _ => c"nvpm_preload: ibv_reg_mr of %p, %zu bytes: %s%s%s%s; the caller gets: %m\n",
    };
    let answered = if answer.is_empty() { c"" } else { c" answered " };
    let [format, became, because, answered, answer] =
        [format, became, because, answered, answer].map(CStr::as_ptr);
    let Request { addr, length, .. } = *asked;
    libc::set_errno(errno);
    // SAFETY: both formats have a pointer, a size and four strings.
    unsafe { libc::dprintf(2, format, addr, length, became, because, answered, answer) };
}
