// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The commands.
pub mod check;
pub mod completion;
pub mod for_packages;
pub mod help;
pub mod regions;
pub mod status;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use nvpm_foreign::standard_files::is_output_closed;

use crate::compare::command as compare;
use crate::explain::command as explain;
use crate::preload::command as preload;
use crate::report::command as report;
use crate::selftest::command as selftest;
use crate::show::out;
use crate::used::command as used;

/// The exit code of most commands if their output cannot be written.
pub const LOST: u8 = 1;
/// The exit code after a command that does not exist.
const NO_COMMAND: u8 = 2;
/// Words with more differences are not taken for a mistyped command.
const ALIKE: f64 = 0.75;

/// A command: its name, what runs it, and its options if clap reads them.
struct Command(&'static str, fn(&[OsString]) -> ExitCode, Option<fn() -> clap::Command>);

const COMMANDS: [Command; 19] = [
    Command("status", status::run, Some(status::Options::command)),
    Command("used", used::run, Some(used::Options::command)),
    Command("regions", regions::run, Some(regions::Options::command)),
    Command("check", check::run, Some(check::Options::command)),
    Command("selftest", selftest::run, Some(selftest::Options::command)),
    Command("compare", compare::run, Some(compare::Options::command)),
    Command("explain", explain::run, Some(explain::Options::command)),
    Command("run", preload::run, Some(preload::Options::command)),
    Command("report", report::run, Some(report::Options::command)),
    Command("completion", completion::run, Some(completion::Options::command)),
    Command("help", help::usage, None),
    Command("-h", help::usage, None),
    Command("--help", help::usage, None),
    Command("--version", help::version, None),
    Command("-V", help::version, None),
    Command("version", help::version, None),
    Command("advise", for_packages::advise, None),
    Command("holders", for_packages::holders, None),
    Command("leave", for_packages::leave, None),
];

fn find(name: &str) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.0 == name)
}

pub fn run(words: &[OsString]) -> ExitCode {
    let Some((name, options)) = words.split_first() else { return status::first_screen() };
    if is_output_closed() {
        let lost = if name == "check" {
            check::LOST
        } else if name == "status" {
            status::LOST
        } else if name == "used" {
            used::LOST
        } else {
            LOST
        };
        return out::lost("standard output is closed", lost);
    }
    let name = name.to_string_lossy();
    let about = options.first().map(|word| word.to_string_lossy()).filter(|_| name == "help");
    match (&about, find(about.as_deref().unwrap_or(&name))) {
        (None, Some(command)) => (command.1)(options),
        (Some(_), Some(command)) => {
            // For check, --help ends with the code for unknown, because a monitor got no answer; a user who asks for
            // help has got one.
            (command.1)(&["--help".into()]);
            ExitCode::SUCCESS
        }
        (_, None) => {
            let name = about.as_deref().unwrap_or(&name);
            // If this cannot be written, the exit code still says it.
            let _ = writeln!(io::stderr(), "nvpm: there is no command '{name}'. {}", hint(name));
            ExitCode::from(NO_COMMAND)
        }
    }
}

/// Returns a sentence with the command that the user probably meant. If no command is similar, the sentence says how to
/// list all commands.
fn hint(name: &str) -> String {
    let near = COMMANDS.iter().map(|command| (strsim::jaro(command.0, name), command.0));
    match near.max_by(|one, other| one.0.total_cmp(&other.0)) {
        Some((likeness, known)) if likeness > ALIKE => format!("Did you mean {known}?"),
        _ => "nvpm help lists them.".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_is_guessed() {
        assert_eq!(hint("staus"), "Did you mean status?");
        assert_eq!(hint("explian"), "Did you mean explain?");
        assert_eq!(hint("frobnicate"), "nvpm help lists them.");
    }
}
