// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Transfers between two pieces of GPU memory, of which one may be freed while it is
//! registered.
//!
//! A revocable registration ends with its memory: whoever uses its keys
//! afterwards is refused, and whoever gets the same memory next has it alone.
//! A persistent registration keeps the memory: transfers go on, and nobody else
//! gets the memory before the registration ends.

use anyhow::{ensure, Context, Result};

use crate::buffer::{Buffer, Ends};
use crate::gpu::{FreeBy, Machine};
use crate::value::{hold, result_of, say};
use crate::verbs::{deregister, Mr, Operation, Pair, Port, OPERATIONS};

/// Moves a pattern between two registered pieces of GPU memory
#[derive(clap::Args)]
pub struct Transfer {
    #[command(flatten)]
    ends: Ends,
    #[arg(long, value_enum, default_value = "write")]
    op: Operation,
    /// Says `holding` and waits for a line of input before giving anything back
    #[arg(long)]
    hold: bool,
}

impl Transfer {
    pub fn run(self) -> Result<()> {
        let Self { ends, op, hold: holds } = self;
        let Machine { gpu, pd } = Machine::open()?;
        let port = Port::query(&pd.device)?;
        let (mut source, mut target) = (ends.source(&gpu)?, ends.target(&gpu)?);
        let pattern = ends.pattern();
        source.put(&pattern)?;
        target.poison()?;
        let regions = [source.register(&pd)?, target.register(&pd)?];

        let pair = Pair::connect(&pd, &port)?;
        let outcome = pair.run(op, &regions[0], &regions[1])?;
        say("status", outcome);
        outcome.succeeded(&op.to_string())?;
        say("target_offset", target.place.start());
        say("length", target.place.length);
        source.check(&pattern).context("source")?;
        target.check(&pattern).context("target")?;
        say("result", "ok");
        if holds {
            hold();
        }

        drop(pair);
        deregister(regions)?;
        source.free(FreeBy::Munmap)?;
        target.free(FreeBy::Munmap)
    }
}

/// Frees registered GPU memory, and says what becomes of transfers after that
#[derive(clap::Args)]
pub struct Revoke {
    #[command(flatten)]
    ends: Ends,
    #[arg(long, value_enum, default_value = "to")]
    free: Which,
    #[arg(long, value_enum, default_value = "ioctl")]
    by: FreeBy,
    #[arg(long, value_enum, default_value = "revoked")]
    expect: Expected,
}

#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Which {
    From,
    To,
}

/// What becomes of freed memory that is registered.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Expected {
    Revoked,
    Pinned,
}

/// Two live registrations, one of memory that has been freed.
struct Trial {
    machine: Machine,
    port: Port,
    freed: Which,
    // Before the memory, so that on failure too they end first.
    source: Mr,
    target: Mr,
    lost: Buffer,
    kept: Buffer,
    /// What was moved while all was well.
    first: Vec<u8>,
    /// What comes after that.
    second: Vec<u8>,
}

impl Revoke {
    pub fn run(self) -> Result<()> {
        let machine = Machine::open()?;
        let port = Port::query(&machine.pd.device)?;
        let (first, second) = (self.ends.pattern(), self.ends.other_pattern());
        let mut from = self.ends.source(&machine.gpu)?;
        let mut to = self.ends.target(&machine.gpu)?;
        from.put(&first)?;
        to.poison()?;
        let (source, target) = (from.register(&machine.pd)?, to.register(&machine.pd)?);

        let pair = Pair::connect(&machine.pd, &port)?;
        let outcome = pair.run(Operation::Write, &source, &target)?;
        say("first_status", outcome);
        outcome.succeeded("the write before the memory was freed")?;
        to.check(&first).context("target, before the memory was freed")?;

        // The buffer that loses its memory, and the one that keeps it.
        let (mut lost, kept) = match self.free {
            Which::To => (to, from),
            Which::From => {
                // Bytes that still arrive there will show.
                to.poison()?;
                (from, to)
            }
        };
        lost.free(self.by)?;
        let freed = self.free;
        let trial = Trial { machine, port, freed, source, target, lost, kept, first, second };
        match self.expect {
            Expected::Revoked => trial.revoked(pair),
            Expected::Pinned => trial.pinned(pair),
        }
    }
}

impl Trial {
    fn revoked(self, pair: Pair) -> Result<()> {
        let outcome = pair.run(Operation::Write, &self.source, &self.target)?;
        say("status", outcome);
        outcome.refused("the write after the memory was freed")?;
        // That queue pair is in the error state now.
        drop(pair);
        self.check_kept()?;

        // The next owner of the memory. Among them, the three operations use
        // either key of the stale registration, and both ways.
        let mut next = Buffer::allocate(&self.machine.gpu, self.lost.place)?;
        next.put(&self.second)?;
        for operation in OPERATIONS {
            let pair = Pair::connect(&self.machine.pd, &self.port)?;
            let outcome = pair.run(operation, &self.source, &self.target)?;
            say(&format!("reuse_{operation}_status"), outcome);
            outcome.refused(&format!("a {operation} with a stale key"))?;
            next.check(&self.second).context("memory allocated anew")?;
            self.check_kept()?;
        }
        deregister([self.source, self.target])?;
        next.check(&self.second).context("memory allocated anew, in the end")?;
        say("reuse_intact", "yes");
        next.free(FreeBy::Munmap)?;
        say("result", "revoked");
        Ok(())
    }

    /// After transfers that were refused, no byte has left or arrived.
    fn check_kept(&self) -> Result<()> {
        match self.freed {
            Which::To => self.kept.check(&self.first).context("source"),
            Which::From => self.kept.is_poison().context("target"),
        }
    }

    fn pinned(mut self, pair: Pair) -> Result<()> {
        if self.freed == Which::To {
            self.kept.put(&self.second)?;
        }
        let outcome = pair.run(Operation::Write, &self.source, &self.target)?;
        say("status", outcome);
        outcome.succeeded("the write after the memory was freed")?;
        match self.freed {
            Which::From => self.kept.check(&self.first).context("target")?,
            // The CPU cannot look into the target any more, but the NIC can.
            Which::To => {
                self.kept.poison()?;
                let outcome = pair.run(Operation::Write, &self.target, &self.source)?;
                say("read_back_status", outcome);
                outcome.succeeded("reading back")?;
                self.kept.check(&self.second).context("what was read back")?;
            }
        }
        drop(pair);

        let place = self.lost.place;
        let again = result_of(&self.machine.gpu.allocate(place.offset, place.size()));
        say("reallocation", &again);
        ensure!(again == "EBUSY", "allocating memory that is still pinned ended with {again}");
        deregister([self.source, self.target])?;
        let again = self.machine.gpu.allocate(place.offset, place.size());
        say("reallocation_after_dereg", result_of(&again));
        again.context("allocating the memory after its registration ended")?;
        say("result", "pinned");
        Ok(())
    }
}
