// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Puts log messages into the trail.

use std::fmt;

use crate::world::note;

/// Puts a message into the trail.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    note(format!("log: {}", text.to_string().trim_end()));
}

macro_rules! print {
    ($($arg:tt)*) => {
        $crate::print::say(format_args!($($arg)*))
    };
}
pub(crate) use {print as pr_err, print as pr_info, print as pr_warn};
