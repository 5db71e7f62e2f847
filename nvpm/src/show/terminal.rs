// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Describes the standard output. A terminal has a width and colours. If the output is a file or another program, each
//! fact is on one line.
use std::env;
use std::io::{self, IsTerminal};

use rustix::termios::tcgetwinsize;

use crate::facts::fact::Verdict;

/// The width of a terminal without a known width.
const USUAL_WIDTH: usize = 80;

/// The standard output. If the width is 0, lines are not wrapped.
#[derive(Clone, Copy, Default)]
pub struct Screen {
    pub width: usize,
    pub is_coloured: bool,
}

impl Screen {
    fn painted(self, colour: &str, text: &str) -> String {
        if self.is_coloured && !colour.is_empty() { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub fn marked(self, verdict: Verdict, text: &str) -> String {
        let colour = match verdict {
            Verdict::Good => "32",
            Verdict::Warn => "33",
            Verdict::Bad => "1;31",
            Verdict::None | Verdict::Unread => "",
        };
        self.painted(colour, text)
    }

    pub fn bold(self, text: &str) -> String {
        self.painted("1", text)
    }
}

/// Returns the screen of standard output. In the environment, `NO_COLOR` turns colours off, and COLUMNS sets the width.
pub fn here() -> Screen {
    let is_terminal = io::stdout().is_terminal();
    let columns = env::var("COLUMNS").ok().filter(|text| text.bytes().all(|letter| letter.is_ascii_digit()));
    let columns: Option<usize> = columns.filter(|text| !text.is_empty()).map(|text| text.parse().unwrap_or(0));
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_plain = is_set("NO_COLOR") || env::var("TERM").map_or(true, |term| term == "dumb");
    let width =
        if is_terminal || columns.is_some() { columns.filter(|width| *width > 0).unwrap_or_else(measured) } else { 0 };
    Screen { width, is_coloured: is_terminal && !is_plain }
}

fn measured() -> usize {
    let size = tcgetwinsize(io::stdout()).map_or(0, |size| usize::from(size.ws_col));
    if size == 0 { USUAL_WIDTH } else { size }
}
