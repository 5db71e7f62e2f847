// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Writes the log. With `NVPM_PRELOAD_LOG=1`, each translation and each refusal gets a line on
//! stderr.

use core::ffi::{c_int, CStr};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::libc::{self, File};
use crate::request::{Memory, Request};

const STDERR: c_int = 2;

static ON: AtomicBool = AtomicBool::new(false);

/// The identity of the file that was stderr when the library was loaded. The library compares it
/// before it writes a line, because a program may close stderr, and then open a file of its own
/// with the same descriptor.
static DEVICE: AtomicU64 = AtomicU64::new(0);
static INODE: AtomicU64 = AtomicU64::new(0);

/// Reads `NVPM_PRELOAD_LOG`. The library calls this function when it is loaded, because no other
/// thread can change the environment at that time.
pub(crate) fn read_environment() {
    // SAFETY: the name is a string, and there is one thread.
    let value = unsafe { libc::getenv(c"NVPM_PRELOAD_LOG".as_ptr()) };
    if value.is_null() {
        return;
    }
    // SAFETY: this is a string, and there is one thread.
    let value = unsafe { CStr::from_ptr(value) };
    let (true, Some(file)) = (value == c"1", File::of(STDERR)) else {
        return;
    };
    DEVICE.store(file.device, Ordering::Relaxed);
    INODE.store(file.inode, Ordering::Relaxed);
    ON.store(true, Ordering::Relaxed);
}

/// Returns whether the library writes a log.
pub(crate) fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

fn is_stderr_as_it_was() -> bool {
    let device = DEVICE.load(Ordering::Relaxed);
    let inode = INODE.load(Ordering::Relaxed);
    File::of(STDERR) == Some(File { device, inode })
}

/// Writes a line about a registration. `became` is the outcome, and `because` is the function that
/// caused it. The line also contains the answer of that function. `errno` is the error number that
/// the caller receives, or 0.
pub(crate) fn line(
    asked: &Request<'_>,
    errno: c_int,
    became: &CStr,
    because: &CStr,
    answer: &CStr,
) {
    if !on() || !is_stderr_as_it_was() {
        return;
    }
    let format = match errno {
        0 => c"nvpm_preload: %s of %p, %zu bytes: %s%s%s%s\n",
        _ => c"nvpm_preload: %s of %p, %zu bytes: %s%s%s%s; the caller gets: %m\n",
    };
    let answered = if answer.is_empty() { c"" } else { c" answered " };
    let [format, verb, became, because, answered, answer] =
        [format, asked.verb(), became, because, answered, answer].map(CStr::as_ptr);
    let Memory { addr, length, .. } = asked.memory;
    libc::set_errno(errno);
    // SAFETY: both formats have a string, a pointer, a size and four strings.
    unsafe { libc::dprintf(STDERR, format, verb, addr, length, became, because, answered, answer) };
}

/// Writes a line about a libibverbs whose registrations this library does not see.
pub(crate) fn passed_by(name: &CStr) {
    if !is_stderr_as_it_was() {
        return;
    }
    let format = c"nvpm_preload: %s was opened with RTLD_DEEPBIND and not seen: nvpm run --audit\n";
    // SAFETY: the format has a string.
    unsafe { libc::dprintf(STDERR, format.as_ptr(), name.as_ptr()) };
}
