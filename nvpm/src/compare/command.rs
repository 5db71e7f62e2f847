// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm compare`.
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::compare::fleet::{Expected, Fleet};
use crate::compare::inputs::{from_paths, from_reader};
use crate::compare::names::{MOST, unfolded};
use crate::compare::{json, page, screen};
use crate::show::page::NewFile;
use crate::text::clean;

const NAME: &str = "nvpm compare";
/// There is nothing to compare, or the page cannot be written.
const NOTHING: u8 = 2;

/// Compares what nvpm status --json, nvpm selftest --json or nvpm used --json printed on many nodes, and says which
/// nodes differ from the others, and in which fact. Reads files, directories with a file for each node, or standard
/// input with the node before each line (clush, pdsh, srun --label), or with a heading before each node (clush -b,
/// Ansible).
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Exit codes: 0 all nodes are alike, or like the others of their kind, 1 some differ, gave no status or \
                  are missing, 2 there is nothing to compare, or the page cannot be written."
)]
pub struct Options {
    /// Files or directories; without one: standard input
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// All groups, also beyond one screen
    #[arg(long)]
    all: bool,
    /// The nodes that should be there, such as node[1-5],gpu7, or their number; those that are missing are named
    #[arg(long, value_name = "NODES", value_parser = expected)]
    expect: Option<Expected>,
    /// Also writes a page for a browser, FILE, which must be new
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// One object for machines
    #[arg(long)]
    json: bool,
    /// Accepted as by each command of nvpm
    #[arg(long, hide = true)]
    debug: bool,
}

fn expected(text: &str) -> Result<Expected, String> {
    if !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit()) {
        let number = text.parse().ok().filter(|number| (1..=MOST).contains(number));
        let number = number.ok_or_else(|| format!("{text} is not a number from 1 to {MOST}"))?;
        return Ok(Expected { names: Vec::new(), number });
    }
    let names = unfolded(text)?;
    if names.is_empty() {
        return Err("no nodes are named".to_owned());
    }
    Ok(Expected { number: names.len(), names })
}

/// Says something on the standard error, whose loss does not matter.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "nvpm compare: {}", clean(text));
}

pub fn run(words: &[std::ffi::OsString]) -> ExitCode {
    let options: Options = match crate::options::parsed(NAME, words) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let wrong = |text: &str| crate::options::wrong(NAME, Options::command(), text);
    if let Some(missing) = options.paths.iter().find(|path| !path.exists()) {
        return wrong(&format!("there is no {}", missing.display()));
    }
    if options.paths.is_empty() && io::stdin().is_terminal() {
        return wrong("name files or directories, or pipe the output of many nodes into it");
    }
    match compared(options) {
        Ok(code) => code,
        Err(words) => {
            tell(&words);
            ExitCode::from(NOTHING)
        }
    }
}

fn compared(options: Options) -> Result<ExitCode, String> {
    let cannot_write = |path: &PathBuf, error: &io::Error| format!("{} cannot be written: {error}", path.display());
    let file = match &options.html {
        Some(path) => Some((path, NewFile::new(path, NAME).map_err(|error| cannot_write(path, &error))?)),
        None => None,
    };
    let mut fleet = Fleet::default();
    let mut add = |node| fleet.add(node);
    if options.paths.is_empty() {
        from_reader(io::stdin().lock(), "", &mut add).map_err(|error| format!("standard input: {error}"))?;
    } else {
        from_paths(&options.paths, &mut add).map_err(|lost| format!("{}: {}", lost.path.display(), lost.error))?;
    }
    fleet.compare(options.expect);
    if fleet.is_cut {
        tell(&format!("only the first {MOST} nodes are compared"));
    }
    if fleet.seen.is_empty() {
        let said = fleet.silent.first().map_or(String::new(), |node| format!(" The first node said: {}", node.words));
        return Err(format!(
            "there is nothing to compare: it reads the output of nvpm status, selftest or used with --json.{said}"
        ));
    }
    if let Some((path, file)) = file {
        file.keep(page::of_fleet(&fleet)).map_err(|error| cannot_write(path, &error))?;
    }
    let mut out = io::stdout().lock();
    let written = if options.json {
        writeln!(out, "{:#}", json::object(&fleet))
    } else {
        screen::lines(&fleet, options.all).iter().try_for_each(|line| writeln!(out, "{}", clean(line)))
    };
    match written.and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("the result cannot be written: {error}"))
        }
        _ => {
            let is_odd = !fleet.odd().is_empty() || !fleet.silent.is_empty() || fleet.missing_count > 0;
            Ok(ExitCode::from(u8::from(is_odd)))
        }
    }
}
