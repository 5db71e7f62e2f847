// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The standard files with which the process was started.
use std::sync::atomic::{AtomicBool, Ordering};

static IS_OUTPUT_CLOSED: AtomicBool = AtomicBool::new(false);

/// Notes whether standard output is closed. Rust's library opens /dev/null in its place before `main`, and output would
/// then be lost without an error.
extern "C" fn note() {
    // SAFETY: The call takes no pointers, and a descriptor that is closed gives an error.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
    IS_OUTPUT_CLOSED.store(flags < 0, Ordering::Relaxed);
}

/// The dynamic linker calls the functions of this section before Rust's library starts.
#[used]
// SAFETY: The section holds pointers to functions with C's way of calling, which may have fewer parameters than the
// linker gives them. `note` needs nothing of Rust's library, and cannot panic.
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note;

/// Returns whether the process was started without a standard output.
pub fn is_output_closed() -> bool {
    IS_OUTPUT_CLOSED.load(Ordering::Relaxed)
}
