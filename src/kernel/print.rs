// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Lines for the kernel's log, and the panic handler.

use core::fmt::{self, Write};

use core::ffi::c_int;

extern "C" {
    /// Prints the `len` bytes at `text`, which must be valid for reading. Callable from any
    /// context.
    fn nvpm_print(level: c_int, text: *const u8, len: usize);
    #[cfg(target_os = "none")]
    fn nvpm_bug();
}

/// A buffer for a line. Text that does not fit is left out.
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
        let room = self.text.get_mut(self.len..).unwrap_or_default();
        for (to, from) in room.iter_mut().zip(more.bytes()) {
            *to = from;
            // INVARIANT: The iterator has yielded the element at `len`.
            self.len = self.len.wrapping_add(1);
        }
        Ok(())
    }
}

/// Prints a line in the kernel's log. The level is 3 (error), 4 (warning) or 6 (information). Other
/// levels are printed as an emergency.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub fn print(level: u8, what: fmt::Arguments<'_>) {
    let mut line = Line {
        text: [0; 448],
        len: 0,
    };
    // The result is ignored, because writing to the buffer cannot fail. If formatting a value
    // fails, only the rest of the line is missing.
    let _ = line.write_fmt(what);
    // SAFETY: By the invariant of `Line`, `len` is at most the length of `text`, which is
    // initialised.
    unsafe { nvpm_print(level.into(), line.text.as_ptr(), line.len) }
}

/// Prints an error.
#[macro_export]
macro_rules! pr_err { ($($arg:tt)*) => { $crate::print::print(3, format_args!($($arg)*)) } }

/// Prints a warning.
#[macro_export]
macro_rules! pr_warn { ($($arg:tt)*) => { $crate::print::print(4, format_args!($($arg)*)) } }

/// Prints a message for information.
#[macro_export]
macro_rules! pr_info { ($($arg:tt)*) => { $crate::print::print(6, format_args!($($arg)*)) } }

/// Prints the place and the message of a panic, and then calls `BUG()`, which logs a backtrace and
/// stops the thread.
#[cfg(target_os = "none")]
#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    print(0, format_args!("{info}\n"));
    // SAFETY: `nvpm_bug` is callable from any context and does not return. The declaration has no
    // `-> !`, so that the compiler puts a trap after the call. Without a trap, objtool would assume
    // that execution continues in the next function.
    unsafe {
        nvpm_bug();
        core::hint::unreachable_unchecked()
    }
}
