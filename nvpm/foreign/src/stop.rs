// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Notes the signals by which systems end a program, so that the program ends when it is ready to.
use std::ffi::c_int;
use std::io;
use std::mem::zeroed;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicU32, Ordering};

static CAME: AtomicU32 = AtomicU32::new(0);

/// Has SIGINT and SIGTERM only counted, in this process and not in programs that it starts.
pub fn count_signals() -> io::Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: The structure consists of numbers and of a function that may be missing, so zeros are valid.
        let mut wanted: libc::sigaction = unsafe { zeroed() };
        wanted.sa_sigaction = count as extern "C" fn(c_int) as libc::sighandler_t;
        wanted.sa_flags = libc::SA_RESTART;
        // SAFETY: The signal exists, and the handler is a function of this type, which does only what is allowed in a
        // handler.
        if unsafe { libc::sigaction(signal, &raw const wanted, null_mut()) } != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn count(_: c_int) {
    CAME.fetch_add(1, Ordering::Relaxed);
}

/// Returns how many of these signals have come.
pub fn signals() -> u32 {
    CAME.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, id};
    use std::thread::yield_now;

    #[test]
    fn signals_are_counted() {
        count_signals().unwrap();
        for (number, signal) in ["INT", "TERM", "INT"].into_iter().enumerate() {
            assert_eq!(signals(), u32::try_from(number).unwrap());
            assert!(Command::new("kill").args(["-s", signal, &id().to_string()]).status().unwrap().success());
            while signals() as usize == number {
                yield_now();
            }
        }
        // A program that this process starts ends as usual.
        let ended = Command::new("sh").args(["-c", "kill -s TERM $$"]).status().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&ended), Some(libc::SIGTERM));
    }
}
