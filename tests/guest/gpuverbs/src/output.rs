// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a command says on its standard output, line by line and at once: the
//! reader acts on a line while the command waits.

use std::fmt::Display;
use std::io::{self, Write};

/// One `key=value` line.
pub fn value(key: &str, value: impl Display) {
    line(format_args!("{key}={value}"));
}

/// One line of any other kind.
pub fn line(text: impl Display) {
    let mut out = io::stdout().lock();
    // A reader that has left changes nothing about what the command must do.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// Says `holding` and waits for a line of input.
pub fn hold() {
    line("holding");
    // Whatever comes, an end of input included, is the word to go on.
    let _ = io::stdin().read_line(&mut String::new());
}
