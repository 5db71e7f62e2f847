// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The commands.
pub mod check;
pub mod for_packages;
pub mod help;
pub mod regions;
pub mod status;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use nvpm_foreign::standard_files::is_output_closed;

use crate::show::out;
use crate::{compare, explain};

/// The exit code of most commands if their output cannot be written.
pub const LOST: u8 = 1;
/// The exit code after a command that does not exist.
const NO_COMMAND: u8 = 2;
/// Words with more differences are not taken for a mistyped command.
const ALIKE: f64 = 0.75;

type Command = fn(&[OsString]) -> ExitCode;

const COMMANDS: [(&str, Command); 17] = [
    ("status", status::run),
    ("regions", regions::run),
    ("check", check::run),
    ("selftest", crate::selftest::command::run),
    ("compare", compare::command::run),
    ("explain", explain::command::run),
    ("run", crate::preload::command::run),
    ("report", crate::report::command::run),
    ("help", help::usage),
    ("-h", help::usage),
    ("--help", help::usage),
    ("--version", help::version),
    ("-V", help::version),
    ("version", help::version),
    ("advise", for_packages::advise),
    ("holders", for_packages::holders),
    ("leave", for_packages::leave),
];

fn find(name: &str) -> Option<Command> {
    COMMANDS.iter().find(|(known, _)| *known == name).map(|(_, command)| *command)
}

pub fn run(words: &[OsString]) -> ExitCode {
    let Some((name, options)) = words.split_first() else { return status::first_screen() };
    if is_output_closed() {
        let lost = if name == "check" {
            check::LOST
        } else if name == "status" {
            status::LOST
        } else {
            LOST
        };
        return out::lost("standard output is closed", lost);
    }
    let name = name.to_string_lossy();
    let about = options.first().map(|word| word.to_string_lossy()).filter(|_| name == "help");
    match (&about, find(about.as_deref().unwrap_or(&name))) {
        (None, Some(command)) => command(options),
        (Some(_), Some(command)) => {
            // For check, --help ends with the code for unknown, because a monitor got no answer; a user who asks for
            // help has got one.
            command(&["--help".into()]);
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
    let near = COMMANDS.iter().map(|(known, _)| (strsim::jaro(known, name), *known));
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
