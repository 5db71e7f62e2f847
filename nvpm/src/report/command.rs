// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The command `nvpm report`.
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;

use crate::commands::LOST;
use crate::read::machine::Machine;
use crate::read::reader::reason;
use crate::report::archive::Archive;
use crate::report::parts::{Text, collected};
use crate::show::out::say;

const NAME: &str = "nvpm report";
const NOT_WRITTEN: u8 = 1;
const SHOWN: &str = "nvpm report: nothing is written yet: nvpm report --write FILE.tar.gz writes this.";

/// Collects what a bug report needs: status, versions, configuration, the kernel's lines about these devices,
/// registrations, a selftest. Without --write it prints all of it, and nothing is kept.
#[derive(Parser)]
#[command(
    name = NAME,
    after_help = "Names of hosts, users and jobs, serial numbers, network addresses and UUIDs are taken out. Models, \
                  versions, PCI addresses, addresses within the kernel, and names of programs that belong to the system \
                  stay. Exit codes: 0 it was printed or written, 1 the file cannot be written, 2 wrong options."
)]
pub struct Options {
    /// A new archive, FILE (.tar.gz)
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Take nothing out
    #[arg(long)]
    as_it_is: bool,
    /// Do not run nvpm selftest
    #[arg(long)]
    no_selftest: bool,
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
    let collect = || collected(&machine, options.as_it_is, !options.no_selftest);
    let Some(path) = &options.write else {
        let code = say(collect().iter().map(shown), 0, LOST);
        if code == ExitCode::SUCCESS {
            tell(SHOWN);
        }
        return code;
    };
    match written(path, collect) {
        Ok(names) => {
            let line = format!("Written: {} ({names}). Read it before you send it.", path.display());
            say([line], 0, LOST)
        }
        Err(error) => {
            tell(&format!("nvpm report: {} cannot be written: {}", path.display(), reason(&error)));
            ExitCode::from(NOT_WRITTEN)
        }
    }
}

/// Writes the archive, and returns the names of its files.
fn written(path: &Path, collect: impl Fn() -> Vec<Text>) -> io::Result<String> {
    let archive = Archive::new(path, NAME)?;
    let texts = collect();
    archive.keep(&texts)?;
    Ok(texts.iter().map(|text| text.name).collect::<Vec<_>>().join(", "))
}

fn shown(text: &Text) -> String {
    format!("==== {} ====\n{}\n", text.name, text.said.trim_end())
}

/// Says something on the standard error, whose loss does not matter.
fn tell(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}
