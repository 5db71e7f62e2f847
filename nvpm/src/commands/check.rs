// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm check`, a plug-in of Nagios. A monitor reads only the standard output, so that is where wrong
//! options are reported.
use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;

use crate::facts::all::status_of;
use crate::options;
use crate::read::machine::Machine;
use crate::show::out::say;
use crate::show::plugin::{self, Code};

const NAME: &str = "nvpm check";
/// The exit code if the answer cannot be written.
pub const LOST: u8 = Code::Unknown as u8;

/// Says in one line whether GPUDirect RDMA works here, for Nagios and its kin.
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Exit codes: 0 OK, 1 WARNING (works but could do better), 2 CRITICAL (something does not work), 3 \
                  UNKNOWN."
)]
pub struct Options {
    /// What is not to be judged, with commas between; nvpm status --json has the IDs, and a star at the end stands for
    /// whatever follows: use/failed_*
    #[arg(short, long, value_name = "ID")]
    ignore: Vec<String>,
    /// Name on stderr the source of each fact
    #[arg(long)]
    debug: bool,
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match options::read(NAME, words) {
        Ok(options) => options,
        Err(error) => {
            if error.use_stderr() {
                let text = options::first_line(&error);
                say([plugin::line(Code::Unknown, &format!("wrong options: {text}"), "")], LOST, LOST);
            }
            options::say(NAME, &error);
            return ExitCode::from(LOST);
        }
    };
    let ignored: Vec<&str> = options.ignore.iter().flat_map(|some| some.split(',')).collect();
    let machine = Machine::here(options.debug);
    let (line, code) = plugin::answer(&machine, &status_of(&machine), &ignored);
    say([line], code as u8, LOST)
}
