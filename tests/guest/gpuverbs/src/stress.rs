// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `stress`: many processes that register GPU memory and misbehave in every way
//! that a program can, until so many registrations have been tried.
//!
//! This process only starts the others, kills some of them in mid-work, starts
//! new ones in their place, and waits for every last one. What each of them
//! does (`worker.rs`) is a function of the seed and of its number; how their
//! doings interleave is the machine's.

mod plot;
mod tally;
mod worker;

use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::args::{usage, Args, Command, Opt};
use crate::failure::Failure;
use crate::gpu::{Gpu, GPU_PAGE};
use crate::machine;
use crate::output;
use crate::process::{self, Child};
use crate::random::Random;
use crate::sys;
use crate::verbs::{Found, Port, PORT_OPTIONS};

use tally::{is, Count, Tally};

pub const COMMAND: Command = Command {
    name: "stress",
    summary: "Registers GPU memory in processes that misbehave, and says what came of it",
    options: &[
        &[
            Opt::required("seed", "N", "what the processes do is a function of it"),
            Opt::required("registrations", "N", "how many to try in all"),
            Opt::optional("processes", "N", "at a time (default: 4)"),
            Opt::optional("threads", "N", "of each process (default: 2)"),
            Opt::optional(
                "memory",
                "SIZE",
                "of the GPU, from offset 0 on (default: 128M)",
            ),
            Opt::optional(
                "expect",
                "WHAT",
                "what becomes of freed memory: revoked (the default) or pinned",
            ),
            Opt::flag("injections", "the driver takes memory away, too"),
        ],
        machine::OPTIONS,
        PORT_OPTIONS,
    ],
    run,
};

/// What a process does before it ends, at most, in registrations.
const LONGEST_LIFE: u64 = 200;

/// One of so many processes is killed.
const KILLED: u64 = 3;

/// What all processes know. Made before there are any.
struct Stress {
    seed: u64,
    registrations: u64,
    threads: u64,
    freed_stays: bool,
    injected_frees: bool,
    found: Found,
    port: Port,
    gpu: Gpu,
    slices: Slices,
    tally: Tally,
    /// Registrations tried by the process in each place.
    progress: &'static [AtomicU64],
    /// Where descriptors are passed on, by whoever to whoever.
    outbox: UnixDatagram,
    inbox: UnixDatagram,
}

impl Stress {
    fn new(args: &Args) -> Result<Self, Failure> {
        let at_least_one = |name: &str, default| match args.number(name)?.unwrap_or(default) {
            n if (1..=64).contains(&n) => Ok(n),
            _ => Err(usage(format!("--{name} must be from 1 to 64"))),
        };
        let processes = at_least_one("processes", 4)?;
        let threads = at_least_one("threads", 2)?;
        let memory = args.number("memory")?.unwrap_or(128 << 20);
        let found = Found::find(args)?;
        // Nothing of this connection is inherited: it ends here.
        let port = Port::query(&*found.open()?, args)?;
        let shared = || Failure::environment("memory to share with other processes");
        let places = usize::try_from(processes).map_err(|_| usage("--processes is too large"))?;
        let (outbox, inbox) =
            UnixDatagram::pair().map_err(Failure::environment("a pair of sockets"))?;
        Ok(Self {
            seed: args.required("seed")?,
            registrations: args.required("registrations")?,
            threads,
            freed_stays: args.choice("expect", &[("revoked", false), ("pinned", true)])?,
            injected_frees: args.flag("injections"),
            found,
            port,
            gpu: Gpu::open(args)?,
            slices: Slices::new(memory, processes * threads)?,
            tally: Tally::new().map_err(shared())?,
            progress: process::shared_counters(places).map_err(shared())?,
            outbox,
            inbox,
        })
    }

    /// Whether one more registration is to be tried; counts it.
    fn claim(&self, place: usize) -> bool {
        if self.is_over() || !self.tally.count_below(Count::Attempted, self.registrations) {
            return false;
        }
        self.progress[place].fetch_add(1, Ordering::Relaxed);
        true
    }

    /// A defect ends it, so that its traces are not blown away.
    fn is_over(&self) -> bool {
        self.tally.of(Count::Attempted) >= self.registrations || self.tally.of(Count::Defects) > 0
    }
}

/// Parts of the GPU's memory: one for each thread, and one for all.
struct Slices {
    size: u64,
    own: u64,
}

impl Slices {
    fn new(memory: u64, own: u64) -> Result<Self, Failure> {
        let size = memory / (own + 1) / GPU_PAGE * GPU_PAGE;
        if size < plot::LARGEST {
            return Err(usage(format!(
                "--memory is too small: {own} threads and one more need {} bytes each",
                plot::LARGEST
            )));
        }
        Ok(Self { size, own })
    }

    /// A multiple of the page at which `size` bytes lie in the slice of thread
    /// `index`, or one time in eight in everybody's.
    fn offset(&self, index: u64, size: u64, random: &mut Random) -> u64 {
        let slice = if random.one_in(8) { self.own } else { index };
        slice * self.size + random.below((self.size - size) / GPU_PAGE + 1) * GPU_PAGE
    }
}

/// A process at work, and when it is to be killed.
struct Place {
    child: Child,
    kill_at: Option<u64>,
}

struct Supervisor {
    stress: Stress,
    random: Random,
    places: Vec<Option<Place>>,
}

fn run(args: &Args) -> Result<(), Failure> {
    let stress = Stress::new(args)?;
    output::value("seed", stress.seed);
    process::adopt_orphans().map_err(Failure::environment("adopting orphans"))?;
    let mut supervisor = Supervisor {
        random: Random::stream(stress.seed, u64::MAX),
        places: stress.progress.iter().map(|_| None).collect(),
        stress,
    };
    while !supervisor.stress.is_over() {
        supervisor.fill()?;
        supervisor.kill();
        supervisor.reap()?;
        // Pace alone; nothing hangs on it.
        thread::sleep(Duration::from_millis(5));
    }
    supervisor.finish()
}

impl Supervisor {
    /// A process for every place that has none.
    fn fill(&mut self) -> Result<(), Failure> {
        for place in 0..self.places.len() {
            if self.places[place].is_some() {
                continue;
            }
            let number = self.stress.tally.count(Count::Workers);
            let life = 1 + self.random.below(LONGEST_LIFE);
            let kill_at = self
                .random
                .one_in(KILLED)
                .then(|| 1 + self.random.below(life));
            self.stress.progress[place].store(0, Ordering::Relaxed);
            let stress = &self.stress;
            let child = process::fork(|| worker::run(stress, place, number, life))
                .map_err(Failure::environment("a new process"))?;
            self.places[place] = Some(Place { child, kill_at });
        }
        Ok(())
    }

    /// Kills those that have come far enough, wherever they are just now.
    fn kill(&mut self) {
        for (place, progress) in self.places.iter_mut().zip(self.stress.progress) {
            let Some(place) = place else { continue };
            let due = |at| progress.load(Ordering::Relaxed) >= at;
            if place.kill_at.take_if(|at| due(*at)).is_some() {
                place.child.kill();
                self.stress.tally.count(Count::Kills);
            }
        }
    }

    fn reap(&mut self) -> Result<(), Failure> {
        while let Some((child, status)) =
            process::reap().map_err(Failure::environment("waiting for processes"))?
        {
            self.ended(child, status);
        }
        Ok(())
    }

    /// A worker, or the orphan of one that was killed, which may have come
    /// second to deregister a region.
    fn ended(&mut self, child: Child, status: ExitStatus) {
        let killed = status.signal() == Some(sys::SIGKILL as i32);
        let second = status.code().is_some_and(worker::is_second);
        if !status.success() && !killed && !second {
            self.stress
                .tally
                .defect(format_args!("a process ended with {status}"));
        }
        for place in &mut self.places {
            place.take_if(|place| place.child == child);
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        loop {
            match process::wait_any() {
                Ok(Some((child, status))) => self.ended(child, status),
                Ok(None) => {}
                Err(error) if is(&error, sys::ECHILD) => break,
                Err(error) => {
                    return Err(Failure::environment("waiting for processes")(error));
                }
            }
        }
        close_what_nobody_took(&self.stress);
        let tally = self.stress.tally;
        tally.print();
        match tally.of(Count::Defects) {
            0 => Ok(()),
            n => Err(Failure::Unmet(format!(
                "{n} defects; once more: gpuverbs stress --seed {}",
                self.stress.seed
            ))),
        }
    }
}

/// Descriptors that are still on their way.
fn close_what_nobody_took(stress: &Stress) {
    while let Ok(descriptor) = process::receive_fd(&stress.inbox) {
        drop(descriptor);
        stress.tally.count(Count::ClosedElsewhere);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_do_not_overlap_but_for_the_common_one() {
        let slices = Slices::new(128 << 20, 8).unwrap();
        let mut random = Random::new(3);
        let mut common = 0;
        for round in 0..10_000 {
            let (index, size) = (round % 8, plot::LARGEST);
            let offset = slices.offset(index, size, &mut random);
            assert_eq!(offset % GPU_PAGE, 0);
            assert!(offset + size <= 128 << 20);
            let (first, last) = (offset / slices.size, (offset + size - 1) / slices.size);
            assert_eq!(first, last);
            if first == 8 {
                common += 1;
            } else {
                assert_eq!(first, index);
            }
        }
        assert!(common > 1000 && common < 1500, "{common}");
    }

    #[test]
    fn slices_need_room() {
        assert!(Slices::new(8 << 20, 8).is_err());
    }
}
