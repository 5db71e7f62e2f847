// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The program nvpm-bin: `nvpm explain` and `nvpm compare`. Every other command starts the Python program beside this one.
#![forbid(unsafe_code)]
mod compare;
mod explain;
mod options;
mod python;
mod read;
mod show;
mod text;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    // Only the word explain is looked at here, because --help and --version without a command are Python's.
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.split_first() {
        Some((command, options)) if command == "compare" => compare::command::run(options),
        Some((command, options)) if command == "explain" => explain::command::run(options),
        _ => python::run(&words),
    }
}
