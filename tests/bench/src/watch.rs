// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `watch`: how far a guest has come, while it measures.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::measurements;

/// How often what the guest says is looked at.
const POLL: Duration = Duration::from_millis(200);

/// How often a line is printed where there is no bar.
const PRINT: Duration = Duration::from_secs(15);

/// Follows the file of what a guest says until it says `end`.
pub fn watch(guest: &str, expected: usize, said: &Path) -> io::Result<()> {
    let mut progress = Progress::new(guest, expected)?;
    let mut said = BufReader::new(File::open(said)?);
    let mut line = String::new();
    loop {
        // What was read of a line that is not complete stays.
        if said.read_line(&mut line)? == 0 || !line.ends_with('\n') {
            progress.tick();
            thread::sleep(POLL);
            continue;
        }
        match line.trim_end().split_once(' ') {
            Some(("metrics", line)) => progress.measurement(line),
            Some(("end", _)) => break,
            _ => {}
        }
        line.clear();
    }
    progress.end();
    Ok(())
}

/// A bar on a terminal, plain lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    guest: String,
    expected: usize,
    measurements: usize,
    what: String,
    began: Instant,
    printed: Instant,
}

impl Progress {
    fn new(guest: &str, expected: usize) -> io::Result<Self> {
        let bar = io::stdout()
            .is_terminal()
            .then(|| bar(guest, expected))
            .transpose()?;
        Ok(Self {
            bar,
            guest: guest.to_owned(),
            expected,
            measurements: 0,
            what: String::new(),
            began: Instant::now(),
            printed: Instant::now(),
        })
    }

    fn measurement(&mut self, line: &str) {
        self.measurements += 1;
        if let Ok(measurement) = measurements::parse(line) {
            self.what = measurement.subject.to_string();
        }
        if let Some(bar) = &self.bar {
            bar.set_position(self.measurements as u64);
            bar.set_message(self.what.clone());
        }
    }

    fn tick(&mut self) {
        if self.bar.is_none() && self.printed.elapsed() >= PRINT {
            self.print();
        }
    }

    fn print(&mut self) {
        println!(
            "[{}] … {} of {} measurements, {} s{}{}",
            self.guest,
            self.measurements,
            self.expected,
            self.began.elapsed().as_secs(),
            if self.what.is_empty() { "" } else { ": " },
            self.what
        );
        self.printed = Instant::now();
    }

    fn end(&mut self) {
        match &self.bar {
            Some(bar) => bar.abandon_with_message("done"),
            None => self.print(),
        }
    }
}

fn bar(guest: &str, expected: usize) -> io::Result<ProgressBar> {
    let style = ProgressStyle::with_template(
        "[{prefix}] {bar:24} {pos} of {len} measurements, {elapsed} {wide_msg}",
    )
    .map_err(io::Error::other)?
    .progress_chars("##.");
    let bar = ProgressBar::with_draw_target(Some(expected as u64), ProgressDrawTarget::stdout())
        .with_style(style)
        .with_prefix(guest.to_owned());
    // The time goes on while a guest is silent.
    bar.enable_steady_tick(Duration::from_secs(1));
    Ok(bar)
}
