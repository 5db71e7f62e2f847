// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Error numbers by name, in both directions.

use std::io;

use crate::sys;

/// The kernel's internal `ENOTSUPP`, which no user should ever be shown. It has
/// a name here so that a leak of it is called by its name.
const ENOTSUPP: u32 = 524;

macro_rules! names {
    ($($name:ident)*) => { &[$((stringify!($name), sys::$name)),*] };
}

#[rustfmt::skip]
const NAMES: &[(&str, u32)] = names![
    EPERM ENOENT ESRCH EINTR EIO ENXIO E2BIG EBADF ECHILD EAGAIN ENOMEM EACCES
    EFAULT EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR EINVAL ENFILE EMFILE ENOTTY
    EFBIG ENOSPC ESPIPE EROFS EPIPE EDOM ERANGE EDEADLK ENAMETOOLONG ENOLCK
    ENOSYS ENODATA ETIME EPROTO EBADMSG EOVERFLOW EMSGSIZE EPROTONOSUPPORT
    EOPNOTSUPP EADDRINUSE EADDRNOTAVAIL ENETDOWN ENETUNREACH ECONNABORTED
    ECONNRESET ENOBUFS EISCONN ENOTCONN ETIMEDOUT ECONNREFUSED EHOSTUNREACH
    EALREADY EINPROGRESS ESTALE EREMOTEIO EDQUOT ECANCELED EOWNERDEAD ENOTRECOVERABLE
];

/// `EINVAL` for 22; `errno-N` for a number that has no name here.
pub fn name(number: i32) -> String {
    match number {
        n if n == ENOTSUPP as i32 => "ENOTSUPP".to_owned(),
        n => match NAMES.iter().find(|(_, known)| *known as i32 == n) {
            Some((name, _)) => (*name).to_owned(),
            None => format!("errno-{n}"),
        },
    }
}

/// Whether [`name`] can ever answer `text`.
pub fn is_name(text: &str) -> bool {
    text == "ENOTSUPP"
        || NAMES.iter().any(|(name, _)| *name == text)
        || text
            .strip_prefix("errno-")
            .is_some_and(|number| number.parse::<u16>().is_ok())
}

/// The name of what went wrong, for `key=value` lines.
pub fn name_of(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(number) => name(number),
        None => format!("{:?}", error.kind()),
    }
}

/// The name and the words, for people.
pub fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        // The library's text ends in "(os error N)": the name says more.
        Some(number) => {
            let text = error.to_string();
            let words = text.split(" (os error").next().unwrap_or(&text);
            format!("{words} ({})", name(number))
        }
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_agree() {
        assert_eq!(name(12), "ENOMEM");
        assert_eq!(name(14), "EFAULT");
        assert_eq!(name(16), "EBUSY");
        assert_eq!(name(95), "EOPNOTSUPP");
        assert_eq!(name(524), "ENOTSUPP");
        assert_eq!(name(4000), "errno-4000");
        for (known, number) in NAMES {
            assert_eq!(name(*number as i32), *known);
            assert!(is_name(known));
        }
    }

    #[test]
    fn only_names_are_names() {
        assert!(is_name("ENOTSUPP"));
        assert!(is_name("errno-4000"));
        assert!(!is_name("ENOPE"));
        assert!(!is_name("enomem"));
        assert!(!is_name(""));
    }

    #[test]
    fn descriptions_carry_the_name() {
        let error = io::Error::from_raw_os_error(16);
        assert_eq!(name_of(&error), "EBUSY");
        assert_eq!(describe(&error), "Device or resource busy (EBUSY)");
    }
}
