// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Puts log messages into the trail.

use std::fmt;

use crate::world::{note, trail};

/// The word that begins a log message in the trail.
const LOG: &str = "log: ";

/// Puts a message into the trail, with the level at which the module has logged it.
pub(crate) fn say(level: &str, text: fmt::Arguments<'_>) {
    let text = text.to_string();
    let line = text.strip_suffix('\n').expect("a message ends its line");
    note(format!("{LOG}{level} {line}"));
}

/// Returns the messages so far, each with its level.
pub(crate) fn logged() -> Vec<String> {
    let trail = trail().expect("a model runs");
    let messages = trail.lines().filter_map(|line| line.split_once(LOG));
    messages.map(|(_, message)| message.to_owned()).collect()
}

macro_rules! error {
    ($($arg:tt)*) => { $crate::print::say("error", format_args!($($arg)*)) };
}
macro_rules! warning {
    ($($arg:tt)*) => { $crate::print::say("warning", format_args!($($arg)*)) };
}
macro_rules! information {
    ($($arg:tt)*) => { $crate::print::say("info", format_args!($($arg)*)) };
}
pub(crate) use {error as pr_err, information as pr_info, warning as pr_warn};
