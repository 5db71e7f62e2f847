// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `fail-allocations`: registrations during which the kernel runs out of memory, once at
//! its first allocation, once at its second, and so on until there is none left
//! to fail.

use std::io;
use std::sync::Arc;

use crate::args::{usage, Args, Command, Opt};
use crate::buffer::Place;
use crate::expect::{result_of, OK};
use crate::failure::Failure;
use crate::gpu::{FreeBy, GpuMemory, Range};
use crate::machine::{self, Machine};
use crate::output;
use crate::shortage::Shortage;
use crate::verbs::{Access, Mr, Pd};

pub const COMMAND: Command = Command {
    name: "fail-allocations",
    summary: "Registers GPU memory with one allocation after another failing in the kernel",
    options: &[
        &[
            Opt::required("offset", "OFFSET", "where in the BAR to allocate"),
            Opt::required("length", "SIZE", "how much to register"),
            Opt::optional(
                "during",
                "VERB",
                "register (the default) or deregister: what the kernel runs out of memory in",
            ),
            Opt::optional("from", "N", "begins with the N-th allocation (default: 1)"),
        ],
        machine::OPTIONS,
    ],
    run,
};

#[derive(Clone, Copy)]
enum During {
    Register,
    Deregister,
}

struct Hunger {
    pd: Arc<Pd>,
    memory: GpuMemory,
    range: Range,
    shortage: Shortage,
    during: During,
}

fn run(args: &Args) -> Result<(), Failure> {
    let place = Place::aligned(args.required("offset")?, 0, args.required("length")?)?;
    let length = usize::try_from(place.length).map_err(|_| usage("--length is too large"))?;
    let during = args.choice(
        "during",
        &[
            ("register", During::Register),
            ("deregister", During::Deregister),
        ],
    )?;
    let machine = Machine::open(args)?;
    let memory = machine
        .gpu
        .allocate(place.offset, place.length)
        .map_err(Failure::unmet("allocating GPU memory"))?;
    let mut hunger = Hunger {
        pd: Pd::allocate(&machine.device)?,
        range: memory.range(0, length),
        memory,
        shortage: Shortage::open().map_err(Failure::environment(
            "this needs a kernel with fault injection",
        ))?,
        during,
    };
    // What is allocated only the first time shall not be counted.
    hunger.registered()?.deregister().map_err(dereg_failed())?;

    let (mut survived, mut failed) = (0, 0);
    let mut nth = args.number("from")?.unwrap_or(1);
    loop {
        let (result, injected) = hunger.at(nth)?;
        hunger.nothing_pinned(nth)?;
        if !injected {
            break;
        }
        match result.as_str() {
            OK => survived += 1,
            "ENOMEM" => failed += 1,
            other => {
                return Err(Failure::Unmet(format!(
                    "without the {nth}th allocation it ended with {other}: see gpuverbs fail-allocations --from {nth}"
                )))
            }
        }
        nth += 1;
    }
    output::value("allocations", survived + failed);
    output::value("ended_with_ENOMEM", failed);
    output::value("did_without", survived);
    hunger
        .memory
        .free(FreeBy::Munmap)
        .map_err(Failure::unmet("munmap() of GPU memory"))
}

impl Hunger {
    fn registered(&self) -> Result<Mr, Failure> {
        self.pd
            .register(self.range, Access::ALL)
            .map_err(Failure::unmet("a registration with memory enough"))
    }

    /// What the verb ended with, and whether the kernel got as far as its
    /// `nth` allocation. No registration is left.
    fn at(&self, nth: u64) -> Result<(String, bool), Failure> {
        let set = || Failure::environment("fail-nth");
        match self.during {
            During::Register => {
                let register = || self.pd.register(self.range, Access::ALL);
                let (result, injected) = self.shortage.at(nth, register).map_err(set())?;
                let word = result_of(&result);
                if let Ok(region) = result {
                    region.deregister().map_err(dereg_failed())?;
                }
                Ok((word, injected))
            }
            During::Deregister => {
                let mut region = self.registered()?;
                let deregister = || region.try_deregister();
                let (result, injected) = self.shortage.at(nth, deregister).map_err(set())?;
                let word = result_of(&result);
                // It can be tried again.
                region.deregister().map_err(dereg_failed())?;
                Ok((word, injected))
            }
        }
    }

    fn nothing_pinned(&self, nth: u64) -> Result<(), Failure> {
        let pins = self
            .memory
            .pins()
            .map_err(Failure::unmet("asking the GPU for its pins"))?;
        match pins {
            Some(pins) if pins.revocable + pins.persistent > 0 => Err(Failure::Unmet(format!(
                "without the {nth}th allocation GPU memory stays pinned"
            ))),
            _ => Ok(()),
        }
    }
}

fn dereg_failed() -> impl FnOnce(io::Error) -> Failure {
    Failure::unmet("ibv_dereg_mr() with memory enough")
}
