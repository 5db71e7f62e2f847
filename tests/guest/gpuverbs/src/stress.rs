// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Many processes that register GPU memory and misbehave in every way that a
//! program can, until so many registrations have been tried.
//!
//! This process only starts the others, kills some of them in mid-work, starts
//! new ones in their place, and waits for every last one. What each of them
//! does (`worker.rs`) is a function of the seed and of its number; how their
//! doings interleave is the machine's.

mod plot;
mod tally;
mod worker;

use std::os::unix::net::UnixDatagram;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{ensure, Result};
use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitPidFlag, WaitStatus};
use nix::unistd::Pid;

use crate::gpu::{Gpu, GPU_PAGE};
use crate::pattern::Random;
use crate::process;
use crate::transfer::Expected;
use crate::value::say;
use crate::verbs::{Device, Port};

use tally::{Count, Tally};

/// Registers GPU memory in processes that misbehave, and says what came of it
#[derive(clap::Args)]
pub struct Options {
    /// What the processes do is a function of it
    #[arg(long)]
    seed: u64,
    /// How many to try in all
    #[arg(long)]
    registrations: u64,
    /// What becomes of freed memory that is registered
    #[arg(long, value_enum, default_value = "revoked")]
    expect: Expected,
    /// The driver takes memory away, too
    #[arg(long)]
    injections: bool,
}

/// Processes at a time, and threads of each.
const PROCESSES: usize = 4;
const THREADS: u64 = 2;

/// What a process does before it ends, at most, in registrations.
const LONGEST_LIFE: u64 = 200;

/// One of so many processes is killed.
const KILLED: u64 = 3;

/// What all processes know. Made before there are any.
struct Stress {
    options: Options,
    port: Port,
    gpu: Gpu,
    tally: Tally,
    /// Registrations tried by the process in each place.
    progress: &'static [AtomicU64],
    /// Where descriptors are passed on, by whoever to whoever.
    outbox: UnixDatagram,
    inbox: UnixDatagram,
}

impl Stress {
    fn new(options: Options) -> Result<Self> {
        let (outbox, inbox) = UnixDatagram::pair()?;
        Ok(Self {
            options,
            // Nothing of this connection is inherited: it ends here.
            port: Port::query(&*Device::open()?)?,
            gpu: Gpu::open()?,
            tally: Tally::new()?,
            progress: process::shared_counters(PROCESSES)?,
            outbox,
            inbox,
        })
    }

    /// Whether one more registration is to be tried; counts it.
    fn claim(&self, place: usize) -> bool {
        let limit = self.options.registrations;
        if self.is_over() || !self.tally.count_below(Count::Registrations, limit) {
            return false;
        }
        self.progress[place].fetch_add(1, Ordering::Relaxed);
        true
    }

    /// A defect ends it, so that its traces are not blown away.
    fn is_over(&self) -> bool {
        self.tally.of(Count::Registrations) >= self.options.registrations
            || self.tally.of(Count::Defects) > 0
    }
}

/// The GPU's memory is in parts: one for each thread, and one for all.
const OWN: u64 = PROCESSES as u64 * THREADS;
const SLICE: u64 = (128 << 20) / (OWN + 1) / GPU_PAGE * GPU_PAGE;
const _: () = assert!(SLICE >= plot::LARGEST);

/// A multiple of the page at which `size` bytes lie in the slice of thread
/// `index`, or one time in eight in everybody's.
fn offset(index: u64, size: u64, random: &mut Random) -> u64 {
    let slice = if random.one_in(8) { OWN } else { index };
    slice * SLICE + random.below((SLICE - size) / GPU_PAGE + 1) * GPU_PAGE
}

/// A process at work, and when it is to be killed.
struct Place {
    child: Pid,
    kill_at: Option<u64>,
}

struct Supervisor {
    stress: Stress,
    random: Random,
    places: [Option<Place>; PROCESSES],
}

impl Options {
    pub fn run(self) -> Result<()> {
        let seed = self.seed;
        say("seed", seed);
        set_child_subreaper(true)?;
        let (random, places) = (Random::stream(seed, u64::MAX), [const { None }; PROCESSES]);
        let mut supervisor = Supervisor { stress: Stress::new(self)?, random, places };
        while !supervisor.stress.is_over() {
            supervisor.fill()?;
            supervisor.kill()?;
            while supervisor.reap(Some(WaitPidFlag::WNOHANG))? {}
            // Pace alone; nothing hangs on it.
            thread::sleep(Duration::from_millis(5));
        }
        while supervisor.reap(None)? {}
        let Stress { tally, inbox, .. } = supervisor.stress;
        // Descriptors that nobody took.
        while process::receive_fd(&inbox).is_ok() {
            tally.count(Count::DescriptorsClosedElsewhere);
        }
        tally.print();
        let defects = tally.of(Count::Defects);
        ensure!(defects == 0, "{defects} defects; once more: gpuverbs stress --seed {seed}");
        Ok(())
    }
}

impl Supervisor {
    /// A process for every place that has none.
    fn fill(&mut self) -> Result<()> {
        for place in 0..PROCESSES {
            if self.places[place].is_some() {
                continue;
            }
            let number = self.stress.tally.count(Count::Workers);
            let life = 1 + self.random.below(LONGEST_LIFE);
            let killed = self.random.one_in(KILLED);
            let kill_at = killed.then(|| 1 + self.random.below(life));
            self.stress.progress[place].store(0, Ordering::Relaxed);
            let stress = &self.stress;
            let child = process::fork(|| worker::run(stress, place, number, life))?;
            self.places[place] = Some(Place { child, kill_at });
        }
        Ok(())
    }

    /// Kills those that have come far enough, wherever they are just now.
    fn kill(&mut self) -> Result<()> {
        for (place, progress) in self.places.iter_mut().zip(self.stress.progress) {
            let Some(place) = place else { continue };
            let due = |at: &mut u64| progress.load(Ordering::Relaxed) >= *at;
            if place.kill_at.take_if(due).is_some() {
                kill(place.child, Signal::SIGKILL)?;
                self.stress.tally.count(Count::WorkersKilled);
            }
        }
        Ok(())
    }

    /// One process that has ended; whether there was one. It is a worker, or the
    /// orphan of one that was killed, which may have come second to deregister a
    /// region.
    fn reap(&mut self, flags: Option<WaitPidFlag>) -> Result<bool> {
        let status = match waitpid(None, flags) {
            Ok(WaitStatus::StillAlive) | Err(Errno::ECHILD) => return Ok(false),
            status => status?,
        };
        match status {
            WaitStatus::Exited(_, 0) | WaitStatus::Signaled(_, Signal::SIGKILL, _) => {}
            WaitStatus::Exited(_, number) if worker::is_second(number) => {}
            _ => self.stress.tally.defect(format_args!("a process ended with {status:?}")),
        }
        for place in &mut self.places {
            place.take_if(|place| Some(place.child) == status.pid());
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_do_not_overlap_but_for_the_common_one() {
        let mut random = Random::new(3);
        let mut common = 0;
        for index in (0..10_000).map(|round| round % OWN) {
            let offset = offset(index, plot::LARGEST, &mut random);
            assert_eq!(offset % GPU_PAGE, 0);
            assert!(offset + plot::LARGEST <= 128 << 20);
            let (first, last) = (offset / SLICE, (offset + plot::LARGEST - 1) / SLICE);
            assert_eq!(first, last);
            assert!(first == index || first == OWN);
            common += u64::from(first == OWN);
        }
        assert!(common > 1000 && common < 1500, "{common}");
    }
}
