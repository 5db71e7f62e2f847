// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Transfers between two pieces of GPU memory, one of which may be freed while it is
//! registered.
//!
//! A revocable registration ends when its memory is freed. After that, the device refuses the keys
//! of the registration, so only the next owner can use the memory. A persistent registration keeps
//! the memory. Transfers therefore continue to work, and no other process gets the memory before
//! the registration ends.

use anyhow::{ensure, Context, Result};

use crate::buffer::{Buffer, Ends};
use crate::gpu::{FreeBy, Machine};
use crate::value::{hold, result_of, say};
use crate::verbs::{deregister, Operation, Pair, OPERATIONS};

/// Moves a pattern between two registered pieces of GPU memory
#[derive(clap::Args)]
pub struct Transfer {
    #[command(flatten)]
    ends: Ends,
    #[arg(long, value_enum, default_value = "write")]
    op: Operation,
    /// Prints `holding` and waits for a line of input before it gives anything back
    #[arg(long)]
    hold: bool,
}

impl Transfer {
    pub fn run(self) -> Result<()> {
        let machine = Machine::open()?;
        let ([mut source, mut target], regions) = self.ends.registered(&machine)?;
        let pair = Pair::connect(&machine.hca)?;
        let status = pair.run(self.op, &regions[0], &regions[1])?;
        say("status", status);
        status.succeeded("the transfer")?;
        say("target_offset", target.place.offset + target.place.shift);
        say("length", target.place.length);
        source.check(&self.ends.pattern()).context("source")?;
        target.check(&self.ends.pattern()).context("target")?;
        say("result", "ok");
        if self.hold {
            hold();
        }
        drop(pair);
        deregister(regions)?;
        source.free(FreeBy::Munmap)?;
        target.free(FreeBy::Munmap)
    }
}

/// Frees registered GPU memory, and prints the results of later transfers
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

/// The expected effect of freeing memory that is registered.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Expected {
    Revoked,
    Pinned,
}

impl Revoke {
    pub fn run(self) -> Result<()> {
        let machine = Machine::open()?;
        let (first, second) = (self.ends.pattern(), self.ends.other_pattern());
        let ([from, mut to], regions) = self.ends.registered(&machine)?;
        let [source, target] = &regions;
        let pair = Pair::connect(&machine.hca)?;
        let status = pair.run(Operation::Write, source, target)?;
        say("first_status", status);
        status.succeeded("the write before the memory was freed")?;
        to.check(&first).context("target, before the memory was freed")?;

        // The buffer that loses its memory, and the buffer that keeps its memory.
        let (mut lost, mut kept) = match self.free {
            Which::To => (to, from),
            Which::From => {
                // The target is filled with poison again. If bytes arrive after this point, they
                // are therefore visible.
                to.poison()?;
                (from, to)
            }
        };
        let place = lost.place;
        lost.free(self.by)?;

        if self.expect == Expected::Pinned {
            if self.free == Which::To {
                kept.put(&second)?;
            }
            let status = pair.run(Operation::Write, source, target)?;
            say("status", status);
            status.succeeded("the write after the memory was freed")?;
            if self.free == Which::From {
                kept.check(&first).context("target")?;
            } else {
                // The CPU cannot read the target any more, but the NIC can read it.
                kept.poison()?;
                pair.run(Operation::Write, target, source)?.succeeded("reading back")?;
                kept.check(&second).context("what was read back")?;
            }
            drop(pair);
            let again = || machine.gpu.allocate(place.offset, place.shift + place.length);
            let taken = result_of(&again());
            ensure!(taken == "EBUSY", "allocating memory that is still pinned: {taken}");
            deregister(regions)?;
            again().context("allocating the memory after its registration ended")?;
            say("result", "pinned");
            return Ok(());
        }

        // Checks that the refused transfers have moved no byte.
        let check_kept = || match self.free {
            Which::To => kept.check(&first).context("source"),
            Which::From => kept.is_poison().context("target"),
        };
        let status = pair.run(Operation::Write, source, target)?;
        say("status", status);
        status.refused("the write after the memory was freed")?;
        // The refused transfer has put the queue pair into the error state, so a new pair is
        // needed.
        drop(pair);
        check_kept()?;

        // Another allocation becomes the next owner of the memory. The three operations below use
        // both keys of the old registration, and would read and write the memory if the keys were
        // still valid.
        let mut next = Buffer::allocate(machine.gpu, place)?;
        next.put(&second)?;
        for operation in OPERATIONS {
            let status = Pair::connect(&machine.hca)?.run(operation, source, target)?;
            status.refused(&format!("{operation:?} with a stale key"))?;
            next.check(&second).context("memory allocated anew")?;
            check_kept()?;
        }
        deregister(regions)?;
        next.check(&second).context("memory allocated anew, in the end")?;
        say("reuse_intact", "yes");
        next.free(FreeBy::Munmap)?;
        say("result", "revoked");
        Ok(())
    }
}
