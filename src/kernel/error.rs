// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Error numbers.

use core::{ffi::c_int, num::NonZeroI32};

use crate::alloc::AllocError;

/// The reason for a failure, as a negative error number of C.
///
/// # Invariants
///
/// The number is between -4095 and -1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error(NonZeroI32);

/// The result of a fallible operation.
pub type Result<T = (), E = Error> = core::result::Result<T, E>;

/// The errors by their names in errno(3).
#[allow(missing_docs)]
pub mod code {
    use super::Error;

    pub const EIO: Error = Error::known(-5);
    pub const ENOMEM: Error = Error::known(-12);
    pub const EFAULT: Error = Error::known(-14);
    pub const EBUSY: Error = Error::known(-16);
    pub const EINVAL: Error = Error::known(-22);
}

impl Error {
    /// Makes a constant error. The compiler evaluates the calls, so `panic!` cannot run in the
    /// kernel.
    const fn known(errno: c_int) -> Self {
        match NonZeroI32::new(errno) {
            // INVARIANT: All numbers in `code` are between -4095 and -1.
            Some(number) => Self(number),
            None => panic!(),
        }
    }

    /// Returns the error with this number, or `EINVAL` if the number is out of range.
    pub fn from_errno(errno: c_int) -> Self {
        match NonZeroI32::new(errno) {
            // INVARIANT: The guard checks the range.
            Some(number) if (-4095..0).contains(&errno) => Self(number),
            _ => code::EINVAL,
        }
    }

    /// Returns the number, which is negative.
    pub fn to_errno(self) -> c_int {
        self.0.get()
    }
}

impl From<AllocError> for Error {
    fn from(_: AllocError) -> Self {
        code::ENOMEM
    }
}
