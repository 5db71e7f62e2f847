// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A worker is a process of a stress run. It opens an RDMA device, and its threads allocate,
//! register, transfer, free and deregister memory in random order.

use std::io;
use std::sync::RwLock;
use std::thread;
use std::time::Duration;

use anyhow::{bail, ensure, Context, Result};
use nix::sys::signal::{kill, Signal};
use nix::sys::wait::{waitpid, WaitStatus};
use nix::unistd::Pid;

use crate::gpu::{FreeBy, Gpu, GpuMemory, Range, GPU_PAGE};
use crate::pattern::Random;
use crate::process;
use crate::stress::{Count, Stress};
use crate::sys::LAB_GPU_ANYWHERE;
use crate::transfer::Expected;
use crate::verbs::{Access, Hca, Mr, Pair, ACCESS, ALL, OPERATIONS};

/// A thread has at most PLOTS pieces of memory at the same time, and at most REGIONS registrations
/// of each piece. The kernel's DMA-API debug warns about more than 7 mappings of the same memory.
const PLOTS: usize = 4;
const REGIONS: usize = 6;

/// The size of the largest piece. It has more pages than one chunk of the kernel's scatterlists has
/// entries.
const LARGEST: u64 = 160 * GPU_PAGE;

/// The length of the longest transfer. Longer transfers would take too long on an emulated machine.
const LONGEST_TRANSFER: u64 = 128 * 1024;

/// The longest time for which a child keeps the inherited descriptor open, in milliseconds.
const LONGEST_SIT: u64 = 30;

/// A piece of GPU memory with its registrations. The thread writes a word into each of the first
/// pages. If another process writes to the memory, the thread finds that a word has changed.
struct Plot {
    memory: GpuMemory,
    regions: Vec<Mr>,
    /// Whether this process has freed the memory.
    freed: bool,
    word: [u8; 8],
}

impl Plot {
    fn new(gpu: Gpu, offset: u64, size: u64, word: u64) -> io::Result<Self> {
        let memory = gpu.allocate(offset, size)?;
        let mut plot = Self { memory, regions: Vec::new(), freed: false, word: word.to_ne_bytes() };
        plot.mark()?;
        Ok(plot)
    }

    fn guarded(&self) -> impl Iterator<Item = u64> {
        (0..self.memory.size).step_by(GPU_PAGE as usize).take(4)
    }

    /// Writes the words. If the driver has taken the memory away, writes nothing and returns
    /// success.
    fn mark(&mut self) -> io::Result<()> {
        let marked = self.guarded().try_for_each(|at| self.memory.write(at, &self.word));
        marked.or_else(|error| if is(&error, libc::EFAULT) { Ok(()) } else { Err(error) })
    }

    /// Returns whether the words are unchanged, or `EFAULT` if the driver has taken the memory
    /// away.
    fn is_intact(&self) -> io::Result<bool> {
        for at in self.guarded() {
            if self.memory.read(at, 8)? != self.word {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns a random range of the memory.
    fn range(&self, random: &mut Random) -> Range {
        let mut start = random.below(self.memory.size);
        if random.one_in(2) {
            start -= start % GPU_PAGE;
        }
        // At least half of all ranges are short.
        let room = self.memory.size - start;
        let longest = if random.one_in(2) { room } else { room.min(70_000) };
        self.memory.range(start, 1 + random.below(longest))
    }

    /// Tells whether no memory and no registration is left.
    fn is_done(&self) -> bool {
        self.freed && self.regions.is_empty()
    }

    /// Frees the memory. Returns an error if the driver has already taken the memory away.
    fn free(&mut self, by: FreeBy) -> io::Result<()> {
        self.freed = true;
        self.memory.free(by)
    }
}

fn is(error: &io::Error, number: i32) -> bool {
    error.raw_os_error() == Some(number)
}

/// The data that the threads of a process share.
struct Worker {
    hca: Hca,
    /// If a thread lets two processes deregister one region, it holds the write lock. In the
    /// meantime other threads make no objects, because the kernel could give such an object the
    /// region's number.
    numbers: RwLock<()>,
}

impl Worker {
    fn register(&self, range: Range, access: Access) -> io::Result<Mr> {
        let _shared = self.numbers.read();
        self.hca.register(range, access)
    }

    fn deregister(&self, region: Mr) -> io::Result<()> {
        let _shared = self.numbers.read();
        region.deregister()
    }
}

/// Runs the process until all processes together have tried `until` registrations. Returns the exit
/// status.
pub fn run(stress: &'static Stress, number: u64, until: u64) -> u8 {
    let work = || {
        let worker = Worker { hca: Hca::open()?, numbers: RwLock::new(()) };
        let worker: &'static Worker = Box::leak(Box::new(worker));
        let threads = [0, 1].map(|index| {
            let random = Random::stream(stress.options.seed, number * 2 + index);
            let (plots, sitting) = (Vec::new(), Vec::new());
            let thread = Thread { worker, stress, until, random, plots, pair: None, sitting };
            thread::spawn(|| thread.run())
        });
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked")))
    };
    let result = work();
    if let Err(error) = &result {
        stress.defect(format_args!("{error:#}"));
    }
    u8::from(result.is_err())
}

struct Thread {
    worker: &'static Worker,
    stress: &'static Stress,
    until: u64,
    random: Random,
    plots: Vec<Plot>,
    pair: Option<Pair>,
    sitting: Vec<Pid>,
}

/// An action of a thread. If an action needs an object and there is no such object, the action does
/// nothing.
type Action = fn(&mut Thread) -> Result<()>;
const ACTIONS: [(u64, Action); 9] = [
    (120, Thread::allocate),
    (720, Thread::register),
    (30, Thread::register_while_freeing),
    (480, Thread::deregister),
    (40, Thread::deregister_while_freeing),
    (60, Thread::free),
    (15, Thread::transfer),
    (6, Thread::fork_to_deregister),
    (3, Thread::fork_to_sit),
];

impl Thread {
    fn run(mut self) -> Result<()> {
        while !self.stress.is_over(self.until) {
            self.random.weighted(&ACTIONS)(&mut self)?;
            let done = self.plots.iter().any(Plot::is_done);
            ensure!(!done, "a piece of memory stays that is no use to anybody");
        }
        for child in std::mem::take(&mut self.sitting) {
            wait(child)?;
        }
        while !self.plots.is_empty() {
            if self.random.one_in(2) {
                self.free()?;
            } else {
                self.deregister()?;
                // Drops the pieces of memory that have no registration. From now on only
                // registrations are ended, so the other pieces are still needed.
                self.plots.retain(|plot| !plot.regions.is_empty());
            }
        }
        Ok(())
    }

    fn allocate(&mut self) -> Result<()> {
        if self.plots.len() == PLOTS {
            return Ok(());
        }
        let pages = *self.random.weighted(&[(85, 4), (13, 24), (2, LARGEST / GPU_PAGE)]);
        let size = (1 + self.random.below(pages)) * GPU_PAGE;
        // The driver chooses the place. Usually it chooses memory that another thread has just
        // freed.
        match Plot::new(self.stress.gpu, LAB_GPU_ANYWHERE, size, self.random.word()) {
            Ok(plot) => self.plots.push(plot),
            // There may be no free memory, because freed memory stays occupied as long as it is
            // pinned.
            Err(error) if is(&error, libc::EBUSY) => {}
            Err(error) => return Err(error).context("allocating GPU memory"),
        }
        Ok(())
    }

    /// Returns the index of a piece to register. Returns [`None`] if there is no such piece, or if
    /// no registration is left to try. A freed piece is not returned, because its addresses may
    /// belong to other memory.
    fn some_plot(&mut self) -> Option<usize> {
        if self.plots.is_empty() {
            return None;
        }
        let index = self.random.index(self.plots.len());
        let plot = &self.plots[index];
        let may = plot.regions.len() < REGIONS && !plot.freed;
        (may && self.stress.claim(self.until)).then_some(index)
    }

    /// Returns random rights. The rights that transfers need are more frequent than others.
    fn some_access(&mut self) -> Access {
        [ALL, ACCESS[self.random.index(ACCESS.len())]][self.random.index(2)]
    }

    fn some_way(&mut self) -> FreeBy {
        [FreeBy::Ioctl, FreeBy::Munmap][self.random.index(2)]
    }

    fn register(&mut self) -> Result<()> {
        let Some(index) = self.some_plot() else { return Ok(()) };
        let range = self.plots[index].range(&mut self.random);
        let result = self.worker.register(range, self.some_access());
        let refused = result.as_ref().is_err_and(|error| is(error, libc::EFAULT));
        ensure!(
            !refused || self.stress.options.injections,
            "memory of our own that nobody has freed was refused with EFAULT"
        );
        self.registered(index, result)
    }

    /// Stores the region of a successful registration. The registration may fail because the memory
    /// was taken away, or because the kernel or the GPU lacked memory. Other errors are defects.
    fn registered(&mut self, index: usize, result: io::Result<Mr>) -> Result<()> {
        match result {
            Ok(region) => {
                self.stress.count(Count::Registered);
                self.plots[index].regions.push(region);
                Ok(())
            }
            Err(error) if is(&error, libc::EFAULT) || is(&error, libc::ENOMEM) => {
                self.drop_if_done(index);
                Ok(())
            }
            Err(error) => Err(error).context("ibv_reg_mr() ended with what is no honest answer"),
        }
    }

    fn register_while_freeing(&mut self) -> Result<()> {
        let Some(index) = self.some_plot() else { return Ok(()) };
        self.check_words(index)?;
        let range = self.plots[index].range(&mut self.random);
        let (access, worker) = (self.some_access(), self.worker);
        // The ioctl is used because it keeps the address range, so that no other thread can get the
        // same range.
        let result = self.while_freeing(index, FreeBy::Ioctl, || worker.register(range, access))?;
        self.stress.count(Count::FreedWhileRegistering);
        self.registered(index, result)
    }

    /// Runs `act` while another thread frees the memory.
    fn while_freeing<T>(&mut self, index: usize, by: FreeBy, act: impl FnOnce() -> T) -> Result<T> {
        let plot = &mut self.plots[index];
        let (result, freed) = thread::scope(|scope| {
            let free = scope.spawn(|| plot.free(by));
            (act(), free.join())
        });
        self.freed(freed.unwrap_or_else(|_| Err(io::ErrorKind::Other.into())))?;
        Ok(result)
    }

    /// Checks the result of freeing memory. With injections, freeing may fail, because the driver
    /// may have taken the memory away before.
    fn freed(&self, result: io::Result<()>) -> Result<()> {
        match result {
            Err(error) if is(&error, libc::EINVAL) && self.stress.options.injections => Ok(()),
            result => result.context("freeing GPU memory"),
        }
    }

    /// Takes a region out of its piece of memory. Returns the index of the piece and the region.
    fn take_region(&mut self) -> Result<Option<(usize, Mr)>> {
        let with: Vec<usize> =
            (0..self.plots.len()).filter(|index| !self.plots[*index].regions.is_empty()).collect();
        if with.is_empty() {
            return Ok(None);
        }
        let index = with[self.random.index(with.len())];
        self.check_words(index)?;
        let regions = &mut self.plots[index].regions;
        let region = regions.swap_remove(self.random.index(regions.len()));
        Ok(Some((index, region)))
    }

    fn deregister(&mut self) -> Result<()> {
        let Some((index, region)) = self.take_region()? else { return Ok(()) };
        self.deregistered(index, self.worker.deregister(region))
    }

    /// Checks the result of a deregistration. If the piece of memory was freed, and this was its
    /// last registration, drops the piece.
    fn deregistered(&mut self, index: usize, result: io::Result<()>) -> Result<()> {
        result.context("ibv_dereg_mr()")?;
        self.drop_if_done(index);
        Ok(())
    }

    fn drop_if_done(&mut self, index: usize) {
        if self.plots[index].is_done() {
            self.plots.swap_remove(index);
        }
    }

    fn deregister_while_freeing(&mut self) -> Result<()> {
        let Some((index, region)) = self.take_region()? else { return Ok(()) };
        if self.plots[index].freed {
            self.plots[index].regions.push(region);
            return Ok(());
        }
        let (by, worker) = (self.some_way(), self.worker);
        let result = self.while_freeing(index, by, || worker.deregister(region))?;
        self.stress.count(Count::FreedWhileDeregistering);
        self.deregistered(index, result)
    }

    /// Frees a piece of memory, even if it is registered.
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
            self.stress.count(Count::FreedUnder);
        }
        self.drop_if_done(index);
        Ok(())
    }

    /// Checks that no other process has written into the memory.
    fn check_words(&self, index: usize) -> Result<()> {
        let plot = &self.plots[index];
        if plot.freed {
            return Ok(());
        }
        match plot.is_intact() {
            Err(error) if is(&error, libc::EFAULT) && self.stress.options.injections => {}
            intact => ensure!(
                intact.context("looking at memory of our own that nobody has freed")?,
                "somebody has written into memory of our own"
            ),
        }
        Ok(())
    }

    fn transfer(&mut self) -> Result<()> {
        let Some((from, source)) = self.take_region()? else { return Ok(()) };
        let mut done = Ok(());
        if let Some((to, target)) = self.take_region()? {
            if source.range.length.max(target.range.length) <= LONGEST_TRANSFER {
                done = self.transfer_between(from, &source, to, &target);
            }
            self.plots[to].regions.push(target);
        }
        self.plots[from].regions.push(source);
        done
    }

    fn transfer_between(&mut self, from: usize, source: &Mr, to: usize, target: &Mr) -> Result<()> {
        // The first two operations are write and read.
        let operation = OPERATIONS[self.random.index(2)];
        let pair = match self.pair.take() {
            Some(pair) => pair,
            None => {
                let _shared = self.worker.numbers.read();
                Pair::connect(&self.worker.hca)?
            }
        };
        self.stress.count(Count::Transfers);
        // A pair cannot be used after a refused operation, so the pair is kept only after a
        // success.
        if pair.run(operation, source, target)?.is_success() {
            self.pair = Some(pair);
            let freed = self.plots[from].freed || self.plots[to].freed;
            ensure!(
                !freed || self.stress.options.expect == Expected::Pinned,
                "{operation:?} has reached memory that had been freed"
            );
        }
        // The transfer may have overwritten the words of the target, so this code writes them
        // again.
        if self.plots[to].freed {
            return Ok(());
        }
        self.plots[to].mark().context("writing GPU memory")
    }

    /// Starts a child, which inherits every descriptor of this process. Both processes deregister
    /// the same region, one after the other or at the same time.
    fn fork_to_deregister(&mut self) -> Result<()> {
        let Some((index, mut region)) = self.take_region()? else { return Ok(()) };
        let worker = self.worker;
        let alone = worker.numbers.write();
        let child = process::fork(|| match region.try_deregister() {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().map_or(u8::MAX, |n| n.try_into().unwrap_or(u8::MAX)),
        })?;
        self.stress.count(Count::Forks);
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
        // Exactly one of the two processes must have succeeded. If the child was killed, its result
        // is not known.
        match (theirs, ours) {
            (Some(0) | None, Err(error)) if error.raw_os_error().is_some_and(is_second) => {
                self.stress.count(Count::DeregisteredByChild);
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
        self.stress.count(Count::ChildrenKilled);
        Ok(())
    }

    /// Starts a child that only keeps the inherited descriptors open. The child may live longer
    /// than this process.
    fn fork_to_sit(&mut self) -> Result<()> {
        let time = Duration::from_millis(self.random.below(LONGEST_SIT));
        let child = process::fork(|| {
            thread::sleep(time);
            0
        })?;
        self.stress.count(Count::Forks);
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
}

/// Tells whether the kernel returns this error because another process has deregistered the region,
/// or is just deregistering it.
pub fn is_second(errno: i32) -> bool {
    [libc::ENOENT, libc::EBUSY].contains(&errno)
}

/// Waits for a child. Returns its exit status, or `None` if the child was killed.
fn wait(child: Pid) -> Result<Option<i32>> {
    match waitpid(child, None).context("waiting for a child")? {
        WaitStatus::Exited(_, status) => Ok(Some(status)),
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::stand_in;

    #[test]
    fn words_tell_and_ranges_are_inside() {
        let mut plot = Plot::new(stand_in(2), 0, 2 * GPU_PAGE, 77).unwrap();
        assert!(plot.is_intact().unwrap());
        plot.memory.write(GPU_PAGE, &[0]).unwrap();
        assert!(!plot.is_intact().unwrap());
        let (mut random, first) = (Random::new(3), plot.memory.range(0, 0).addr);
        for _ in 0..1000 {
            let Range { addr, length } = plot.range(&mut random);
            assert!(length > 0 && addr >= first && addr + length <= first + 2 * GPU_PAGE);
        }
    }
}
