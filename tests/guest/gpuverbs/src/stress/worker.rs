// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! One process of a stress run: a device opened once, and threads that allocate,
//! register, transfer, free and deregister in an order of chance.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use crate::errno;
use crate::failure::Failure;
use crate::gpu::{scratch_file, FreeBy};
use crate::process::{self, Child};
use crate::random::Random;
use crate::sys;
use crate::verbs::{Access, Device, Mr, Operation, Pair, Pd};

use super::plot::{self, Plot, Words};
use super::tally::{is, is_honest, Count};
use super::Stress;

/// Pieces of memory that a thread has at a time, and registrations of each.
const PLOTS: usize = 4;
const REGIONS: usize = 4;

/// Longer transfers take too long on an emulated machine.
const LONGEST_TRANSFER: usize = 128 * 1024;

/// A process that has inherited the descriptor sits on it for so long.
const LONGEST_SIT: u64 = 30;

/// What a registration may be for.
const ACCESS: &[&str] = &[
    "none",
    "lw",
    "lw,rw",
    "lw,rr",
    "lw,rw,rr",
    "lw,rw,rr,atomic,relaxed",
];

/// What the threads of a process share.
struct Worker<'a> {
    stress: &'a Stress,
    place: usize,
    life: u64,
    device: Arc<Device>,
    pd: Arc<Pd>,
    /// Taken alone by whoever deregisters the same region in two processes: the
    /// number that it has in the kernel must not be given to another object
    /// meanwhile.
    numbers: RwLock<()>,
}

/// The process: returns its exit status, unless it ends in the middle.
pub fn run(stress: &Stress, place: usize, number: u64, life: u64) -> u8 {
    match work(stress, place, number, life) {
        Ok(()) => 0,
        Err(failure) => {
            stress.tally.defect(failure);
            1
        }
    }
}

fn work(stress: &Stress, place: usize, number: u64, life: u64) -> Result<(), Failure> {
    let device = stress.found.open()?;
    let pd = Pd::allocate(&device)?;
    let worker = Worker {
        stress,
        place,
        life,
        device,
        pd,
        numbers: RwLock::new(()),
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..stress.threads)
            .map(|index| {
                let worker = &worker;
                scope.spawn(move || Thread::new(worker, number, index)?.run())
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| panicked()))
    })
}

fn panicked() -> Result<(), Failure> {
    Err(Failure::Unmet("a thread panicked".to_owned()))
}

struct Thread<'a> {
    worker: &'a Worker<'a>,
    stress: &'a Stress,
    slice: u64,
    random: Random,
    plots: Vec<Plot>,
    scratch: File,
    pair: Option<Pair>,
    /// Descriptors of others.
    foreign: Vec<OwnedFd>,
    sitting: Vec<Child>,
}

#[derive(Clone, Copy)]
enum Action {
    Allocate,
    Register,
    RegisterTooLong,
    RegisterWhileFreeing,
    Deregister,
    DeregisterWhileFreeing,
    Free,
    Transfer,
    ForkToDeregister,
    ForkToSit,
    Pass,
    Take,
    Abandon,
}

const ACTIONS: &[(u64, Action)] = &[
    (120, Action::Allocate),
    (360, Action::Register),
    (10, Action::RegisterTooLong),
    (30, Action::RegisterWhileFreeing),
    (160, Action::Deregister),
    (40, Action::DeregisterWhileFreeing),
    (60, Action::Free),
    (15, Action::Transfer),
    (6, Action::ForkToDeregister),
    (3, Action::ForkToSit),
    (10, Action::Pass),
    (10, Action::Take),
    (1, Action::Abandon),
];

impl<'a> Thread<'a> {
    fn new(worker: &'a Worker<'a>, number: u64, index: u64) -> Result<Self, Failure> {
        let stress = worker.stress;
        Ok(Self {
            worker,
            stress,
            slice: worker.place as u64 * stress.threads + index,
            random: Random::stream(stress.seed, number * stress.threads + index),
            plots: Vec::new(),
            scratch: scratch_file().map_err(Failure::environment("memfd_create()"))?,
            pair: None,
            foreign: Vec::new(),
            sitting: Vec::new(),
        })
    }

    fn run(mut self) -> Result<(), Failure> {
        while !self.stress.is_over() && self.is_alive() {
            self.act()?;
        }
        self.leave()
    }

    fn is_alive(&self) -> bool {
        self.stress.progress[self.worker.place].load(Ordering::Relaxed) < self.worker.life
    }

    fn act(&mut self) -> Result<(), Failure> {
        match self.random.weighted(ACTIONS) {
            Action::Allocate => self.allocate(),
            Action::Register => self.register(),
            Action::RegisterTooLong => self.register_too_long(),
            Action::RegisterWhileFreeing => self.register_while_freeing(),
            Action::Deregister => self.deregister(),
            Action::DeregisterWhileFreeing => self.deregister_while_freeing(),
            Action::Free => self.free(),
            Action::Transfer => self.transfer(),
            Action::ForkToDeregister => self.fork_to_deregister(),
            Action::ForkToSit => self.fork_to_sit(),
            Action::Pass => self.pass(),
            Action::Take => self.take(),
            Action::Abandon => self.abandon(),
        }
    }

    fn allocate(&mut self) -> Result<(), Failure> {
        if self.plots.len() == PLOTS {
            return Ok(());
        }
        let size = plot::size(&mut self.random);
        let offset = self
            .stress
            .slices
            .offset(self.slice, size, &mut self.random);
        let word = self.random.word();
        match Plot::new(&self.stress.gpu, offset, size, word, &self.scratch) {
            Ok(plot) => self.plots.push(plot),
            // Another's, or freed but pinned still.
            Err(error) if is(&error, sys::EBUSY) => {
                self.stress.tally.count(Count::Collisions);
            }
            Err(error) => return Err(Failure::unmet("allocating GPU memory")(error)),
        }
        Ok(())
    }

    /// A piece that may be registered once more.
    fn some_plot(&mut self) -> Option<usize> {
        if self.plots.is_empty() {
            return None;
        }
        let index = self.random.index(self.plots.len());
        (self.plots[index].regions.len() < REGIONS).then_some(index)
    }

    /// Often one that transfers can use.
    fn some_access(&mut self) -> Access {
        if self.random.one_in(2) {
            return Access::ALL;
        }
        let text = ACCESS[self.random.index(ACCESS.len())];
        Access::parse(text).expect("they are tested")
    }

    fn register(&mut self) -> Result<(), Failure> {
        let Some(index) = self.some_plot() else {
            return Ok(());
        };
        // What was unmapped may by now be anybody's.
        if self.plots[index].freed || !self.stress.claim(self.worker.place) {
            return Ok(());
        }
        let range = self.plots[index].range(&mut self.random);
        let access = self.some_access();
        let result = {
            let _shared = self.worker.numbers.read();
            self.worker.pd.register(range, access)
        };
        if let Err(error) = &result {
            if is(error, sys::EFAULT) && !self.stress.injected_frees {
                self.stress
                    .tally
                    .defect("memory of our own that nobody has freed was refused with EFAULT");
            }
        }
        self.registered(index, result);
        Ok(())
    }

    fn registered(&mut self, index: usize, result: io::Result<Mr>) {
        match result {
            Ok(region) => {
                self.stress.tally.count(Count::Registered);
                self.plots[index].regions.push(region);
            }
            Err(error) => {
                self.stress.tally.error(&error);
                if !is_honest(&error) {
                    self.stress.tally.defect(format_args!(
                        "ibv_reg_mr() ended with {}, which is not an honest answer",
                        errno::describe(&error)
                    ));
                }
            }
        }
    }

    /// More than was allocated: must fail, whatever lies behind it.
    fn register_too_long(&mut self) -> Result<(), Failure> {
        let Some(index) = self.some_plot() else {
            return Ok(());
        };
        if self.plots[index].freed || !self.stress.claim(self.worker.place) {
            return Ok(());
        }
        let range = self.plots[index].range_too_long(&mut self.random);
        let result = {
            let _shared = self.worker.numbers.read();
            self.worker.pd.register(range, Access::ALL)
        };
        if result.is_ok() {
            self.stress
                .tally
                .defect("more memory was registered than had been allocated");
        }
        self.registered(index, result);
        Ok(())
    }

    fn register_while_freeing(&mut self) -> Result<(), Failure> {
        let Some(index) = self.some_plot() else {
            return Ok(());
        };
        if self.plots[index].freed || !self.stress.claim(self.worker.place) {
            return Ok(());
        }
        self.check_words(index)?;
        // The address range stays: it must not become another thread's.
        let range = self.plots[index].range(&mut self.random);
        let access = self.some_access();
        let worker = self.worker;
        let plot = &mut self.plots[index];
        let (result, freed) = thread::scope(|scope| {
            let free = scope.spawn(|| plot.free(FreeBy::Ioctl));
            let result = {
                let _shared = worker.numbers.read();
                worker.pd.register(range, access)
            };
            (result, free.join())
        });
        self.stress.tally.count(Count::FreedWhileRegistering);
        self.freed(freed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))?;
        self.registered(index, result);
        Ok(())
    }

    /// The answer to a free by ioctl or munmap.
    fn freed(&mut self, result: io::Result<()>) -> Result<(), Failure> {
        match result {
            Ok(()) => Ok(()),
            Err(error) if is(&error, sys::EINVAL) && self.stress.injected_frees => {
                self.stress.tally.count(Count::Taken);
                Ok(())
            }
            Err(error) => Err(Failure::unmet("freeing GPU memory")(error)),
        }
    }

    /// A region taken out of its piece of memory, and the index of that.
    fn take_region(&mut self) -> Option<(usize, Mr)> {
        let with: Vec<usize> = (0..self.plots.len())
            .filter(|index| !self.plots[*index].regions.is_empty())
            .collect();
        if with.is_empty() {
            return None;
        }
        let index = with[self.random.index(with.len())];
        let regions = &mut self.plots[index].regions;
        let region = regions.swap_remove(self.random.index(regions.len()));
        Some((index, region))
    }

    fn deregister(&mut self) -> Result<(), Failure> {
        let Some((index, region)) = self.take_region() else {
            return Ok(());
        };
        self.check_words(index)?;
        let result = {
            let _shared = self.worker.numbers.read();
            region.deregister()
        };
        self.deregistered(result)?;
        self.drop_if_done(index);
        Ok(())
    }

    fn deregistered(&mut self, result: io::Result<()>) -> Result<(), Failure> {
        result.map_err(Failure::unmet("ibv_dereg_mr()"))?;
        self.stress.tally.count(Count::Deregistered);
        Ok(())
    }

    /// Memory that was freed goes when its last registration has.
    fn drop_if_done(&mut self, index: usize) {
        if self.plots[index].freed && self.plots[index].regions.is_empty() {
            self.plots.swap_remove(index);
        }
    }

    fn deregister_while_freeing(&mut self) -> Result<(), Failure> {
        let Some((index, region)) = self.take_region() else {
            return Ok(());
        };
        if self.plots[index].freed {
            self.plots[index].regions.push(region);
            return Ok(());
        }
        self.check_words(index)?;
        let by = self.some_way();
        let worker = self.worker;
        let plot = &mut self.plots[index];
        let (result, freed) = thread::scope(|scope| {
            let free = scope.spawn(|| plot.free(by));
            let result = {
                let _shared = worker.numbers.read();
                region.deregister()
            };
            (result, free.join())
        });
        self.stress.tally.count(Count::FreedWhileDeregistering);
        self.freed(freed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))?;
        self.deregistered(result)?;
        self.drop_if_done(index);
        Ok(())
    }

    fn some_way(&mut self) -> FreeBy {
        match self.random.one_in(2) {
            true => FreeBy::Ioctl,
            false => FreeBy::Munmap,
        }
    }

    /// Frees memory that may be registered.
    fn free(&mut self) -> Result<(), Failure> {
        if self.plots.is_empty() {
            return Ok(());
        }
        let index = self.random.index(self.plots.len());
        if self.plots[index].freed {
            return Ok(());
        }
        self.check_words(index)?;
        let by = self.some_way();
        let result = self.plots[index].free(by);
        self.freed(result)?;
        if !self.plots[index].regions.is_empty() {
            self.stress.tally.count(Count::FreedUnder);
        }
        self.drop_if_done(index);
        Ok(())
    }

    /// Nobody but us writes into our memory.
    fn check_words(&self, index: usize) -> Result<(), Failure> {
        let plot = &self.plots[index];
        if plot.freed {
            return Ok(());
        }
        let words = plot
            .words(&self.scratch)
            .map_err(Failure::unmet("reading GPU memory"))?;
        match words {
            Words::Overwritten => Err(Failure::Unmet(
                "somebody has written into memory of our own".to_owned(),
            )),
            Words::Gone if !self.stress.injected_frees => Err(Failure::Unmet(
                "memory of our own that nobody has freed is gone".to_owned(),
            )),
            _ => Ok(()),
        }
    }

    fn transfer(&mut self) -> Result<(), Failure> {
        let Some((from, source)) = self.take_region() else {
            return Ok(());
        };
        let done = match self.take_region() {
            Some((to, target)) => {
                let done = self.transfer_between(from, &source, to, &target);
                self.plots[to].regions.push(target);
                done
            }
            None => Ok(()),
        };
        self.plots[from].regions.push(source);
        done
    }

    fn transfer_between(
        &mut self,
        from: usize,
        source: &Mr,
        to: usize,
        target: &Mr,
    ) -> Result<(), Failure> {
        if source.length().max(target.length()) > LONGEST_TRANSFER {
            return Ok(());
        }
        self.check_words(to)?;
        let (_, operation) = Operation::NAMES[self.random.index(2)];
        let pair = match self.pair.take() {
            Some(pair) => pair,
            None => {
                let _shared = self.worker.numbers.read();
                Pair::connect(&self.worker.pd, &self.stress.port)?
            }
        };
        let outcome = pair.run(operation, source, target)?;
        self.stress.tally.count(Count::Transfers);
        if outcome.is_success() {
            self.pair = Some(pair);
            let freed = self.plots[from].freed || self.plots[to].freed;
            if freed && !self.stress.freed_stays {
                return Err(Failure::Unmet(format!(
                    "a {operation} has reached memory that had been freed"
                )));
            }
        } else if outcome.is_refusal() {
            self.stress.tally.count(Count::Refused);
        } else {
            self.stress.tally.count(Count::Unanswered);
        }
        // What arrived, whole or in part, was ours to send.
        if !self.plots[to].freed {
            self.plots[to]
                .mark(&self.scratch)
                .map_err(Failure::unmet("writing GPU memory"))?;
        }
        Ok(())
    }

    /// A child, which has every descriptor of ours, deregisters our region, and
    /// so do we: before, at the same time or afterwards.
    fn fork_to_deregister(&mut self) -> Result<(), Failure> {
        let Some((index, mut region)) = self.take_region() else {
            return Ok(());
        };
        self.check_words(index)?;
        let worker = self.worker;
        let alone = worker.numbers.write();
        let child = process::fork(|| exit_status(region.try_deregister())).map_err(no_fork())?;
        self.stress.tally.count(Count::Forks);
        let result = match self.random.below(4) {
            0 => wait_and_deregister(child, region),
            1 => {
                child.kill();
                self.stress.tally.count(Count::ChildKills);
                wait_and_deregister(child, region)
            }
            2 => {
                let ours = region.deregister();
                wait(child).map(|theirs| (theirs, ours))
            }
            _ => {
                let freed = match self.plots[index].freed {
                    true => Ok(()),
                    false => self.plots[index].free(FreeBy::Ioctl),
                };
                self.freed(freed)?;
                wait_and_deregister(child, region)
            }
        };
        drop(alone);
        let (theirs, ours) = result?;
        self.deregistered_by_two(theirs, ours)?;
        self.drop_if_done(index);
        Ok(())
    }

    /// Exactly one of two must have succeeded. A child that was killed may have
    /// done so before that.
    fn deregistered_by_two(
        &mut self,
        theirs: Option<u8>,
        ours: io::Result<()>,
    ) -> Result<(), Failure> {
        let wrong = |text: String| Err(Failure::Unmet(text));
        match (theirs, ours) {
            (Some(0) | None, Err(error)) if error.raw_os_error().is_some_and(is_second) => {
                self.stress.tally.count(Count::DeregisteredByChild);
                Ok(())
            }
            (Some(0), Ok(())) => wrong("a region was deregistered twice".to_owned()),
            (_, Err(error)) => wrong(format!(
                "ibv_dereg_mr() after a child's, which ended with {theirs:?}: {}",
                errno::describe(&error)
            )),
            (Some(status), Ok(())) if !is_second(status.into()) => wrong(format!(
                "ibv_dereg_mr() in a child ended with errno {status}"
            )),
            (_, Ok(())) => self.deregistered(Ok(())),
        }
    }

    /// A child that only has our descriptors, and may outlive us.
    fn fork_to_sit(&mut self) -> Result<(), Failure> {
        let time = Duration::from_millis(self.random.below(LONGEST_SIT));
        let child = process::fork(|| {
            thread::sleep(time);
            0
        })
        .map_err(no_fork())?;
        self.stress.tally.count(Count::Forks);
        self.sitting.push(child);
        if self.sitting.len() > 2 {
            let child = self.sitting.remove(0);
            if self.random.one_in(2) {
                child.kill();
                self.stress.tally.count(Count::ChildKills);
            }
            wait(child)?;
        }
        Ok(())
    }

    /// Gives the device's descriptor to whoever takes it.
    fn pass(&mut self) -> Result<(), Failure> {
        match process::send_fd(&self.stress.outbox, self.worker.device.command_fd()) {
            Ok(()) => {
                self.stress.tally.count(Count::Passed);
                Ok(())
            }
            // Enough are on their way.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(Failure::unmet("passing a descriptor")(error)),
        }
    }

    /// Takes the descriptor of another, or of ourselves, and lets go of one:
    /// perhaps the last of that device's.
    fn take(&mut self) -> Result<(), Failure> {
        match process::receive_fd(&self.stress.inbox) {
            Ok(descriptor) => self.foreign.push(descriptor),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(Failure::unmet("taking a descriptor")(error)),
        }
        if self.foreign.len() > self.random.index(3) {
            drop(self.foreign.remove(0));
            self.stress.tally.count(Count::ClosedElsewhere);
        }
        Ok(())
    }

    /// Ends the process as it is.
    fn abandon(&mut self) -> ! {
        self.stress.tally.count(Count::Abandoned);
        process::exit(0)
    }

    /// The orderly end, or half of it.
    fn leave(&mut self) -> Result<(), Failure> {
        if self.random.one_in(4) {
            self.abandon();
        }
        for child in std::mem::take(&mut self.sitting) {
            wait(child)?;
        }
        while !self.plots.is_empty() {
            if self.random.one_in(2) {
                self.free()?;
            } else {
                self.deregister()?;
                // Memory without registrations is no use to anybody now.
                self.plots.retain(|plot| !plot.regions.is_empty());
            }
        }
        Ok(())
    }
}

fn no_fork() -> impl FnOnce(io::Error) -> Failure {
    Failure::environment("a new process")
}

/// For a child's exit status: 0 or the error number.
fn exit_status(result: io::Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => error
            .raw_os_error()
            .and_then(|number| u8::try_from(number).ok())
            .unwrap_or(u8::MAX),
    }
}

/// What the kernel says to whoever comes second, or at the same time.
pub fn is_second(errno: i32) -> bool {
    [sys::ENOENT, sys::EBUSY].contains(&(errno as u32))
}

/// A child's exit status; `None` if it was killed.
fn wait(child: Child) -> Result<Option<u8>, Failure> {
    let status = child
        .wait()
        .map_err(Failure::unmet("waiting for a child"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()))
}

fn wait_and_deregister(child: Child, region: Mr) -> Result<(Option<u8>, io::Result<()>), Failure> {
    let theirs = wait(child)?;
    Ok((theirs, region.deregister()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_is_well_formed() {
        for text in ACCESS {
            assert!(Access::parse(text).is_some(), "{text}");
        }
    }

    #[test]
    fn children_say_how_it_went() {
        assert_eq!(exit_status(Ok(())), 0);
        let error = |number: u32| Err(io::Error::from_raw_os_error(number as i32));
        assert_eq!(exit_status(error(sys::ENOENT)), sys::ENOENT as u8);
        assert_eq!(exit_status(error(524)), u8::MAX);
    }
}
