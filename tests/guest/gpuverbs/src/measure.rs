// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What registrations of one size cost, as the members of a JSON object. They go
//! through the RDMA core's use of memory without a device: one registration for
//! each time that its file is open (`peer_consumer.c` of the lab's core).

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, Write};
use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use anyhow::{bail, Context, Result};

use crate::gpu::{FreeBy, Gpu, GpuMemory};
use crate::sys;
use crate::value::{hold, line, size};

const CONSUMER: &str = "/sys/kernel/debug/peer_mem_lab/umem";
const CORE: &str = "/sys/kernel/debug/peer_mem_lab/clocks";
const DRIVER: &str = "/sys/kernel/debug/nvidia_lab/clocks";

/// The core's calls into a client. Others on its clock are not, or are inside
/// of the driver's callback.
#[rustfmt::skip]
const CLIENT_CALLS: [&str; 7] = [
    "acquire", "get_pages", "dma_map", "get_page_size", "dma_unmap", "put_pages", "release",
];

/// Registers GPU memory without bytes behind it, and says what that cost
#[derive(clap::Args)]
pub struct Measure {
    /// How much to register
    #[arg(long, value_parser = size)]
    length: u64,
    /// Measures N times and takes the least of each figure
    #[arg(long, default_value_t = 1)]
    times: u64,
    /// Frees the memory while it is registered
    #[arg(long)]
    free: bool,
    /// So many at once, each its own memory; with --cycles
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Registers and deregisters N times in each thread
    #[arg(long)]
    cycles: Option<u64>,
    /// Registers, with --times so many at once, and waits for a line of input before the end
    #[arg(long)]
    hold: bool,
    /// Whether the device could give the memory up
    #[arg(long, value_enum, default_value = "revocable")]
    way: Way,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Way {
    /// As for memory regions
    Revocable,
    /// As for what the hardware owns: queues, doorbells
    Fixed,
}

/// Figures by their names, in the order in which they are said.
type Figures = Vec<(String, u64)>;

/// A piece of memory, and a file of the core's to register it with.
struct Subject {
    memory: GpuMemory,
    file: File,
    /// The registration's words: address, length and way.
    words: String,
}

impl Measure {
    pub fn run(self) -> Result<()> {
        let gpu = Gpu::open()?;
        if self.hold {
            let mut subjects = Vec::new();
            for _ in 0..self.times {
                let mut subject = self.subject(&gpu)?;
                subject.register()?;
                subjects.push(subject);
            }
            hold();
            return subjects.iter_mut().try_for_each(Subject::deregister);
        }
        if let Some(cycles) = self.cycles {
            return self.together(&gpu, cycles);
        }
        let measured = || {
            if self.free {
                freed(self.subject(&gpu)?)
            } else {
                costs(self.subject(&gpu)?)
            }
        };
        // What the kernel does beside, an interrupt or a new slab, only adds.
        let mut least = measured()?;
        for _ in 1..self.times {
            for (figure, (_, again)) in least.iter_mut().zip(measured()?) {
                figure.1 = figure.1.min(again);
            }
        }
        say(&least);
        Ok(())
    }

    /// At an address that suits pages of up to 2 MiB, as those of a GPU's large
    /// allocations do.
    fn subject(&self, gpu: &Gpu) -> Result<Subject> {
        let file = File::options().read(true).write(true).open(CONSUMER);
        let file = file.with_context(|| format!("not the lab's RDMA core: opening {CONSUMER}"))?;
        let memory = gpu
            .allocate(sys::LAB_GPU_UNBACKED, self.length.max(2 << 20))
            .context("allocating GPU memory without bytes behind it")?;
        let addr = memory.range(0, self.length).addr;
        let words = format!("{addr} {} {:?}", self.length, self.way).to_lowercase();
        Ok(Subject { memory, file, words })
    }

    /// Several threads at once.
    fn together(&self, gpu: &Gpu, cycles: u64) -> Result<()> {
        // All are ready before the clock starts, and none begins before it does.
        let (ready, start) = (Barrier::new(self.threads + 1), Barrier::new(self.threads + 1));
        let (elapsed, spent) = thread::scope(|scope| {
            let work = || {
                let subject = self.subject(gpu);
                ready.wait();
                start.wait();
                let mut subject = subject?;
                let order = format!("repeat {} {cycles}", subject.words);
                subject.command(&order)
            };
            let workers: Vec<_> = (0..self.threads).map(|_| scope.spawn(work)).collect();
            ready.wait();
            let (before, began) = (Clocks::read(), Instant::now());
            start.wait();
            for worker in workers {
                worker.join().unwrap_or_else(|_| bail!("a thread panicked"))?;
            }
            let elapsed = began.elapsed();
            anyhow::Ok((elapsed, Clocks::read()?.since(&before?)))
        })?;
        say(&[
            ("threads".into(), self.threads as u64),
            ("registrations".into(), self.threads as u64 * cycles),
            ("elapsed".into(), elapsed.as_nanos() as u64),
            ("module_ticks".into(), spent.module()),
            ("driver_ticks".into(), spent.in_driver()),
        ]);
        Ok(())
    }
}

impl Subject {
    fn register(&mut self) -> Result<()> {
        self.command(&format!("register {}", self.words))
    }

    fn deregister(&mut self) -> Result<()> {
        self.command("deregister")
    }

    fn command(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).with_context(|| text.to_owned())
    }

    /// What came of the registration.
    fn outcome(&mut self) -> Result<BTreeMap<String, u64>> {
        let mut text = String::new();
        self.file.rewind()?;
        self.file.read_to_string(&mut text)?;
        let figures = text.lines().map(|line| {
            let (name, number) = line.split_once(' ')?;
            Some((name.to_owned(), number.parse().ok()?))
        });
        figures.collect::<Option<_>>().with_context(|| format!("not an outcome: {text}"))
    }
}

/// Of one registration and its end.
fn costs(mut subject: Subject) -> Result<Figures> {
    let before = Clocks::read()?;
    subject.register()?;
    let between = Clocks::read()?;
    subject.deregister()?;
    let after = Clocks::read()?;
    let outcome = subject.outcome()?;
    let figure = |name: &str, key: &str| (name.to_owned(), outcome.get(key).copied().unwrap_or(0));
    let mut figures = vec![
        figure("entries", "entries"),
        figure("page_size", "page_size"),
        figure("register_total", "register_ticks"),
        figure("deregister_total", "deregister_ticks"),
    ];
    for (name, spent) in
        [("register", between.since(&before)), ("deregister", after.since(&between))]
    {
        figures.push((format!("{name}_module"), spent.module()));
        figures.push((format!("{name}_driver"), spent.in_driver()));
    }
    for (name, clock) in after.since(&before).driver_calls().filter(|(_, clock)| clock.calls > 0) {
        figures.push((format!("calls_{name}"), clock.calls));
    }
    Ok(figures)
}

/// Of a registration whose memory is freed.
fn freed(mut subject: Subject) -> Result<Figures> {
    subject.register()?;
    let before = Clocks::read()?;
    subject.memory.free(FreeBy::Ioctl).context("freeing GPU memory")?;
    let spent = Clocks::read()?.since(&before);
    let revoked = subject.outcome()?.get("revoked").copied().unwrap_or_default();
    subject.deregister()?;
    let in_callback = ticks(&spent.driver, FREE_CALLS[0]);
    Ok(vec![
        ("revoked".to_owned(), revoked.min(1)),
        ("free_total".to_owned(), ticks(&spent.driver, FREE_CALLS[1])),
        ("revoke_module".to_owned(), in_callback.saturating_sub(ticks(&spent.core, "invalidate"))),
    ])
}

fn say(figures: &[(String, u64)]) {
    let words: Vec<String> =
        figures.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    line(words.join(","));
}

#[derive(Clone, Copy, Default)]
struct Clock {
    calls: u64,
    ticks: u64,
}

type ByName = BTreeMap<String, Clock>;

/// What the driver has on its clock that is none of the client's calls: its free
/// callback, and all that it does to free memory, the callback included.
const FREE_CALLS: [&str; 2] = ["free_callback", "free_memory"];

/// What the lab's RDMA core and driver have on their clocks, at one moment or
/// between two: how often each call was made, and for how long.
struct Clocks {
    core: ByName,
    driver: ByName,
}

impl Clocks {
    fn read() -> Result<Self> {
        Ok(Self { core: read(CORE)?, driver: read(DRIVER)? })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            core: difference(&self.core, &before.core),
            driver: difference(&self.driver, &before.driver),
        }
    }

    fn driver_calls(&self) -> impl Iterator<Item = (&String, &Clock)> {
        self.driver.iter().filter(|(name, _)| !FREE_CALLS.contains(&name.as_str()))
    }

    /// In the driver's calls.
    fn in_driver(&self) -> u64 {
        self.driver_calls().map(|(_, clock)| clock.ticks).sum()
    }

    /// In the client alone: without the driver's calls that it made.
    fn module(&self) -> u64 {
        let in_client: u64 = CLIENT_CALLS.iter().map(|name| ticks(&self.core, name)).sum();
        in_client.saturating_sub(self.in_driver())
    }
}

fn ticks(clocks: &ByName, name: &str) -> u64 {
    clocks.get(name).map_or(0, |clock| clock.ticks)
}

fn difference(now: &ByName, then: &ByName) -> ByName {
    let since = |(name, clock): (&String, &Clock)| {
        let before = then.get(name).copied().unwrap_or_default();
        let calls = clock.calls.wrapping_sub(before.calls);
        let ticks = clock.ticks.wrapping_sub(before.ticks);
        (name.clone(), Clock { calls, ticks })
    };
    now.iter().map(since).collect()
}

/// Lines "name calls ticks".
fn read(path: &str) -> Result<ByName> {
    let parse = |line: &str| {
        let mut words = line.split(' ');
        let name = words.next()?.to_owned();
        let mut number = || words.next()?.parse().ok();
        Some((name, Clock { calls: number()?, ticks: number()? }))
    };
    fs::read_to_string(path)
        .and_then(|text| {
            text.lines().map(parse).collect::<Option<_>>().ok_or(io::ErrorKind::InvalidData.into())
        })
        .with_context(|| format!("reading the lab's clocks in {path}"))
}
