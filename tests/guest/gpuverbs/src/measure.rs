// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `measure`: what registrations of one size cost, as the members of a
//! JSON object.

use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Instant;

use crate::args::{usage, Args, Command, Opt};
use crate::clocks::{Clocks, Spent};
use crate::consumer::{Consumer, Outcome, Way};
use crate::failure::Failure;
use crate::gpu::{self, FreeBy, Gpu, GpuMemory};
use crate::output;
use crate::sys;

pub const COMMAND: Command = Command {
    name: "measure",
    summary: "Registers GPU memory without bytes behind it, and says what that cost",
    options: &[&[
        Opt::required("length", "SIZE", "how much to register"),
        Opt::optional(
            "times",
            "N",
            "measures N times and takes the least of each figure (default: 1)",
        ),
        Opt::flag("free", "frees the memory while it is registered"),
        Opt::optional(
            "threads",
            "N",
            "so many at once, each its own memory; with --cycles",
        ),
        Opt::optional(
            "cycles",
            "N",
            "registers and deregisters N times in each thread",
        ),
        Opt::flag(
            "hold",
            "registers once and waits for a line of input before the end",
        ),
        Opt::optional("way", "WAY", "revocable or fixed (default: revocable)"),
        gpu::OPTION,
    ]],
    run,
};

/// What to measure with.
struct Subject {
    gpu: Gpu,
    length: usize,
    way: Way,
}

impl Subject {
    /// At an address that suits pages of up to 2 MiB, as those of a GPU's large
    /// allocations do.
    fn allocate(&self) -> Result<GpuMemory, Failure> {
        self.gpu
            .allocate(sys::LAB_GPU_UNBACKED, self.length.max(2 << 20) as u64)
            .map_err(Failure::unmet(format_args!(
                "allocating {} bytes of GPU memory without bytes behind it",
                self.length
            )))
    }

    fn register(&self, consumer: &mut Consumer, memory: &GpuMemory) -> Result<(), Failure> {
        consumer
            .register(memory.range(0, self.length), self.way)
            .map_err(Failure::unmet("registering"))
    }
}

fn deregister(consumer: &mut Consumer) -> Result<(), Failure> {
    consumer
        .deregister()
        .map_err(Failure::unmet("deregistering"))
}

fn outcome(consumer: &mut Consumer) -> Result<Outcome, Failure> {
    consumer
        .outcome()
        .map_err(Failure::unmet("reading the outcome"))
}

fn run(args: &Args) -> Result<(), Failure> {
    let length =
        usize::try_from(args.required("length")?).map_err(|_| usage("--length is too large"))?;
    let times = args.number("times")?.unwrap_or(1).max(1);
    let threads = args.number("threads")?.unwrap_or(1);
    let subject = Subject {
        gpu: Gpu::open(args)?,
        length,
        way: args.choice("way", Way::CHOICES)?,
    };
    if args.flag("hold") {
        return hold(&subject);
    }
    if args.flag("free") {
        return least(times, || freed(&subject));
    }
    match args.number("cycles")? {
        Some(0) => Err(usage("--cycles must not be 0")),
        Some(cycles) => together(subject, threads, cycles),
        None => least(times, || registered(&subject)),
    }
}

/// A figure: its name and its value.
type Figures = Vec<(String, u64)>;

/// One registration and its end.
fn registered(subject: &Subject) -> Result<Figures, Failure> {
    let mut consumer = Consumer::open()?;
    let memory = subject.allocate()?;
    let before = Clocks::read()?;
    subject.register(&mut consumer, &memory)?;
    let between = Clocks::read()?;
    deregister(&mut consumer)?;
    let after = Clocks::read()?;
    let outcome = outcome(&mut consumer)?;
    let mut figures = vec![
        ("entries".to_owned(), outcome.entries),
        ("page_size".to_owned(), outcome.page_size),
        ("register_total".to_owned(), outcome.register_ticks),
        ("deregister_total".to_owned(), outcome.deregister_ticks),
    ];
    add(&mut figures, "register", &between.since(&before));
    add(&mut figures, "deregister", &after.since(&between));
    for (name, calls) in after.since(&before).calls {
        figures.push((format!("calls_{name}"), calls));
    }
    Ok(figures)
}

fn add(figures: &mut Figures, what: &str, spent: &Spent) {
    figures.push((format!("{what}_module"), spent.module));
    figures.push((format!("{what}_driver"), spent.driver));
}

/// A registration whose memory is freed.
fn freed(subject: &Subject) -> Result<Figures, Failure> {
    let mut consumer = Consumer::open()?;
    let mut memory = subject.allocate()?;
    subject.register(&mut consumer, &memory)?;
    let before = Clocks::read()?;
    memory
        .free(FreeBy::Ioctl)
        .map_err(Failure::unmet("freeing GPU memory"))?;
    let spent = Clocks::read()?.since(&before);
    let revoked = outcome(&mut consumer)?.revoked;
    deregister(&mut consumer)?;
    Ok(vec![
        ("revoked".to_owned(), revoked.into()),
        ("free_total".to_owned(), spent.free),
        (
            "revoke_module".to_owned(),
            spent.callback.saturating_sub(spent.invalidation),
        ),
    ])
}

/// The least of each figure, as one line: what the kernel does beside, an interrupt or a new slab,
/// only adds.
fn least(times: u64, measure: impl Fn() -> Result<Figures, Failure>) -> Result<(), Failure> {
    let runs = (0..times)
        .map(|_| measure())
        .collect::<Result<Vec<Figures>, Failure>>()?;
    let mut figures = Figures::new();
    for (index, (name, _)) in runs[0].iter().enumerate() {
        let values = runs
            .iter()
            .filter_map(|run| run.get(index))
            .map(|(_, value)| *value);
        figures.push((name.clone(), values.min().unwrap_or_default()));
    }
    say(&figures);
    Ok(())
}

/// Several threads at once.
fn together(subject: Subject, threads: u64, cycles: u64) -> Result<(), Failure> {
    let subject = Arc::new(subject);
    // All are ready before the clock starts, and none begins before it does.
    let ready = Arc::new(Barrier::new(threads as usize + 1));
    let start = Arc::new(Barrier::new(threads as usize + 1));
    let workers: Vec<_> = (0..threads)
        .map(|_| {
            let (ready, start) = (Arc::clone(&ready), Arc::clone(&start));
            let subject = Arc::clone(&subject);
            thread::spawn(move || -> Result<(), Failure> {
                let prepared =
                    Consumer::open().and_then(|consumer| Ok((consumer, subject.allocate()?)));
                ready.wait();
                start.wait();
                let (mut consumer, memory) = prepared?;
                consumer
                    .repeat(memory.range(0, subject.length), subject.way, cycles)
                    .map_err(Failure::unmet("registering and deregistering"))
            })
        })
        .collect();
    ready.wait();
    let before = Clocks::read()?;
    let began = Instant::now();
    start.wait();
    for worker in workers {
        worker
            .join()
            .map_err(|_| Failure::Unmet("a thread panicked".to_owned()))??;
    }
    let elapsed = began.elapsed();
    let spent = Clocks::read()?.since(&before);
    say(&[
        ("threads".to_owned(), threads),
        ("registrations".to_owned(), threads * cycles),
        (
            "elapsed".to_owned(),
            u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        ),
        ("module_ticks".to_owned(), spent.module),
        ("driver_ticks".to_owned(), spent.driver),
    ]);
    Ok(())
}

/// For somebody to look at what a registration holds.
fn hold(subject: &Subject) -> Result<(), Failure> {
    let mut consumer = Consumer::open()?;
    let memory = subject.allocate()?;
    subject.register(&mut consumer, &memory)?;
    output::hold();
    deregister(&mut consumer)
}

fn say(figures: &[(String, u64)]) {
    let words: Vec<String> = figures
        .iter()
        .map(|(name, value)| format!("\"{name}\":{value}"))
        .collect();
    output::line(words.join(","));
}
