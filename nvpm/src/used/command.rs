// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm used`.
use std::ffi::OsString;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use clap::Parser;

use crate::read::machine::Machine;
use crate::show::out::{say, written};
use crate::show::terminal;
use crate::text::wrapped_whole;
use crate::used::look::look;
use crate::used::usage::Usage;
use crate::used::verdict::answer;
use crate::used::{json, screen};

const NAME: &str = "nvpm used";
/// The exit code if the answer cannot be written: as if nobody could tell.
pub const LOST: u8 = Usage::Unknown.exit_code();

/// Says whether GPUDirect RDMA is used now: which process has GPU memory registered with which RDMA device, by which
/// way, and how much data the device moves.
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Exit codes: 0 GPU memory is registered (the first line says whether data moves), 1 the processes \
                  with GPUs have host memory registered only, 2 wrong options, 3 no process with GPUs uses RDMA, 4 \
                  nobody can tell. Root sees more."
)]
pub struct Options {
    /// Every registration, and the proof for each
    #[arg(long, conflicts_with = "json")]
    all: bool,
    /// One object for machines
    #[arg(long)]
    json: bool,
    /// Again every N seconds
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=86400))]
    watch: Option<u32>,
    /// Name on stderr the source of each fact
    #[arg(long)]
    debug: bool,
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let Some(seconds) = options.watch else {
        let (lines, code) = lines(&options);
        return say(lines, code, LOST);
    };
    loop {
        let (mut lines, code) = lines(&options);
        if !options.json {
            lines.push(String::new());
        }
        // The reader of the output has stopped, as in `nvpm used --watch 5 | head`, or the disk is full.
        if written(&lines).is_err() {
            return say(lines, code, LOST);
        }
        sleep(Duration::from_secs(seconds.into()));
    }
}

/// Returns the answer, and the exit code. Each look reads all files again.
fn lines(options: &Options) -> (Vec<String>, u8) {
    let machine = Machine::here(options.debug);
    let look = look(&machine, true);
    let found = answer(&look);
    let code = found.usage.exit_code();
    if options.json {
        return (json::lines(&machine, &look, &found), code);
    }
    let lines =
        if options.all { screen::everything(&machine, &look, &found) } else { screen::lines(&machine, &look, &found) };
    let width = terminal::here().width;
    (lines.into_iter().flat_map(|line| of_width(line, width)).collect(), code)
}

/// Divides a sentence at the width of the terminal. Rows of the table stay whole.
fn of_width(line: String, width: usize) -> Vec<String> {
    let is_row = line.is_empty() || line.starts_with(' ');
    if width == 0 || is_row { vec![line] } else { wrapped_whole(&line, width, "", "  ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_have_the_width_of_the_terminal() {
        let divided = |line: &str, width| of_width(line.to_owned(), width);
        assert_eq!(divided("one two three", 9), ["one two", "  three"]);
        assert_eq!(divided("one two three", 0), ["one two three"]);
        assert_eq!(divided("  1  python3  mlx5_0", 9), ["  1  python3  mlx5_0"]);
        assert_eq!(divided("", 9), [""]);
    }
}
