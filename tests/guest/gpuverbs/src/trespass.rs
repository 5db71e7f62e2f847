// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `trespass`: a process that has freed registered GPU memory, and tries to
//! reach it when it is another process's.
//!
//! The *intruder* keeps the registration, a connected pair of queue pairs and
//! whatever keys it can guess. The *resident*, another process, is given the
//! same memory, puts a secret there and registers it too.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use crate::args::{Args, Command};
use crate::buffer::{Buffer, Ends, ENDS_OPTIONS};
use crate::failure::Failure;
use crate::gpu::FreeBy;
use crate::machine::{self, Machine};
use crate::output;
use crate::pattern::{Pattern, POISON};
use crate::process;
use crate::verbs::{Mr, Operation, Outcome, Pair, Pd, Port, Remote, PORT_OPTIONS};

pub const COMMAND: Command = Command {
    name: "trespass",
    summary: "Frees registered GPU memory, and tries to reach its next owner's bytes there",
    options: &[ENDS_OPTIONS, machine::OPTIONS, PORT_OPTIONS],
    run,
};

/// How many keys are tried on either side of the known ones.
const GUESSES: u32 = 4;

fn run(args: &Args) -> Result<(), Failure> {
    let (mut ours, theirs) =
        UnixStream::pair().map_err(Failure::environment("a pair of sockets"))?;
    // While this process has nothing that could be inherited.
    let resident = process::fork(|| match reside(args, &theirs) {
        Ok(()) => 0,
        Err(failure) => {
            eprintln!("gpuverbs: the resident: {failure}");
            failure.exit_status()
        }
    })
    .map_err(Failure::environment("a new process"))?;
    drop(theirs);
    let intruded = intrude(args, &mut ours);
    // Whatever happened, the resident looks at its memory and ends. It has a
    // copy of this end, so closing would not tell it.
    let _ = ours.shutdown(Shutdown::Both);
    let status = resident
        .wait()
        .map_err(Failure::unmet("waiting for the resident"))?;
    intruded?;
    if !status.success() {
        return Err(Failure::Unmet(format!("the resident ended with {status}")));
    }
    output::value("result", "kept out");
    Ok(())
}

/// The other process: says what somebody would need to reach its memory.
fn reside(args: &Args, intruder: &UnixStream) -> Result<(), Failure> {
    let mut intruder = intruder;
    let ends = Ends::parse(args)?;
    let talk = || Failure::unmet("talking to the intruder");
    intruder.read_exact(&mut [0]).map_err(talk())?;

    let machine = Machine::open(args)?;
    let pd = Pd::allocate(&machine.device)?;
    let mut home = Buffer::allocate(&machine.gpu, ends.to)?;
    let secret = Pattern::bytes(ends.seed.wrapping_add(1), home.length());
    home.put(&secret);
    let region = home.register(&pd)?;
    let Remote { addr, rkey } = region.remote();
    intruder.write_all(&addr.to_ne_bytes()).map_err(talk())?;
    intruder.write_all(&rkey.to_ne_bytes()).map_err(talk())?;

    // Until the intruder has given up.
    let _ = intruder.read(&mut [0]);
    home.check(&secret)
        .map_err(|mismatch| Failure::Unmet(format!("the resident's memory: {mismatch}")))
}

fn intrude(args: &Args, resident: &mut UnixStream) -> Result<(), Failure> {
    let ends = Ends::parse(args)?;
    let machine = Machine::open(args)?;
    let pd = Pd::allocate(&machine.device)?;
    let mut own = Buffer::allocate(&machine.gpu, ends.from)?;
    let mut lost = Buffer::allocate(&machine.gpu, ends.to)?;
    own.put(&Pattern::bytes(ends.seed, own.length()));
    let intruder = Intruder {
        port: machine.port(args)?,
        own_region: own.register(&pd)?,
        stale: lost.register(&pd)?,
        pd,
    };
    intruder.succeeds()?;
    lost.free(FreeBy::Munmap)?;
    own.poison();

    let talk = || Failure::unmet("talking to the resident");
    resident.write_all(&[0]).map_err(talk())?;
    let (mut addr, mut rkey) = ([0; 8], [0; 4]);
    resident.read_exact(&mut addr).map_err(talk())?;
    resident.read_exact(&mut rkey).map_err(talk())?;
    let home = Remote {
        addr: u64::from_ne_bytes(addr),
        rkey: u32::from_ne_bytes(rkey),
    };

    let tried = intruder.tries_stale_region()? + intruder.tries_keys(home)?;
    output::value("refused", tried);
    let poison = vec![POISON; own.length()];
    own.check(&poison)
        .map_err(|mismatch| Failure::Unmet(format!("the intruder has read something: {mismatch}")))
}

struct Intruder {
    port: Port,
    /// Of memory that is the intruder's still.
    own_region: Mr,
    /// Of memory that is not.
    stale: Mr,
    pd: Arc<Pd>,
}

impl Intruder {
    /// While the memory is the intruder's all of it works, or the rest would
    /// prove nothing.
    fn succeeds(&self) -> Result<(), Failure> {
        let pair = Pair::connect(&self.pd, &self.port)?;
        let outcome = pair.run(Operation::Write, &self.own_region, &self.stale)?;
        match outcome.is_success() {
            true => Ok(()),
            false => Err(Failure::Unmet(format!(
                "the write before the memory was freed ended with {outcome}"
            ))),
        }
    }

    /// The registration itself, in both directions. How many were tried.
    fn tries_stale_region(&self) -> Result<u32, Failure> {
        let mut tried = 0;
        for (name, operation) in Operation::NAMES {
            for (source, target) in [
                (&self.own_region, &self.stale),
                (&self.stale, &self.own_region),
            ] {
                self.refused(&format!("a {name} with a stale region"), |pair| {
                    pair.run(*operation, source, target)
                })?;
                tried += 1;
            }
        }
        Ok(tried)
    }

    /// Keys that were overheard or guessed, with either process's address.
    fn tries_keys(&self, home: Remote) -> Result<u32, Failure> {
        let mut tried = 0;
        for rkey in keys_around(self.stale.remote().rkey, home.rkey, GUESSES) {
            if rkey == self.own_region.remote().rkey {
                continue;
            }
            for addr in [home.addr, self.stale.remote().addr] {
                let remote = Remote { addr, rkey };
                self.refused(&format!("a write with the key {rkey:#x}"), |pair| {
                    pair.write(&self.own_region, remote)
                })?;
                self.refused(&format!("a read with the key {rkey:#x}"), |pair| {
                    pair.read(remote, &self.own_region)
                })?;
                tried += 2;
            }
        }
        Ok(tried)
    }

    fn refused(
        &self,
        what: &str,
        act: impl FnOnce(&Pair) -> Result<Outcome, Failure>,
    ) -> Result<(), Failure> {
        // A refusal breaks the pair.
        let pair = Pair::connect(&self.pd, &self.port)?;
        let outcome = act(&pair)?;
        match outcome.is_refusal() {
            true => Ok(()),
            false => Err(Failure::Unmet(format!(
                "{what} was not refused: it ended with {outcome}"
            ))),
        }
    }
}

/// Both keys, and so many on either side of each. A key is the number of a
/// region and, in its lowest byte, what changes from one use of the number to
/// the next: both are counted up and down.
fn keys_around(stale: u32, home: u32, guesses: u32) -> Vec<u32> {
    let mut keys = Vec::new();
    for known in [stale, home] {
        for distance in 0..=guesses {
            for step in [1, 0x100] {
                keys.push(known.wrapping_add(distance.wrapping_mul(step)));
                keys.push(known.wrapping_sub(distance.wrapping_mul(step)));
            }
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_tried_once_each() {
        let keys = keys_around(0x5a00, 0x5b00, 2);
        for key in [
            0x5a00, 0x5b00, 0x5a01, 0x5a02, 0x59ff, 0x5c00, 0x5900, 0x5d00,
        ] {
            assert_eq!(
                keys.iter().filter(|known| **known == key).count(),
                1,
                "{key:#x}"
            );
        }
        assert_eq!(keys_around(7, 7, 0), [7]);
    }
}
