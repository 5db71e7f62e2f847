// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm regions`.
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;

use crate::commands::LOST;
use crate::read::machine::Machine;
use crate::read::regions::{TO_LIST, regions};
use crate::show::out::say;
use crate::show::registrations;

const NAME: &str = "nvpm regions";

/// Lists the processes and the GPU memory that they have registered.
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Exit codes: 0 the list was read, 1 it cannot be, 2 wrong options, 3 the module is not loaded."
)]
pub struct Options {
    /// One object for machines
    #[arg(long, conflicts_with = "summary")]
    json: bool,
    /// A line for each process
    #[arg(long)]
    summary: bool,
    /// Name on stderr the source of each fact
    #[arg(long)]
    debug: bool,
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let machine = Machine::here(options.debug);
    match regions(&machine, TO_LIST) {
        Ok(found) if options.json => say(registrations::json(&machine, &found), 0, LOST),
        Ok(found) if options.summary => say(registrations::summary(&machine, &found), 0, LOST),
        Ok(found) => say(registrations::list(&machine, &found), 0, LOST),
        Err(unreadable) => {
            // If this cannot be written, the exit code still says it.
            let _ = writeln!(io::stderr(), "nvpm regions: {}", unreadable.reason);
            ExitCode::from(unreadable.code)
        }
    }
}
