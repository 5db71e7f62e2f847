// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Error numbers, as both neighbours return them and users read them.

/// A reason for a failure: a positive error number that user space knows.
///
/// # Invariants
///
/// The number is between 1 and 511: those above are the kernel's own and must not reach a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Errno(i32);

impl Errno {
    /// Input/output error: a neighbour did what its contract rules out.
    pub(crate) const IO: Self = Self(5);
    /// Out of memory: the kernel's, or room in the GPU's BAR1.
    pub(crate) const NOMEM: Self = Self(12);
    /// Bad address: the memory is not there (any more).
    pub(crate) const FAULT: Self = Self(14);
    /// Somebody else has it.
    pub(crate) const BUSY: Self = Self(16);
    /// Invalid argument.
    pub(crate) const INVAL: Self = Self(22);
    /// Operation not supported.
    pub(crate) const OPNOTSUPP: Self = Self(95);

    /// A limit is reached that is not the system's but one's own.
    pub(crate) const DQUOT: Self = Self(122);

    /// ENOTSUPP: the kernel's own number for "not supported", which the driver returns.
    const KERNEL_NOTSUPP: i32 = 524;

    /// The outcome of a C function that returns 0 or a negative error number. A positive value,
    /// or a number that is the kernel's own, is an error of its own kind.
    pub(crate) fn check(ret: i32) -> Result<(), Self> {
        match ret.checked_neg() {
            Some(0) => Ok(()),
            Some(Self::KERNEL_NOTSUPP) => Err(Self::OPNOTSUPP),
            // INVARIANT: The pattern is the invariant.
            Some(number @ 1..=511) => Err(Self(number)),
            _ => Err(Self::IO),
        }
    }

    /// As a C function returns it: negative.
    pub(crate) fn to_c(self) -> i32 {
        -self.0
    }

    /// The error number, as errno(3) lists it.
    pub(crate) fn number(self) -> i32 {
        self.0
    }
}

/// The outcome of a callback, as a C function returns it: 0 or a negative error number.
pub(crate) fn to_c(result: Result<(), Errno>) -> i32 {
    match result {
        Ok(()) => 0,
        Err(errno) => errno.to_c(),
    }
}
