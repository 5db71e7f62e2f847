// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the words of a command. Each error begins with the command's name.
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, Parser};

/// The width of the help on a wide terminal, and where the output is no terminal.
const WIDTH: usize = 100;
/// The exit code after wrong options.
const WRONG: u8 = 2;

/// Returns the options, or an error, which may also be the help that the user asked for.
pub fn read<T: Parser>(name: &str, words: &[OsString]) -> Result<T, clap::Error> {
    let program = [OsString::from(name)];
    let command = T::command().max_term_width(WIDTH);
    T::from_arg_matches(&command.try_get_matches_from(program.iter().chain(words))?)
}

/// Returns the options, or the exit code after the help or an error was printed.
pub fn parsed<T: Parser>(name: &str, words: &[OsString]) -> Result<T, ExitCode> {
    read(name, words).map_err(|error| say(name, &error))
}

/// Says that options are wrong in a way that only the command knows.
pub fn wrong(name: &str, mut command: Command, text: &str) -> ExitCode {
    say(name, &command.error(ErrorKind::ValueValidation, text))
}

/// Returns what is wrong, without the hints below it.
pub fn first_line(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Prints the help or an error, and returns the exit code.
pub fn say(name: &str, error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    // If these cannot be written, the exit code still says it.
    if error.use_stderr() {
        let _ = write!(io::stderr(), "{name}: {text}");
        return ExitCode::from(WRONG);
    }
    let _ = write!(io::stdout(), "{text}");
    ExitCode::SUCCESS
}
