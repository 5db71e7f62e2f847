// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Checks the files in data. A mistake in a file ends the build, and is named with its file and line.
#![allow(dead_code)]
mod blocks;
mod causes;
mod check;
mod facts;
mod needed;
#[path = "../src/explain/placeholder.rs"]
mod placeholder;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=data");
    let mut mistakes = check::Mistakes::default();
    let facts = facts::of_file(&blocks::read("data/facts.table", &mut mistakes)?, &mut mistakes);
    causes::of_file(&blocks::read("data/causes.table", &mut mistakes)?, &facts, &mut mistakes);
    mistakes.print();
    Ok(())
}
