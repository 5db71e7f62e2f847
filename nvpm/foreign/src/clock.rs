// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The time of day as the C library knows it, because Rust's library has no time zones.
use std::mem::MaybeUninit;

/// Returns a time in seconds since 1970 as date and time of this machine's time zone, or the number itself if the C
/// library cannot divide it.
pub fn local_time(seconds: i64) -> String {
    let mut found = MaybeUninit::<libc::tm>::uninit();
    // SAFETY: both pointers are valid for the call: `seconds` lives until its end, and `found` has room for one `tm`.
    let filled = unsafe { libc::localtime_r(&raw const seconds, found.as_mut_ptr()) };
    if filled.is_null() {
        return seconds.to_string();
    }
    // SAFETY: localtime_r has filled in all members, because it returned no null pointer.
    let time = unsafe { found.assume_init() };
    let (year, month) = (time.tm_year + 1900, time.tm_mon + 1);
    let (day, hour, minute, second) = (time.tm_mday, time.tm_hour, time.tm_min, time.tm_sec);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_date() {
        let text = local_time(1_000_000_000);
        assert!(text.starts_with("2001-09-0"), "{text}");
        assert_eq!(text.len(), 19);
        assert_eq!(local_time(i64::MAX), i64::MAX.to_string());
    }
}
