// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Lines for the kernel's log, and what becomes of a panic.

use core::fmt::{
    self,
    Write, //
};

use crate::abi;

/// A line that is being made; what does not fit is left out.
///
/// # Invariants
///
/// `len` is not above the length of `text`.
struct Line {
    text: [u8; 448],
    len: usize,
}

impl Write for Line {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        let room = self.text.iter_mut().skip(self.len);
        for (to, from) in room.zip(more.bytes()) {
            *to = from;
            // INVARIANT: There was an element at `len`.
            self.len += 1;
        }
        Ok(())
    }
}

/// Prints a line, of the kernel's level 3 (error), 4 (warning), 6 (information), or the worst.
#[cold]
#[inline(never)]
pub(crate) fn print(level: u8, what: fmt::Arguments<'_>) {
    let mut line = Line {
        text: [0; 448],
        len: 0,
    };
    // Only a value's own formatting could fail, and then the rest of the line is missing.
    let _ = line.write_fmt(what);
    // SAFETY: By the invariant of `Line` that many bytes are there.
    unsafe { abi::nvpm_print(level.into(), line.text.as_ptr(), line.len) }
}

macro_rules! pr_err { ($($arg:tt)*) => { $crate::rt::print(3, format_args!($($arg)*)) } }
macro_rules! pr_warn { ($($arg:tt)*) => { $crate::rt::print(4, format_args!($($arg)*)) } }
macro_rules! pr_info { ($($arg:tt)*) => { $crate::rt::print(6, format_args!($($arg)*)) } }
pub(crate) use {
    pr_err,
    pr_info,
    pr_warn, //
};

/// Says where and why, then stops this thread, with a trace of it in the log, as `BUG()` does.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    print(0, format_args!("{info}\n"));
    // SAFETY: Takes no arguments, and does not return. C's declaration does not say so, but the
    // compiler puts a trap here, where those who read object files would miss an end.
    unsafe {
        abi::nvpm_bug();
        core::hint::unreachable_unchecked()
    }
}
