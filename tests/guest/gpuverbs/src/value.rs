// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Functions by which commands read numbers and print results. Each line is flushed at once,
//! because the reader acts on the line while the command waits.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::Result;
use nix::errno::Errno;

/// Prints a line `key=value`.
pub fn say(key: &str, value: impl Display) {
    line(format_args!("{key}={value}"));
}

/// Prints a line that is not `key=value`.
pub fn line(text: impl Display) {
    let mut out = io::stdout().lock();
    // An error is ignored, because the command must continue even if no program reads its output
    // any more.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Prints `holding` and waits for a line of input.
pub fn hold() {
    line("holding");
    // The command also continues if the input ends.
    let _ = io::stdin().read_line(&mut String::new());
}

/// Returns the exit status for a command's result. Prints the error, if there is one, on standard
/// error.
pub fn status_of(result: Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("gpuverbs: {error:#}");
            1
        }
    }
}

pub const OK: &str = "ok";

/// Returns `ok`, or the name of the error, such as `EINVAL`. Returns `errno-N` for a number N that
/// has no name in user space.
pub fn result_of<T>(result: &io::Result<T>) -> String {
    let Err(error) = result else { return OK.to_owned() };
    let Some(number) = error.raw_os_error() else { return error.kind().to_string() };
    match Errno::from_raw(number) {
        Errno::UnknownErrno => format!("errno-{number}"),
        known => format!("{known:?}"),
    }
}

/// Parses a sum of numbers, such as 3M+17. Each number is decimal or begins with 0x, and may end
/// with K, M or G.
pub fn size(text: &str) -> Result<u64, &'static str> {
    let sum = text.split('+').try_fold(0u64, |sum, term| {
        let digits = term.strip_suffix(['K', 'M', 'G']).unwrap_or(term);
        let unit = match &term[digits.len()..] {
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            _ => 1,
        };
        let (digits, radix) = digits.strip_prefix("0x").map_or((digits, 10), |hex| (hex, 16));
        let value = u64::from_str_radix(digits, radix).ok()?;
        sum.checked_add(value.checked_mul(unit)?)
    });
    sum.ok_or("not a number below 2^64")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let good = [("0", 0), ("64K", 1 << 16), ("0x10", 16), ("3M+17", 3145745), ("2G", 1 << 31)];
        for (text, value) in good {
            assert_eq!(size(text), Ok(value), "{text}");
        }
        for text in ["", "K", "-1", "1+", "0x", "1.5M", "64KB", "µ", "17179869184G"] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_have_names() {
        let name = |number| result_of::<()>(&Err(io::Error::from_raw_os_error(number)));
        assert_eq!([12, 122, 524].map(name), ["ENOMEM", "EDQUOT", "errno-524"]);
    }
}
