// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the lab's guests have measured, reported: progress while they do, then tables,
//! bounds, a JSON file and plots, or the measured part of docs/performance.md.

mod axis;
mod bounds;
mod compare;
mod document;
mod figures;
mod metrics;
mod numbers;
mod plan;
mod plots;
mod reasons;
mod run;
mod tables;
mod watch;

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use crate::figures::Machine;
use crate::run::Run;

const USAGE: &str = "Usage:
  bench-report watch GUEST SIZES FILE    how far GUEST has come, whose words are in FILE
  bench-report report DIR GUESTS SIZES NAME=VALUE...
                                         of DIR/figures: prints the report; writes
                                         DIR/results.json and plots
  bench-report docs DIR DOCUMENT PLOTS   of DIR/results.json: the measured part of
                                         DOCUMENT, and its plots into PLOTS beside it
GUESTS and SIZES (bytes) have commas between them.";

type Done = Result<(), Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["watch", guest, sizes, said] => watch(guest, sizes, said),
        ["report", dir, guests, sizes, facts @ ..] => report(Path::new(dir), guests, sizes, facts),
        ["docs", dir, document, plots] => docs(Path::new(dir), Path::new(document), plots),
        _ => Err(USAGE.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            eprintln!("bench-report: {err}");
            ExitCode::FAILURE
        }
    }
}

fn parse_sizes(text: &str) -> Result<Vec<u64>, Box<dyn Error>> {
    text.split(',')
        .map(|size| {
            size.parse()
                .map_err(|_| format!("'{size}' is not a size in bytes").into())
        })
        .collect()
}

fn watch(guest: &str, sizes: &str, said: &str) -> Done {
    let expected = plan::of(guest, &parse_sizes(sizes)?).ok_or("there is no such guest")?;
    Ok(watch::watch(guest, expected.len(), Path::new(said))?)
}

fn report(dir: &Path, guests: &str, sizes: &str, facts: &[&str]) -> Done {
    let facts: BTreeMap<String, String> = facts
        .iter()
        .filter_map(|fact| fact.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let (run, faults) = Run::new(facts, &fs::read_to_string(dir.join("figures"))?);
    print(&run);
    let results = dir.join("results.json");
    if let Ok(before) = load(&results) {
        println!("\n{}", compare::text(&run, &before));
    }
    fs::write(&results, serde_json::to_string_pretty(&run)? + "\n")?;
    plots::draw(&run, dir)?;
    let guests: Vec<&str> = guests.split(',').collect();
    let missing = plan::missing(&run, &guests, &parse_sizes(sizes)?);
    for subject in missing.iter().take(5) {
        println!("not measured: {subject} ({:?})", subject.kind);
    }
    if missing.is_empty() && faults.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{} figures are missing, {} lines are no figures. {}",
        missing.len(),
        faults.len(),
        faults.first().map_or("", String::as_str)
    )
    .into())
}

fn print(run: &Run) {
    println!("\n{}", document::machine(run));
    println!("A tick of the guest's clock is an instruction; costs are instructions, or microseconds of 1000 of them.");
    for table in tables::all(run) {
        println!("\n{}\n{}", table.title, table.for_terminal());
    }
    for machine in Machine::BOTH {
        let verdicts = bounds::judge(run, machine);
        let table = tables::bounds(machine, &verdicts);
        println!("\n{}\n{}", table.title, table.for_terminal());
        for remark in document::remarks(&verdicts) {
            println!("{remark}");
        }
    }
}

fn docs(dir: &Path, document: &Path, plots: &str) -> Done {
    let run = load(&dir.join("results.json"))?;
    let missing = plan::missing(&run, &plan::GUESTS, &plan::SIZES);
    if !missing.is_empty() {
        return Err(format!(
            "the last run was not complete: {} figures are missing",
            missing.len()
        )
        .into());
    }
    let measured = document::measured(&run, plots);
    fs::write(
        document,
        document::replace(&fs::read_to_string(document)?, &measured)?,
    )?;
    let beside = document.parent().unwrap_or(Path::new(".")).join(plots);
    fs::create_dir_all(&beside)?;
    plots::draw(&run, &beside)
}

fn load(path: &Path) -> Result<Run, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|err| format!("{}: {err}", path.display()))?)
}
