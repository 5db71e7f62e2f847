// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Runs nvpm on machines that are made of files, which the tables of nvpm/tests/machines describe. Prints a line `ok` for each
//! command that was run. `cargo test --test tables -- [TABLE] [WORDS OF A TITLE]` runs some of them, and `-- --make
//! DIRECTORY [LINE]...` makes a machine. `NVPM_BIN` names another program, and with `NVPM_FIRST` the first failure ends
//! the run.
#![allow(
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used
)]
mod json;
mod machine;
mod places;
mod player;
mod rdma;
mod status;
mod table;
mod useful;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, fs, panic, thread};

use player::{Places, Player};
use table::Case;

const TABLES: [&str; 7] = ["status", "varied", "judged", "programs_by_pair", "commands", "used", "selftest"];

/// The cases, each with its table, and the number of the next.
struct Work {
    cases: Vec<(&'static str, Case)>,
    next: AtomicUsize,
    failed: Mutex<Vec<String>>,
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if env::args().any(|word| word == "--make") {
        return make(&words);
    }
    let chosen = words.first().filter(|word| TABLES.contains(&word.as_str()));
    let title = words.iter().filter(|word| Some(*word) != chosen).cloned().collect::<Vec<_>>().join(" ");
    let scratch = places::Scratch::new();
    let places = places::make(scratch.path());
    let mut cases = Vec::new();
    for table in TABLES.into_iter().filter(|table| chosen.is_none_or(|chosen| chosen == table)) {
        let found = table::cases(&places.tables.join(format!("{table}.machines"))).into_iter();
        cases.extend(found.filter(|case| case.title.contains(&title)).map(|case| (table, case)));
    }
    let work = Work { cases, next: AtomicUsize::new(0), failed: Mutex::new(Vec::new()) };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| work_on(&work, &places, scratch.path()));
        }
    });
    let failed = work.failed.into_inner().unwrap();
    println!("{} cases, {} failed", work.cases.len(), failed.len());
    for text in &failed {
        println!("{text}");
    }
    // A name that no title has is a mistake of the person who typed it.
    ExitCode::from(u8::from(!failed.is_empty() || work.cases.is_empty()))
}

/// Makes a machine in a directory, by the lines of a table, so that a person can look at it.
fn make(words: &[String]) -> ExitCode {
    let [directory, lines @ ..] = words else { panic!("--make DIRECTORY [LINE]...") };
    let machine = machine::Machine::new(Path::new(directory));
    for line in lines {
        machine.change(line);
    }
    ExitCode::SUCCESS
}

fn work_on(work: &Work, places: &Places, scratch: &Path) {
    loop {
        if env::var_os("NVPM_FIRST").is_some() && !work.failed.lock().unwrap().is_empty() {
            return;
        }
        let number = work.next.fetch_add(1, Ordering::Relaxed);
        let Some((table, case)) = work.cases.get(number) else { return };
        let directory = scratch.join(number.to_string());
        let (looks, wrong) = play(table, case, places, &directory);
        if wrong.is_empty() {
            for _ in 0..looks {
                println!("ok {table}: {}", case.title);
            }
            fs::remove_dir_all(&directory).unwrap();
        } else {
            work.failed.lock().unwrap().push(format!("not ok {table}: {}\n{}", case.title, wrong.join("\n")));
        }
    }
}

/// Returns the number of commands, and the failures. A line that is no line of the language is a failure, too.
fn play(table: &str, case: &Case, places: &Places, directory: &PathBuf) -> (usize, Vec<String>) {
    let played = panic::catch_unwind(|| {
        fs::create_dir(directory).unwrap();
        Player::new(directory, places, table == "selftest").play(&case.lines)
    });
    match played {
        Ok((0, wrong)) if wrong.is_empty() => (0, vec!["no command was run".to_owned()]),
        Ok(found) => found,
        Err(_) => (0, vec!["the case cannot be played; the lines above say why".to_owned()]),
    }
}
