// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Warnings with a rate limit, which the kernel crate lacks.

use crate::abi;

/// Prints a warning with a rate limit. Warnings that a user can cause at will use this macro.
macro_rules! pr_warn_ratelimited {
    ($($arg:tt)*) => {
        if $crate::ratelimit::ratelimit() {
            ::kernel::prelude::pr_warn!($($arg)*)
        }
    };
}
pub(crate) use pr_warn_ratelimited;

/// Tells whether the rate limit allows another line in the kernel's log.
pub(crate) fn ratelimit() -> bool {
    // SAFETY: The function is callable from any context.
    unsafe { abi::nvpm_ratelimit() }
}
