// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm status`, and the first screen, which `nvpm` prints without a command.
use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::commands;
use crate::facts::all::status_of;
use crate::read::machine::Machine;
use crate::show::out::say;
use crate::show::{metrics, status_json, status_text, terminal};

const NAME: &str = "nvpm status";
/// The exit code if the answer cannot be written: as if nobody knew the state of the module.
pub const LOST: u8 = 4;

/// Says whether and how GPU memory can be registered on this node, and what to do where something is in the way.
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Exit codes: 0 the module is loaded, or GPU memory can be registered without it and nobody has \
                  installed it; 3 otherwise, 4 nobody knows. With --prometheus always 0, so that a failed collector \
                  differs from an unloaded module."
)]
pub struct Options {
    /// What is said of this GPU (its number in nvidia-smi, or its PCI address) or this RDMA device, and no more
    #[arg(value_name = "DEVICE")]
    devices: Vec<String>,
    #[command(flatten)]
    form: Form,
    /// Name on stderr the source of each fact
    #[arg(long)]
    debug: bool,
}

#[derive(clap::Args)]
#[group(multiple = false)]
#[allow(clippy::struct_excessive_bools)]
struct Form {
    /// The answer alone, 12 lines at most
    #[arg(long)]
    brief: bool,
    /// Everything that was looked at
    #[arg(long)]
    all: bool,
    /// One object for machines
    #[arg(long)]
    json: bool,
    /// Metrics for the node exporter's textfile collector
    #[arg(long)]
    prometheus: bool,
}

impl Form {
    fn name(&self) -> Option<&'static str> {
        let names = [(self.brief, "brief"), (self.all, "all"), (self.json, "json"), (self.prometheus, "prometheus")];
        names.into_iter().find(|(is_chosen, _)| *is_chosen).map(|(_, name)| name)
    }
}

pub fn run(words: &[OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let wrong = |text: &str| crate::options::wrong(NAME, Options::command(), text);
    if let Some(form) = options.form.name().filter(|_| !options.devices.is_empty()) {
        return wrong(&format!("--{form} is about the whole machine: name no DEVICE with it"));
    }
    let machine = Machine::here(options.debug);
    let (status, screen) = (status_of(&machine), terminal::here());
    let (lines, code) = match options.form.name() {
        Some("prometheus") => (metrics::lines(&machine, &status), 0),
        Some("json") => (status_json::lines(&machine, &status), status.code),
        Some("brief") => (status_text::brief(&machine, &status, screen), status.code),
        Some(_) => (status_text::everything(&machine, &status, screen), status.code),
        None if options.devices.is_empty() => (status_text::attention(&machine, &status, screen), status.code),
        None => match status_text::of_devices(&machine, &status, screen, &options.devices) {
            Ok(lines) => (lines, status.code),
            Err(text) => return wrong(&text),
        },
    };
    say(lines, code, LOST)
}

/// Prints the brief status and the next commands, for a user who runs nvpm without a command.
pub fn first_screen() -> ExitCode {
    let machine = Machine::here(false);
    let mut lines = status_text::brief(&machine, &status_of(&machine), terminal::here());
    lines.extend(["", "nvpm status says what needs attention; nvpm help lists the commands."].map(str::to_owned));
    say(lines, 0, commands::LOST)
}
