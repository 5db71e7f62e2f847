// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! One process of a stress run: a device opened once, and threads that allocate,
//! register, transfer, free and deregister in an order of chance.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, RwLock};
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::errno::Errno;
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;

use crate::gpu::{FreeBy, Range};
use crate::pattern::Random;
use crate::process;
use crate::transfer::Expected;
use crate::value::describe;
use crate::verbs::{Access, Device, Mr, Pair, Pd, ACCESS, ALL, OPERATIONS};

use super::plot::{self, Plot, Words};
use super::tally::{is, is_honest, Count};
use super::{Stress, THREADS};

/// Pieces of memory that a thread has at a time, and registrations of each.
const PLOTS: usize = 4;
const REGIONS: usize = 4;

/// Longer transfers take too long on an emulated machine.
const LONGEST_TRANSFER: u64 = 128 * 1024;

/// A process that has inherited the descriptor sits on it for so long.
const LONGEST_SIT: u64 = 30;

/// What the threads of a process share.
struct Worker<'a> {
    stress: &'a Stress,
    place: usize,
    life: u64,
    pd: Arc<Pd>,
    /// Taken alone by whoever deregisters the same region in two processes: the
    /// number that it has in the kernel must not be given to another object
    /// meanwhile.
    numbers: RwLock<()>,
}

impl Worker<'_> {
    fn register(&self, range: Range, access: Access) -> io::Result<Mr> {
        let _shared = self.numbers.read();
        self.pd.register(range, access)
    }

    fn deregister(&self, region: Mr) -> io::Result<()> {
        let _shared = self.numbers.read();
        region.deregister()
    }
}

/// The process: returns its exit status, unless it ends in the middle.
pub fn run(stress: &Stress, place: usize, number: u64, life: u64) -> u8 {
    match work(stress, place, number, life) {
        Ok(()) => 0,
        Err(error) => {
            stress.tally.defect(describe(&error));
            1
        }
    }
}

fn work(stress: &Stress, place: usize, number: u64, life: u64) -> Result<()> {
    let pd = Pd::allocate(Device::open()?)?;
    let worker = Worker { stress, place, life, pd, numbers: RwLock::new(()) };
    thread::scope(|scope| {
        let start = |index| {
            let worker = &worker;
            scope.spawn(move || Thread::new(worker, number, index)?.run())
        };
        let threads: Vec<_> = (0..THREADS).map(start).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")))
    })
}

struct Thread<'a> {
    worker: &'a Worker<'a>,
    stress: &'a Stress,
    slice: u64,
    random: Random,
    plots: Vec<Plot>,
    pair: Option<Pair>,
    /// Descriptors of others.
    foreign: Vec<OwnedFd>,
    sitting: Vec<Pid>,
}

/// What a thread does, with what it takes.
enum Action<T> {
    Other(fn(&mut T) -> Result<()>),
    /// A piece of memory that may be registered once more.
    Plot(fn(&mut T, usize) -> Result<()>),
    /// A region taken out of its piece of memory, and the index of that.
    Region(fn(&mut T, usize, Mr) -> Result<()>),
}

impl<'a> Thread<'a> {
    fn new(worker: &'a Worker<'a>, number: u64, index: u64) -> Result<Self> {
        let stress = worker.stress;
        Ok(Self {
            worker,
            stress,
            slice: worker.place as u64 * THREADS + index,
            random: Random::stream(stress.options.seed, number * THREADS + index),
            plots: Vec::new(),
            pair: None,
            foreign: Vec::new(),
            sitting: Vec::new(),
        })
    }

    fn run(mut self) -> Result<()> {
        let progress = &self.stress.progress[self.worker.place];
        while !self.stress.is_over() && progress.load(Ordering::Relaxed) < self.worker.life {
            let act = self.random.weighted(&[
                (120, Action::Other(Self::allocate)),
                (360, Action::Plot(Self::register)),
                (10, Action::Plot(Self::register_too_long)),
                (30, Action::Plot(Self::register_while_freeing)),
                (160, Action::Region(Self::deregister)),
                (40, Action::Region(Self::deregister_while_freeing)),
                (60, Action::Other(Self::free)),
                (15, Action::Region(Self::transfer)),
                (6, Action::Region(Self::fork_to_deregister)),
                (3, Action::Other(Self::fork_to_sit)),
                (10, Action::Other(Self::pass)),
                (10, Action::Other(Self::take)),
                (1, Action::Other(Self::abandon)),
            ]);
            self.act(act)?;
        }
        self.leave()
    }

    fn act(&mut self, action: &Action<Self>) -> Result<()> {
        match action {
            Action::Other(act) => act(self),
            Action::Plot(act) => match self.some_plot() {
                Some(index) => act(self, index),
                None => Ok(()),
            },
            Action::Region(act) => match self.take_region() {
                Some((index, region)) => act(self, index, region),
                None => Ok(()),
            },
        }
    }

    fn count(&self, what: Count) {
        self.stress.tally.count(what);
    }

    fn allocate(&mut self) -> Result<()> {
        if self.plots.len() == PLOTS {
            return Ok(());
        }
        let size = plot::size(&mut self.random);
        let offset = super::offset(self.slice, size, &mut self.random);
        let word = self.random.word();
        match Plot::new(&self.stress.gpu, offset, size, word) {
            Ok(plot) => self.plots.push(plot),
            // Another's, or freed but pinned still.
            Err(error) if is(&error, libc::EBUSY) => self.count(Count::Collisions),
            Err(error) => return Err(error).context("allocating GPU memory"),
        }
        Ok(())
    }

    /// A piece that may be registered once more, where one more registration is
    /// to be tried. What was unmapped may by now be anybody's.
    fn some_plot(&mut self) -> Option<usize> {
        if self.plots.is_empty() {
            return None;
        }
        let index = self.random.index(self.plots.len());
        let plot = &self.plots[index];
        let may = plot.regions.len() < REGIONS && !plot.freed;
        (may && self.stress.claim(self.worker.place)).then_some(index)
    }

    /// Often one that transfers can use.
    fn some_access(&mut self) -> Access {
        match self.random.one_in(2) {
            true => ALL,
            false => ACCESS[self.random.index(ACCESS.len())],
        }
    }

    fn register(&mut self, index: usize) -> Result<()> {
        let range = self.plots[index].range(&mut self.random);
        let result = self.worker.register(range, self.some_access());
        if let Err(error) = &result {
            ensure!(
                !is(error, libc::EFAULT) || self.stress.options.injections,
                "memory of our own that nobody has freed was refused with EFAULT"
            );
        }
        self.registered(index, result)
    }

    fn registered(&mut self, index: usize, result: io::Result<Mr>) -> Result<()> {
        match result {
            Ok(region) => {
                self.count(Count::Registered);
                self.plots[index].regions.push(region);
                Ok(())
            }
            Err(error) => {
                self.stress.tally.error(&error);
                match is_honest(&error) {
                    true => Ok(()),
                    false => Err(error).context("ibv_reg_mr() ended with what is no honest answer"),
                }
            }
        }
    }

    /// More than was allocated: must fail, whatever lies behind it.
    fn register_too_long(&mut self, index: usize) -> Result<()> {
        let range = self.plots[index].range_too_long(&mut self.random);
        let result = self.worker.register(range, ALL);
        ensure!(result.is_err(), "more memory was registered than had been allocated");
        self.registered(index, result)
    }

    fn register_while_freeing(&mut self, index: usize) -> Result<()> {
        self.check_words(index)?;
        let range = self.plots[index].range(&mut self.random);
        let access = self.some_access();
        // The address range stays: it must not become another thread's.
        let worker = self.worker;
        let result = self.while_freeing(index, FreeBy::Ioctl, || worker.register(range, access))?;
        self.count(Count::FreedWhileRegistering);
        self.registered(index, result)
    }

    /// Does `act` while another thread frees the memory.
    fn while_freeing<T>(&mut self, index: usize, by: FreeBy, act: impl FnOnce() -> T) -> Result<T> {
        let plot = &mut self.plots[index];
        let (result, freed) = thread::scope(|scope| {
            let free = scope.spawn(|| plot.free(by));
            (act(), free.join())
        });
        self.freed(freed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))?;
        Ok(result)
    }

    /// The answer to a free by ioctl or munmap.
    fn freed(&self, result: io::Result<()>) -> Result<()> {
        match result {
            Err(error) if is(&error, libc::EINVAL) && self.stress.options.injections => {
                self.count(Count::TakenByDriver);
                Ok(())
            }
            result => result.context("freeing GPU memory"),
        }
    }

    /// A region taken out of its piece of memory, and the index of that.
    fn take_region(&mut self) -> Option<(usize, Mr)> {
        let with: Vec<usize> =
            (0..self.plots.len()).filter(|index| !self.plots[*index].regions.is_empty()).collect();
        if with.is_empty() {
            return None;
        }
        let index = with[self.random.index(with.len())];
        let regions = &mut self.plots[index].regions;
        let region = regions.swap_remove(self.random.index(regions.len()));
        Some((index, region))
    }

    fn deregister(&mut self, index: usize, region: Mr) -> Result<()> {
        self.check_words(index)?;
        self.deregistered(index, self.worker.deregister(region))
    }

    /// Memory that was freed goes when its last registration has.
    fn deregistered(&mut self, index: usize, result: io::Result<()>) -> Result<()> {
        result.context("ibv_dereg_mr()")?;
        self.count(Count::Deregistered);
        self.drop_if_done(index);
        Ok(())
    }

    fn drop_if_done(&mut self, index: usize) {
        if self.plots[index].freed && self.plots[index].regions.is_empty() {
            self.plots.swap_remove(index);
        }
    }

    fn deregister_while_freeing(&mut self, index: usize, region: Mr) -> Result<()> {
        if self.plots[index].freed {
            self.plots[index].regions.push(region);
            return Ok(());
        }
        self.check_words(index)?;
        let (by, worker) = (self.some_way(), self.worker);
        let result = self.while_freeing(index, by, || worker.deregister(region))?;
        self.count(Count::FreedWhileDeregistering);
        self.deregistered(index, result)
    }

    fn some_way(&mut self) -> FreeBy {
        match self.random.one_in(2) {
            true => FreeBy::Ioctl,
            false => FreeBy::Munmap,
        }
    }

    /// Frees memory that may be registered.
    fn free(&mut self) -> Result<()> {
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
            self.count(Count::FreedUnder);
        }
        self.drop_if_done(index);
        Ok(())
    }

    /// Nobody but us writes into our memory.
    fn check_words(&self, index: usize) -> Result<()> {
        let plot = &self.plots[index];
        if plot.freed {
            return Ok(());
        }
        match plot.words().context("reading GPU memory")? {
            Words::Overwritten => bail!("somebody has written into memory of our own"),
            Words::Gone if !self.stress.options.injections => {
                bail!("memory of our own that nobody has freed is gone")
            }
            _ => Ok(()),
        }
    }

    fn transfer(&mut self, from: usize, source: Mr) -> Result<()> {
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

    fn transfer_between(&mut self, from: usize, source: &Mr, to: usize, target: &Mr) -> Result<()> {
        if source.range.length.max(target.range.length) > LONGEST_TRANSFER {
            return Ok(());
        }
        self.check_words(to)?;
        // A write or a read.
        let operation = OPERATIONS[self.random.index(2)];
        let pair = match self.pair.take() {
            Some(pair) => pair,
            None => {
                let _shared = self.worker.numbers.read();
                Pair::connect(&self.worker.pd, &self.stress.port)?
            }
        };
        let outcome = pair.run(operation, source, target)?;
        self.count(Count::Transfers);
        if outcome.is_success() {
            self.pair = Some(pair);
            let freed = self.plots[from].freed || self.plots[to].freed;
            ensure!(
                !freed || self.stress.options.expect == Expected::Pinned,
                "a {operation} has reached memory that had been freed"
            );
        } else if outcome.is_refusal() {
            self.count(Count::TransfersRefused);
        } else {
            self.count(Count::TransfersUnanswered);
        }
        // What arrived, whole or in part, was ours to send.
        let plot = &mut self.plots[to];
        match plot.freed {
            true => Ok(()),
            false => plot.mark().context("writing GPU memory"),
        }
    }

    /// A child, which has every descriptor of ours, deregisters our region, and
    /// so do we: before, at the same time or afterwards.
    fn fork_to_deregister(&mut self, index: usize, mut region: Mr) -> Result<()> {
        self.check_words(index)?;
        let worker = self.worker;
        let alone = worker.numbers.write();
        let child = process::fork(|| exit_status(region.try_deregister()))?;
        self.count(Count::Forks);
        let (theirs, ours) = match self.random.below(4) {
            0 => (wait(child)?, region.deregister()),
            1 => {
                self.kill(child)?;
                (wait(child)?, region.deregister())
            }
            2 => {
                let ours = region.deregister();
                (wait(child)?, ours)
            }
            _ => {
                if !self.plots[index].freed {
                    let freed = self.plots[index].free(FreeBy::Ioctl);
                    self.freed(freed)?;
                }
                (wait(child)?, region.deregister())
            }
        };
        drop(alone);
        self.deregistered_by_two(index, theirs, ours)
    }

    /// Exactly one of two must have succeeded. A child that was killed may have
    /// done so before that.
    fn deregistered_by_two(
        &mut self,
        index: usize,
        theirs: Option<i32>,
        ours: io::Result<()>,
    ) -> Result<()> {
        match (theirs, ours) {
            (Some(0) | None, Err(error)) if error.raw_os_error().is_some_and(is_second) => {
                self.count(Count::DeregisteredByChild);
                self.drop_if_done(index);
                Ok(())
            }
            (Some(0), Ok(())) => bail!("a region was deregistered twice"),
            (Some(status), Ok(())) if !is_second(status) => {
                bail!("ibv_dereg_mr() in a child ended with errno {status}")
            }
            (theirs, ours) => self
                .deregistered(index, ours)
                .with_context(|| format!("after a child's, which ended with {theirs:?}")),
        }
    }

    fn kill(&self, child: Pid) -> Result<()> {
        kill(child, Signal::SIGKILL).context("killing a child")?;
        self.count(Count::ChildrenKilled);
        Ok(())
    }

    /// A child that only has our descriptors, and may outlive us.
    fn fork_to_sit(&mut self) -> Result<()> {
        let time = Duration::from_millis(self.random.below(LONGEST_SIT));
        let child = process::fork(|| {
            thread::sleep(time);
            0
        })?;
        self.count(Count::Forks);
        self.sitting.push(child);
        if self.sitting.len() > 2 {
            let child = self.sitting.remove(0);
            if self.random.one_in(2) {
                self.kill(child)?;
            }
            wait(child)?;
        }
        Ok(())
    }

    /// Gives the device's descriptor to whoever takes it.
    fn pass(&mut self) -> Result<()> {
        match process::send_fd(&self.stress.outbox, self.worker.pd.device.command_fd()) {
            Ok(()) => self.count(Count::DescriptorsPassed),
            // Enough are on their way.
            Err(Errno::EAGAIN) => {}
            Err(error) => return Err(error).context("passing a descriptor"),
        }
        Ok(())
    }

    /// Takes the descriptor of another, or of ourselves, and lets go of one:
    /// perhaps the last of that device's.
    fn take(&mut self) -> Result<()> {
        match process::receive_fd(&self.stress.inbox) {
            Ok(descriptor) => self.foreign.push(descriptor),
            Err(Errno::EAGAIN) => {}
            Err(error) => return Err(error).context("taking a descriptor"),
        }
        if self.foreign.len() > self.random.index(3) {
            drop(self.foreign.remove(0));
            self.count(Count::DescriptorsClosedElsewhere);
        }
        Ok(())
    }

    /// Ends the process as it is.
    fn abandon(&mut self) -> Result<()> {
        self.count(Count::ExitsWithoutCleaning);
        process::exit(0)
    }

    /// The orderly end, or half of it.
    fn leave(&mut self) -> Result<()> {
        if self.random.one_in(4) {
            self.abandon()?;
        }
        for child in std::mem::take(&mut self.sitting) {
            wait(child)?;
        }
        while !self.plots.is_empty() {
            if self.random.one_in(2) {
                self.free()?;
            } else {
                self.act(&Action::Region(Self::deregister))?;
                // Memory without registrations is no use to anybody now.
                self.plots.retain(|plot| !plot.regions.is_empty());
            }
        }
        Ok(())
    }
}

/// For a child's exit status: 0 or the error number.
fn exit_status(result: io::Result<()>) -> u8 {
    match result {
        Ok(()) => 0,
        Err(error) => {
            error.raw_os_error().and_then(|number| u8::try_from(number).ok()).unwrap_or(u8::MAX)
        }
    }
}

/// What the kernel says to whoever comes second, or at the same time.
pub fn is_second(errno: i32) -> bool {
    [libc::ENOENT, libc::EBUSY].contains(&errno)
}

/// A child's exit status; `None` if it was killed.
fn wait(child: Pid) -> Result<Option<i32>> {
    match waitpid(child, None).context("waiting for a child")? {
        WaitStatus::Exited(_, status) => Ok(Some(status)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_say_how_it_went() {
        assert_eq!(exit_status(Ok(())), 0);
        let error = |number| Err(io::Error::from_raw_os_error(number));
        assert_eq!(exit_status(error(libc::ENOENT)), libc::ENOENT as u8);
        assert_eq!(exit_status(error(524)), u8::MAX);
    }
}
