// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Runs many processes that register GPU memory and misbehave in every way that a program can. The
//! run ends after a given number of registrations.
//!
//! This process only starts the workers, kills some of them during their work, starts new workers
//! in their place, and waits for all of them. The seed and a worker's number determine the actions
//! of this worker (`worker.rs`). They do not determine in which order the actions of different
//! workers happen.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Result};
use clap::ValueEnum;
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use crate::gpu::Gpu;
use crate::pattern::Random;
use crate::process;
use crate::transfer::Expected;
use crate::value::say;
use crate::verbs::Hca;
use crate::worker;

/// Registers GPU memory in processes that misbehave, and prints the counts
#[derive(clap::Args)]
pub struct Options {
    /// The seed of all actions of the processes
    #[arg(long)]
    pub seed: u64,
    /// Number of registrations to try in all
    #[arg(long)]
    registrations: u64,
    /// Whether the module revokes freed memory, or keeps freed memory pinned
    #[arg(long, value_enum, default_value = "revoked")]
    pub expect: Expected,
    /// The driver also takes memory away
    #[arg(long)]
    pub injections: bool,
}

/// The number of processes that work at the same time.
const PROCESSES: usize = 4;

/// A process ends when all processes together have tried this number of registrations since its
/// start, or before.
const LONGEST_LIFE: u64 = 800;

/// The program kills each process with a probability of 1 / KILLED.
const KILLED: u64 = 3;

#[derive(Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
pub enum Count {
    Registrations,
    Registered,
    FreedUnder,
    FreedWhileRegistering,
    FreedWhileDeregistering,
    Transfers,
    Forks,
    DeregisteredByChild,
    ChildrenKilled,
    Workers,
    WorkersKilled,
    Defects,
}

/// The data that all processes share. It is made before the first process starts.
pub struct Stress {
    pub options: Options,
    pub gpu: Gpu,
    counts: &'static [AtomicU64],
}

impl Stress {
    /// Adds one to a count, and returns the old count.
    pub fn count(&self, what: Count) -> u64 {
        self.counts[what as usize].fetch_add(1, Relaxed)
    }

    fn of(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Relaxed)
    }

    /// Returns true if the caller shall try another registration, and counts this registration.
    pub fn claim(&self, until: u64) -> bool {
        let claimed = !self.is_over(until);
        if claimed {
            self.count(Count::Registrations);
        }
        claimed
    }

    /// Returns whether the run shall end. The run also ends after a defect, so that no later action
    /// destroys the traces of the defect.
    pub fn is_over(&self, until: u64) -> bool {
        let until = until.min(self.options.registrations);
        self.of(Count::Registrations) >= until || self.of(Count::Defects) > 0
    }

    pub fn defect(&self, text: impl Display) {
        self.count(Count::Defects);
        eprintln!("gpuverbs: stress: {text}");
    }
}

/// A process at work, and the number of registrations after which it is killed.
struct Place {
    child: Pid,
    kill_at: Option<u64>,
}

impl Options {
    pub fn run(self) -> Result<()> {
        let counts = process::shared_counters(Count::value_variants().len())?;
        let stress = Stress { options: self, gpu: Gpu::open()?, counts };
        let stress: &'static Stress = Box::leak(Box::new(stress));
        let seed = stress.options.seed;
        say("seed", seed);
        set_child_subreaper(true)?;
        // The drivers of libibverbs are loaded before the workers are forked. Loading them in each
        // worker would take longer than many registrations.
        Hca::load_drivers();
        let mut random = Random::stream(seed, u64::MAX);
        let mut places = [const { None }; PROCESSES];
        while !stress.is_over(u64::MAX) {
            for place in &mut places {
                let due = |at: &mut u64| stress.of(Count::Registrations) >= *at;
                match place {
                    None => *place = Some(start(stress, &mut random)?),
                    // The signal may arrive at any point of the process's work.
                    Some(Place { child, kill_at }) => {
                        if kill_at.take_if(due).is_some() {
                            kill(*child, Signal::SIGKILL)?;
                            stress.count(Count::WorkersKilled);
                        }
                    }
                }
            }
            while reap(stress, &mut places, Some(WaitPidFlag::WNOHANG))? {}
            // The length of the pause decides only how often this loop looks at the processes. An
            // emulated machine makes about one registration in this time.
            thread::sleep(Duration::from_millis(25));
        }
        while reap(stress, &mut places, None)? {}
        for count in Count::value_variants() {
            let name = count.to_possible_value().expect("none is skipped");
            say(name.get_name(), stress.of(*count));
        }
        let defects = stress.of(Count::Defects);
        ensure!(defects == 0, "{defects} defects; once more: gpuverbs stress --seed {seed}");
        Ok(())
    }
}

fn start(stress: &'static Stress, random: &mut Random) -> Result<Place> {
    let (number, life) = (stress.count(Count::Workers), 1 + random.below(LONGEST_LIFE));
    let until = stress.of(Count::Registrations) + life;
    let kill_at = random.one_in(KILLED).then(|| until - random.below(life));
    Ok(Place { child: process::fork(|| worker::run(stress, number, until))?, kill_at })
}

/// Handles a process that has ended, and returns true. Returns false if no process has ended. The
/// process is a worker or an orphan, which is the child of a killed worker. An orphan may have been
/// the last process that had a certain registration.
fn reap(stress: &Stress, places: &mut [Option<Place>], flags: Option<WaitPidFlag>) -> Result<bool> {
    let status = match waitpid(None, flags) {
        Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(false),
        status => status?,
    };
    match status {
        WaitStatus::Exited(_, 0) | WaitStatus::Signaled(_, Signal::SIGKILL, _) => {}
        WaitStatus::Exited(_, number) if worker::is_second(number) => {}
        _ => stress.defect(format_args!("a process ended with {status:?}")),
    }
    for place in places {
        place.take_if(|place| Some(place.child) == status.pid());
    }
    Ok(true)
}
