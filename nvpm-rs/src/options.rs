// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Reads the words of a command. Each error begins with the command's name.
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Command, Parser};

/// The exit code after wrong options.
const WRONG: u8 = 2;

/// Returns the options, or the exit code after the help or an error was printed.
pub fn parsed<T: Parser>(name: &str, words: &[OsString]) -> Result<T, ExitCode> {
    let program = [OsString::from(name)];
    T::try_parse_from(program.iter().chain(words)).map_err(|error| said(name, &error))
}

/// Says that options are wrong in a way that only the command knows.
pub fn wrong(name: &str, mut command: Command, text: &str) -> ExitCode {
    said(name, &command.error(ErrorKind::ValueValidation, text))
}

fn said(name: &str, error: &clap::Error) -> ExitCode {
    let text = error.render().to_string();
    // If these cannot be written, the exit code still says it.
    if error.use_stderr() {
        let _ = write!(io::stderr(), "{name}: {text}");
        return ExitCode::from(WRONG);
    }
    let _ = write!(io::stdout(), "{text}");
    ExitCode::SUCCESS
}
