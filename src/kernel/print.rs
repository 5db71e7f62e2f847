// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Lines for the kernel's log, and what becomes of a panic.

use core::fmt::{self, Write};

use core::ffi::c_int;

extern "C" {
    /// Prints `len` bytes of `text`, which are valid for reading. May be called in any context.
    fn nvpm_print(level: c_int, text: *const u8, len: usize);
    #[cfg(target_os = "none")]
    fn nvpm_bug();
}

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
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn print(level: u8, what: fmt::Arguments<'_>) {
    let mut line = Line {
        text: [0; 448],
        len: 0,
    };
    // Only a value's own formatting could fail, and then the rest of the line is missing.
    let _ = line.write_fmt(what);
    // SAFETY: By the invariant of `Line` that many bytes of `text` are there; all were written.
    unsafe { nvpm_print(level.into(), line.text.as_ptr(), line.len) }
}

/// Prints an error.
#[macro_export]
macro_rules! pr_err { ($($arg:tt)*) => { $crate::print::print(3, format_args!($($arg)*)) } }

/// Prints a warning.
#[macro_export]
macro_rules! pr_warn { ($($arg:tt)*) => { $crate::print::print(4, format_args!($($arg)*)) } }

/// Prints an information.
#[macro_export]
macro_rules! pr_info { ($($arg:tt)*) => { $crate::print::print(6, format_args!($($arg)*)) } }

/// Says where and why, then stops this thread, with a trace of it in the log, as `BUG()` does.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    print(0, format_args!("{info}\n"));
    // SAFETY: `nvpm_bug` has no arguments, may be called in any context, and does not return. Its
    // declaration does not say so: the compiler then puts a trap here, without which objtool
    // takes the next function for the continuation.
    unsafe {
        nvpm_bug();
        core::hint::unreachable_unchecked()
    }
}
