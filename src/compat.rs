// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Functions that the kernel crate lacks, or has in some versions only.

use crate::abi;

/// Prints a warning, rate-limited: for paths that a user can take at will.
macro_rules! pr_warn_ratelimited {
    ($($arg:tt)*) => {
        if $crate::compat::ratelimit() {
            ::kernel::prelude::pr_warn!($($arg)*)
        }
    };
}
pub(crate) use pr_warn_ratelimited;

/// Whether the rate limit lets one more line into the kernel's log.
pub(crate) fn ratelimit() -> bool {
    // SAFETY: Callable from any context.
    unsafe { abi::nvpm_ratelimit() }
}
