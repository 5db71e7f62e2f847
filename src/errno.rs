// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Error numbers between Rust and C. Users see each number as the error of their call.

use kernel::prelude::*;

/// Returns EOPNOTSUPP, for which the kernel crate has a constant only since 7.3.
pub(crate) fn eopnotsupp() -> Error {
    Error::from_errno(-95)
}

/// Returns EDQUOT, because the limit is this user's and not the system's.
pub(crate) fn edquot() -> Error {
    Error::from_errno(-122)
}

/// ENOTSUPP, which the driver returns. User space does not know this number, so the number must not
/// reach a user.
const ENOTSUPP: i32 = 524;

/// Converts the return value of a neighbour's function, 0 or a negative error number. The error has
/// a number that user space knows: a positive value, or a number that only the kernel uses, breaks
/// the neighbour's contract and becomes an I/O error.
pub(crate) fn to_result(ret: i32) -> Result {
    match ret.checked_neg() {
        Some(0) => Ok(()),
        Some(ENOTSUPP) => Err(eopnotsupp()),
        Some(1..=511) => Err(Error::from_errno(ret)),
        _ => Err(EIO),
    }
}

/// Converts a result for C: 0 or a negative error number.
pub(crate) fn from_result(result: Result) -> i32 {
    match result {
        Ok(()) => 0,
        Err(error) => error.to_errno(),
    }
}
