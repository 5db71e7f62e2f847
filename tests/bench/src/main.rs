// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the lab's guests have measured, reported: progress while they do, then tables,
//! bounds, a JSON file and plots, or docs/performance/results.md.

mod axis;
mod bounds;
mod compare;
mod document;
mod measurements;
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

use crate::measurements::Subject;
use crate::run::Run;

const USAGE: &str = "Usage:
  bench-report watch GUEST SIZES FILE    how far GUEST has come, whose words are in FILE
  bench-report report DIR GUESTS SIZES NAME=VALUE...
                                         of DIR/metrics: prints the report; writes
                                         DIR/results.json and plots
  bench-report docs DIR TARGET           of DIR/results.json: TARGET/results.md, and
                                         its plots beside it
GUESTS and SIZES (bytes) have commas between them.
Exit status of report: 0 if all bounds that were measured are met, 2 if some are missed
for reasons that are known, 1 if anything else is wrong.";

/// Bounds are missed, all for known reasons.
const MISSED: u8 = 2;

type Done<T = ()> = Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["watch", guest, sizes, said] => watch(guest, sizes, said),
        ["report", dir, guests, sizes, facts @ ..] => {
            match report(Path::new(dir), guests, sizes, facts) {
                Ok(missed) if missed > 0 => {
                    eprintln!("bench-report: {missed} bounds are missed, for known reasons");
                    return ExitCode::from(MISSED);
                }
                done => done.map(drop),
            }
        }
        ["docs", dir, target] => docs(Path::new(dir), Path::new(target)),
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

/// How many bounds are missed; all of them for known reasons, and nothing else is wrong.
fn report(dir: &Path, guests: &str, sizes: &str, facts: &[&str]) -> Done<usize> {
    let facts: BTreeMap<String, String> = facts
        .iter()
        .filter_map(|fact| fact.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let (run, faults) = Run::new(facts, &fs::read_to_string(dir.join("metrics"))?);
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
    if let Some(fault) = faults.first() {
        return Err(format!("{} lines are no measurements. {fault}", faults.len()).into());
    }
    complete(&missing)?;
    explained_misses(&run)
}

fn complete(missing: &[Subject]) -> Done {
    match missing.len() {
        0 => Ok(()),
        n => Err(format!("{n} measurements are missing").into()),
    }
}

/// How many bounds are missed; an error if one is without a known reason.
fn explained_misses(run: &Run) -> Done<usize> {
    let mut missed = 0;
    let chapters = bounds::chapters(run);
    let verdicts = chapters.iter().flat_map(|chapter| &chapter.verdicts);
    for verdict in verdicts.flatten() {
        missed += usize::from(verdict.met == Some(false));
        verdict.reason().transpose()?;
    }
    Ok(missed)
}

fn print(run: &Run) {
    println!("\n{}", document::machine(run));
    println!("A tick of the guest's clock is an instruction; costs are instructions, or microseconds of 1000 of them.");
    for table in tables::all(run) {
        println!("\n{}\n{}", table.title, table.for_terminal());
    }
    for chapter in bounds::chapters(run) {
        let table = tables::bounds(&chapter);
        println!("\n{}\n{}", table.title, table.for_terminal());
        for remark in document::remarks(&chapter.verdicts) {
            println!("{remark}");
        }
    }
}

fn docs(dir: &Path, target: &Path) -> Done {
    let run = load(&dir.join("results.json"))?;
    complete(&plan::missing(&run, &plan::GUESTS, &plan::SIZES))?;
    explained_misses(&run)?;
    fs::create_dir_all(target)?;
    fs::write(target.join("results.md"), document::results(&run))?;
    plots::draw(&run, target)
}

fn load(path: &Path) -> Result<Run, Box<dyn Error>> {
    let text = fs::read_to_string(path).map_err(|err| format!("{}: {err}", path.display()))?;
    Ok(serde_json::from_str(&text).map_err(|err| format!("{}: {err}", path.display()))?)
}
