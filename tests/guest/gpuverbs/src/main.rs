// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Verbs on memory of the simulated GPU: what the lab's scenarios run in the
//! guest. Results are `key=value` lines on standard output, explanations go to
//! standard error.
//!
//! Exit status: 0 as expected, 1 not as expected, 2 usage, 3 the machine lacks
//! an RDMA device or the GPU.

mod args;
mod buffer;
mod clocks;
mod consumer;
mod emit;
mod endpoint;
mod errno;
mod expect;
mod failure;
mod fault_injection;
#[allow(unsafe_code)]
mod gpu;
mod inherit;
#[allow(unsafe_code)]
mod layout;
mod leave;
mod machine;
mod measure;
mod output;
mod pattern;
mod probe;
#[allow(unsafe_code)]
mod process;
mod random;
mod register;
mod revoke;
mod shortage;
mod stress;
mod sys;
mod transfer;
mod trespass;
#[allow(unsafe_code)]
mod verbs;

use std::env;
use std::process::ExitCode;

use args::Command;
use failure::Failure;

const COMMANDS: &[Command] = &[
    register::COMMAND,
    transfer::COMMAND,
    endpoint::COMMAND,
    revoke::COMMAND,
    probe::COMMAND,
    trespass::COMMAND,
    inherit::COMMAND,
    leave::COMMAND,
    fault_injection::COMMAND,
    stress::COMMAND,
    measure::COMMAND,
    emit::COMMAND,
];

fn main() -> ExitCode {
    let words: Vec<String> = env::args_os()
        .skip(1)
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let (name, rest) = match words.split_first() {
        Some((name, rest)) => (name.as_str(), rest),
        None => ("", &[][..]),
    };
    if matches!(name, "help" | "--help" | "-h") {
        output::line(overview());
        return ExitCode::SUCCESS;
    }
    let Some(command) = COMMANDS.iter().find(|command| command.name == name) else {
        eprintln!("gpuverbs: '{name}' is not a command\n\n{}", overview());
        return ExitCode::from(2);
    };
    if rest.iter().any(|word| word == "--help" || word == "-h") {
        output::line(command.usage());
        return ExitCode::SUCCESS;
    }
    match command.parse(rest).and_then(|args| (command.run)(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("gpuverbs: {failure}");
            if let Failure::Usage(_) = failure {
                eprintln!("\n{}", command.usage());
            }
            ExitCode::from(failure.exit_status())
        }
    }
}

fn overview() -> String {
    let mut text = "Usage: gpuverbs COMMAND [OPTION]...\n\n".to_owned();
    for command in COMMANDS {
        text.push_str(&format!("  {:10}{}\n", command.name, command.summary));
    }
    text.push_str("\nEvery command explains itself with --help. Exit status: 0 as expected,\n");
    text.push_str("1 not as expected, 2 usage, 3 no RDMA device or no GPU.");
    text
}
