// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! nvpm says what GPUDirect RDMA needs and has on a node, explains logs, compares nodes, and tests transfers.
#![forbid(unsafe_code)]
mod commands;
mod compare;
mod explain;
mod facts;
#[cfg(test)]
mod made;
mod options;
mod preload;
mod read;
mod redact;
mod report;
mod selftest;
mod show;
mod text;
mod used;

use std::ffi::OsString;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    // nvpm starts itself with these words, so that a file or a driver that does not answer stops only that process.
    match words.first().and_then(|word| word.to_str()) {
        Some(read::reading_child::WORD) => read::reading_child::run(),
        Some(read::ask::WORD) => read::ask::run(),
        _ => commands::run(&words),
    }
}
