// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm completion`, which prints what a shell needs to complete the words of nvpm.
use std::ffi::OsString;
use std::process::ExitCode;

use clap::ArgAction::SetTrue;
use clap::{Arg, Command as Words, Parser, ValueEnum};
use clap_complete::{Generator, Shell as Known, generate};

use crate::commands::help::summary;
use crate::commands::{COMMANDS, LOST};
use crate::show::out::say;

const NAME: &str = "nvpm completion";
/// This text also completes the names of devices, and the words of a program behind `nvpm run`, which clap's would not.
const BASH: &str = include_str!("../../data/completion.bash");
/// These lines have what clap's do not: the words of a program behind `nvpm run`, and those behind help and completion.
const FISH: &str = include_str!("../../data/completion.fish");

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

/// Prints what a shell needs to complete the words of nvpm. The packages have installed it. For the single file:
/// source <(nvpm completion bash), the same with zsh, or nvpm completion fish | source.
#[derive(Parser)]
#[command(name = NAME, after_help = "Exit codes: 0 it was printed, 1 it cannot be, 2 wrong options.")]
pub struct Options {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let text = match options.shell {
        Shell::Bash => BASH.to_owned(),
        Shell::Fish => generated(Known::Fish) + &FISH.replace("{commands}", &names(&all()).join(" ")),
        Shell::Zsh => generated(Known::Zsh),
    };
    say([text.trim_end()], 0, LOST)
}

fn generated(shell: impl Generator) -> String {
    let mut text = Vec::new();
    generate(shell, &mut all(), "nvpm", &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns nvpm with all commands that a user calls. clap adds `help`.
fn all() -> Words {
    let version = Arg::new("version").short('V').long("version").action(SetTrue).help("The version of nvpm");
    let options = COMMANDS.iter().filter_map(|command| Some((command.0, command.2?())));
    Words::new("nvpm")
        .arg(version)
        .subcommands(options.map(|(name, options)| options.name(name).about(summary(name))))
        .subcommand(Words::new("version").about(summary("--version")))
}

fn names(all: &Words) -> Vec<&str> {
    all.get_subcommands().map(Words::get_name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what the text for bash offers behind a command, and behind the options that all commands have.
    fn offered_by_bash(name: &str) -> Vec<&str> {
        let list = BASH.split(&format!("[{name}]='")).nth(1).and_then(|rest| rest.split('\'').next());
        list.into_iter().flat_map(str::split_whitespace).collect()
    }

    fn sorted<T: Ord>(mut words: Vec<T>) -> Vec<T> {
        words.sort();
        words
    }

    #[test]
    fn bash_offers_the_options_that_clap_knows() {
        for command in all().get_subcommands() {
            let name = command.get_name();
            if ["run", "completion", "version"].contains(&name) {
                continue;
            }
            let known = command.get_arguments().filter(|option| !option.is_hide_set());
            let known = known.filter_map(|option| Some(format!("--{}", option.get_long()?))).collect();
            assert_eq!(sorted(known), sorted(offered_by_bash(name)), "{name}");
        }
    }

    #[test]
    fn bash_offers_the_commands() {
        let offered = BASH.split("commands=(").nth(1).and_then(|rest| rest.split(')').next()).unwrap();
        let all = all();
        assert_eq!(sorted([names(&all), vec!["help"]].concat()), sorted(offered.split(' ').collect()));
    }
}
