// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Checks the files in data, and embeds them into the program as constants. A mistake in a file ends the build, and is
//! named with its file and line.
// Cargo reads the standard output.
#![allow(clippy::print_stdout)]
mod blocks;
mod causes;
mod check;
#[path = "../src/explain/errno_names.rs"]
mod errno_names;
mod facts;
mod keys;
mod messages;
mod needed;
#[path = "../src/explain/placeholder.rs"]
mod placeholder;
mod programs;
mod write;

use std::error::Error;
use std::path::Path;

use check::Mistakes;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=data");
    println!("cargo::rerun-if-changed=build");
    let mut mistakes = Mistakes::default();
    let causes = blocks::read("data/causes.table", &mut mistakes)?;
    let facts = blocks::read("data/facts.table", &mut mistakes)?;
    let kinds = blocks::read("data/kinds.table", &mut mistakes)?;
    let lists = blocks::read("data/lists.table", &mut mistakes)?;
    let programs = blocks::read("data/programs.table", &mut mistakes)?;
    let mut sections = Vec::new();
    for directory in ["data/messages", "data/own", "data/general"] {
        for path in blocks::files(directory)? {
            sections.push((directory == "data/general", blocks::read(&path, &mut mistakes)?));
        }
    }
    let facts = facts::of_file(&facts, &mut mistakes);
    let kinds = facts::kinds_of_file(&kinds, &mut mistakes);
    let mut causes = causes::of_file(&causes, &facts, &mut mistakes);
    let tables = messages::of_files(&sections, &lists, &mut causes, &facts, &kinds, &mut mistakes);
    causes::resolve(&mut causes, &mut mistakes);
    let programs = programs::of_file(&programs, &mut mistakes);
    if mistakes.print() {
        return Ok(());
    }
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?;
    std::fs::write(Path::new(&out).join("tables.rs"), write::tables(&causes, &facts, &kinds, &tables))?;
    std::fs::write(Path::new(&out).join("programs.rs"), programs)?;
    Ok(())
}
