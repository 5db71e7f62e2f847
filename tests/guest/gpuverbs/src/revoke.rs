// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `revoke`: GPU memory that is freed while it is registered.
//!
//! A revocable registration ends with its memory: whoever uses its keys
//! afterwards is refused, and whoever gets the same memory next has it alone.
//! A persistent registration keeps the memory: transfers go on, and nobody else
//! gets the memory before the registration ends.

use std::sync::Arc;

use crate::args::{Args, Command, Opt};
use crate::buffer::{Buffer, Ends, Mismatch, ENDS_OPTIONS};
use crate::expect::result_of;
use crate::failure::Failure;
use crate::gpu::FreeBy;
use crate::machine::{self, Machine};
use crate::output;
use crate::pattern::{Pattern, POISON};
use crate::verbs::{Mr, Operation, Outcome, Pair, Pd, Port, PORT_OPTIONS};

pub const COMMAND: Command = Command {
    name: "revoke",
    summary: "Frees registered GPU memory, and says what becomes of transfers after that",
    options: &[
        ENDS_OPTIONS,
        &[
            Opt::optional("free", "WHICH", "to (the default) or from"),
            Opt::optional("by", "HOW", "ioctl (the default) or munmap"),
            Opt::optional("expect", "WHAT", "revoked (the default) or pinned"),
        ],
        machine::OPTIONS,
        PORT_OPTIONS,
    ],
    run,
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    Source,
    Target,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expected {
    Revoked,
    Pinned,
}

fn run(args: &Args) -> Result<(), Failure> {
    let Ends { from, to, seed } = Ends::parse(args)?;
    let freed = args.choice("free", &[("to", Which::Target), ("from", Which::Source)])?;
    let by = args.choice(
        "by",
        &[("ioctl", FreeBy::Ioctl), ("munmap", FreeBy::Munmap)],
    )?;
    let expected = args.choice(
        "expect",
        &[("revoked", Expected::Revoked), ("pinned", Expected::Pinned)],
    )?;

    let machine = Machine::open(args)?;
    let port = machine.port(args)?;

    let pd = Pd::allocate(&machine.device)?;
    let mut source = Buffer::allocate(&machine.gpu, from)?;
    let mut target = Buffer::allocate(&machine.gpu, to)?;
    let first = Pattern::bytes(seed, source.length());
    let second = Pattern::bytes(seed.wrapping_add(1), source.length());
    source.put(&first);
    target.poison();
    let regions = Regions {
        source: source.register(&pd)?,
        target: target.register(&pd)?,
    };

    let pair = Pair::connect(&pd, &port)?;
    let outcome = pair.run(Operation::Write, &regions.source, &regions.target)?;
    output::value("first_status", outcome);
    succeeded("the write before the memory was freed", outcome)?;
    holds("target, before the memory was freed", target.check(&first))?;

    // The buffer that loses its memory, and the one that keeps it.
    let (mut lost, kept) = match freed {
        Which::Target => (target, source),
        Which::Source => {
            // Bytes that still arrive there will show.
            target.poison();
            (source, target)
        }
    };
    lost.free(by)?;
    output::value("freed_offset", lost.place().start());

    let trial = Trial {
        machine,
        pd,
        port,
        freed,
        regions,
        lost,
        kept,
        first,
        second,
    };
    match expected {
        Expected::Revoked => trial.revoked(pair),
        Expected::Pinned => trial.pinned(pair),
    }
}

struct Regions {
    source: Mr,
    target: Mr,
}

impl Regions {
    fn deregister(self) -> Result<(), Failure> {
        for region in [self.source, self.target] {
            region
                .deregister()
                .map_err(Failure::unmet("ibv_dereg_mr()"))?;
        }
        Ok(())
    }
}

/// Two live registrations, one of memory that has been freed.
struct Trial {
    machine: Machine,
    pd: Arc<Pd>,
    port: Port,
    freed: Which,
    // Before the memory, so that on failure too they end first.
    regions: Regions,
    lost: Buffer,
    kept: Buffer,
    /// What was moved while all was well.
    first: Vec<u8>,
    /// What comes after that.
    second: Vec<u8>,
}

impl Trial {
    fn revoked(self, pair: Pair) -> Result<(), Failure> {
        let outcome = pair.run(Operation::Write, &self.regions.source, &self.regions.target)?;
        output::value("status", outcome);
        refused("the write after the memory was freed", outcome)?;
        // That queue pair is in the error state now.
        drop(pair);
        self.check_kept()?;

        // The next owner of the memory. Among them, the three operations use
        // either key of the stale registration, and both ways.
        let mut next = Buffer::allocate(&self.machine.gpu, self.lost.place())?;
        next.put(&self.second);
        for (name, operation) in Operation::NAMES {
            let pair = Pair::connect(&self.pd, &self.port)?;
            let outcome = pair.run(*operation, &self.regions.source, &self.regions.target)?;
            output::value(&format!("reuse_{name}_status"), outcome);
            refused(&format!("a {name} with a stale key"), outcome)?;
            holds("memory allocated anew", next.check(&self.second))?;
            self.check_kept()?;
        }
        self.regions.deregister()?;
        holds(
            "memory allocated anew, in the end",
            next.check(&self.second),
        )?;
        output::value("reuse_intact", "yes");
        next.free(FreeBy::Munmap)?;
        output::value("result", "revoked");
        Ok(())
    }

    /// After transfers that were refused, no byte has left or arrived.
    fn check_kept(&self) -> Result<(), Failure> {
        match self.freed {
            Which::Target => holds("source", self.kept.check(&self.first)),
            Which::Source => {
                let poison = vec![POISON; self.kept.length()];
                holds("target", self.kept.check(&poison))
            }
        }
    }

    fn pinned(mut self, pair: Pair) -> Result<(), Failure> {
        let Regions { source, target } = &self.regions;
        if self.freed == Which::Target {
            self.kept.put(&self.second);
        }
        let outcome = pair.run(Operation::Write, source, target)?;
        output::value("status", outcome);
        succeeded("the write after the memory was freed", outcome)?;
        match self.freed {
            Which::Source => holds("target", self.kept.check(&self.first))?,
            // The CPU cannot look into the target any more, but the NIC can.
            Which::Target => {
                self.kept.poison();
                let outcome = pair.run(Operation::Write, target, source)?;
                output::value("read_back_status", outcome);
                succeeded("reading back", outcome)?;
                holds("what was read back", self.kept.check(&self.second))?;
            }
        }
        drop(pair);

        let place = self.lost.place();
        let again = self.machine.gpu.allocate(place.offset, place.size()?);
        output::value("reallocation", result_of(&again));
        if result_of(&again) != "EBUSY" {
            return Err(Failure::Unmet(format!(
                "allocating memory that is still pinned ended with {}, expected was EBUSY",
                result_of(&again)
            )));
        }
        self.regions.deregister()?;
        let again = self.machine.gpu.allocate(place.offset, place.size()?);
        output::value("reallocation_after_dereg", result_of(&again));
        again.map_err(Failure::unmet(
            "allocating the memory after its registration ended",
        ))?;
        output::value("result", "pinned");
        Ok(())
    }
}

fn succeeded(what: &str, outcome: Outcome) -> Result<(), Failure> {
    if outcome.is_success() {
        return Ok(());
    }
    Err(Failure::Unmet(format!("{what} ended with {outcome}")))
}

fn refused(what: &str, outcome: Outcome) -> Result<(), Failure> {
    if outcome.is_refusal() {
        return Ok(());
    }
    Err(Failure::Unmet(format!(
        "{what} was not refused: it ended with {outcome}"
    )))
}

fn holds(what: &str, checked: Result<(), Mismatch>) -> Result<(), Failure> {
    checked.map_err(|mismatch| Failure::Unmet(format!("{what}: {mismatch}")))
}
