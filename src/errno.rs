// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Converts error numbers between Rust and C. A user sees each of these numbers as the error of the
//! system call that has failed.

use kernel::prelude::*;

/// Returns EOPNOTSUPP, for which the kernel crate has a constant only since 7.3.
pub(crate) fn eopnotsupp() -> Error {
    Error::from_errno(-95)
}

/// Returns EDQUOT, the error for a user who has reached the user's own limit.
pub(crate) fn edquot() -> Error {
    Error::from_errno(-122)
}

/// ENOTSUPP, which the driver may return. User space does not know this number, so [`to_result`]
/// replaces it.
const ENOTSUPP: i32 = 524;

/// Converts the return value of a C function, which is 0 or a negative error number. The error in
/// the result always has a number that user space knows. A positive value breaks the contract of
/// the interface, and so does a number that only the kernel uses. Both become EIO, except
/// ENOTSUPP, which becomes EOPNOTSUPP.
pub(crate) fn to_result(ret: i32) -> Result {
    match ret.checked_neg() {
        Some(0) => Ok(()),
        Some(ENOTSUPP) => Err(eopnotsupp()),
        Some(1..=511) => Err(Error::from_errno(ret)),
        _ => Err(EIO),
    }
}

/// Returns the positive number of an error, for messages.
pub(crate) fn number(error: &Error) -> u32 {
    error.to_errno().unsigned_abs()
}

/// Converts a result to a return value for C, which is 0 or a negative error number.
pub(crate) fn from_result(result: Result) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}
