// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! How commands read numbers, and say what came of them: line by line and at
//! once, for the reader acts on a line while the command waits.

use std::fmt::Display;
use std::io::{self, Write};

use anyhow::{ensure, Error, Result};
use nix::errno::Errno;

/// One `key=value` line.
pub fn say(key: &str, value: impl Display) {
    line(format_args!("{key}={value}"));
}

/// One line of any other kind.
pub fn line(text: impl Display) {
    let mut out = io::stdout().lock();
    // A reader that has left changes nothing about what the command must do.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Says `holding` and waits for a line of input.
pub fn hold() {
    line("holding");
    // Whatever comes, an end of input included, is the word to go on.
    let _ = io::stdin().read_line(&mut String::new());
}

/// A command's exit status, after the reason is on standard error.
pub fn status_of(result: Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("gpuverbs: {}", describe(&error));
            1
        }
    }
}

/// With the name of an error number in place of the number.
pub fn describe(error: &Error) -> String {
    let text = format!("{error:#}");
    match error.downcast_ref().and_then(io::Error::raw_os_error) {
        Some(number) => text.replace(&format!("os error {number}"), &name(number)),
        None => text,
    }
}

/// `EINVAL` for 22; `errno-N` for a number that has no name. 524 is the kernel's
/// own, which no user should ever be shown: so a leak of it is called by its name.
pub fn name(number: i32) -> String {
    match Errno::from_raw(number) {
        _ if number == 524 => "ENOTSUPP".to_owned(),
        Errno::UnknownErrno => format!("errno-{number}"),
        known => format!("{known:?}"),
    }
}

pub const OK: &str = "ok";

/// `ok`, or the name of the error.
pub fn result_of<T>(result: &io::Result<T>) -> String {
    match result {
        Ok(_) => OK.to_owned(),
        Err(error) => error.raw_os_error().map_or_else(|| error.kind().to_string(), name),
    }
}

/// Whether `what` ended with one of the results that are `expected`.
pub fn expect(what: &str, result: &str, expected: &[String]) -> Result<()> {
    let met = expected.iter().any(|word| word == result);
    ensure!(met, "{what} ended with {result}, expected was {}", expected.join(" or "));
    Ok(())
}

/// For the command line: a sum of numbers, each decimal or 0x…, each with K, M
/// or G behind it or not.
pub fn size(text: &str) -> Result<u64, &'static str> {
    let sum = text.split('+').try_fold(0u64, |sum, term| {
        let (digits, unit) = match term.to_ascii_uppercase().chars().last()? {
            'K' => (&term[..term.len() - 1], 1 << 10),
            'M' => (&term[..term.len() - 1], 1 << 20),
            'G' => (&term[..term.len() - 1], 1 << 30),
            _ => (term, 1),
        };
        let (digits, radix) = match digits.strip_prefix("0x") {
            Some(hex) => (hex, 16),
            None => (digits, 10),
        };
        // from_str_radix() would take a sign.
        let all = digits.chars().all(|digit| digit.is_digit(radix));
        let value = u64::from_str_radix(digits, radix).ok().filter(|_| all)?;
        sum.checked_add(value.checked_mul(unit)?)
    });
    sum.ok_or("not a number below 2^64")
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn sizes() {
        for (text, value) in [
            ("0", 0),
            ("65536", 65536),
            ("64K", 65536),
            ("64k", 65536),
            ("0x10000", 65536),
            ("3M+17", 3 * 1024 * 1024 + 17),
            ("2G", 1 << 31),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(size(text), Ok(value), "{text}");
        }
        for text in [
            "",
            "K",
            "-1",
            "+1",
            "1+",
            "0x",
            "0x+1",
            "1.5M",
            "64KB",
            "1 ",
            "µ",
            "18446744073709551616",
            "17179869184G",
            "18446744073709551615+1",
        ] {
            assert!(size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_have_names() {
        assert_eq!(name(12), "ENOMEM");
        assert_eq!(name(122), "EDQUOT");
        assert_eq!(name(524), "ENOTSUPP");
        assert_eq!(name(4000), "errno-4000");
        let error = Err::<(), _>(io::Error::from_raw_os_error(16)).context("a verb");
        assert_eq!(describe(&error.unwrap_err()), "a verb: Device or resource busy (EBUSY)");
    }

    #[test]
    fn any_expected_result_will_do() {
        let expected = ["EINVAL".to_owned(), "EIO".to_owned()];
        assert!(expect("a verb", "EIO", &expected).is_ok());
        assert!(expect("a verb", OK, &expected).is_err());
    }
}
