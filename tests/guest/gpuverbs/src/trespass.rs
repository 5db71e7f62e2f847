// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A process that has freed registered GPU memory, and tries to reach it when it
//! is another process's.
//!
//! The *intruder* keeps the registration, a connected pair of queue pairs and
//! whatever keys it can guess. The *resident*, another process, is given the
//! same memory, puts a secret there and registers it too.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;

use anyhow::{ensure, Context, Result};
use nix::sys::wait::{waitpid, WaitStatus};

use crate::buffer::Ends;
use crate::gpu::{FreeBy, Machine};
use crate::process;
use crate::value::{say, status_of};
use crate::verbs::{Mr, Operation, Outcome, Pair, Port, Remote, OPERATIONS};

/// Frees registered GPU memory, and tries to reach its next owner's bytes there
#[derive(clap::Args)]
pub struct Trespass {
    #[command(flatten)]
    ends: Ends,
}

/// How many keys are tried on either side of the known ones.
const GUESSES: u32 = 4;

impl Trespass {
    pub fn run(self) -> Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        // While this process has nothing that could be inherited.
        let resident = process::fork(|| status_of(self.reside(&theirs).context("the resident")))?;
        drop(theirs);
        let intruded = self.intrude(&ours);
        // Whatever happened, the resident looks at its memory and ends. It has a
        // copy of this end, so closing would not tell it.
        let _ = ours.shutdown(Shutdown::Both);
        let status = waitpid(resident, None)?;
        intruded?;
        ensure!(matches!(status, WaitStatus::Exited(_, 0)), "the resident ended with {status:?}");
        say("result", "kept out");
        Ok(())
    }

    /// The other process: says what somebody would need to reach its memory.
    fn reside(&self, mut intruder: &UnixStream) -> Result<()> {
        intruder.read_exact(&mut [0])?;
        let Machine { gpu, pd } = Machine::open()?;
        let mut home = self.ends.target(&gpu)?;
        let secret = self.ends.other_pattern();
        home.put(&secret)?;
        let region = home.register(&pd)?;
        let Remote { addr, rkey } = region.remote();
        intruder.write_all(&addr.to_ne_bytes())?;
        intruder.write_all(&rkey.to_ne_bytes())?;

        // Until the intruder has given up.
        let _ = intruder.read(&mut [0]);
        home.check(&secret)
    }

    fn intrude(&self, mut resident: &UnixStream) -> Result<()> {
        let machine = Machine::open()?;
        let mut own = self.ends.source(&machine.gpu)?;
        let mut lost = self.ends.target(&machine.gpu)?;
        own.put(&self.ends.pattern())?;
        let intruder = Intruder {
            port: Port::query(&machine.pd.device)?,
            own_region: own.register(&machine.pd)?,
            stale: lost.register(&machine.pd)?,
            machine,
        };
        // While the memory is the intruder's all of it works, or the rest would
        // prove nothing.
        Pair::connect(&intruder.machine.pd, &intruder.port)?
            .run(Operation::Write, &intruder.own_region, &intruder.stale)?
            .succeeded("the write before the memory was freed")?;
        lost.free(FreeBy::Munmap)?;
        own.poison()?;

        resident.write_all(&[0])?;
        let (mut addr, mut rkey) = ([0; 8], [0; 4]);
        resident.read_exact(&mut addr).context("asking the resident")?;
        resident.read_exact(&mut rkey)?;
        let (addr, rkey) = (u64::from_ne_bytes(addr), u32::from_ne_bytes(rkey));

        let tried = intruder.tries_stale_region()? + intruder.tries_keys(Remote { addr, rkey })?;
        say("refused", tried);
        own.is_poison().context("the intruder has read something")
    }
}

struct Intruder {
    port: Port,
    /// Of memory that is the intruder's still.
    own_region: Mr,
    /// Of memory that is not.
    stale: Mr,
    machine: Machine,
}

impl Intruder {
    /// The registration itself, in both directions. How many were tried.
    fn tries_stale_region(&self) -> Result<u32> {
        let mut tried = 0;
        for operation in OPERATIONS {
            let what = format!("a {operation} with a stale region");
            let (own, stale) = (&self.own_region, &self.stale);
            for (source, target) in [(own, stale), (stale, own)] {
                self.refused(&what, |pair| pair.run(operation, source, target))?;
                tried += 1;
            }
        }
        Ok(tried)
    }

    /// Keys that were overheard or guessed, with either process's address.
    fn tries_keys(&self, home: Remote) -> Result<u32> {
        let (mut tried, own, stale) = (0, &self.own_region, self.stale.remote());
        for rkey in keys_around(stale.rkey, home.rkey, GUESSES) {
            if rkey == own.remote().rkey {
                continue;
            }
            for addr in [home.addr, stale.addr] {
                let remote = Remote { addr, rkey };
                let what = |verb| format!("a {verb} with the key {rkey:#x}");
                self.refused(&what("write"), |pair| pair.source.write(own, remote))?;
                self.refused(&what("read"), |pair| pair.target.read(remote, own))?;
                tried += 2;
            }
        }
        Ok(tried)
    }

    fn refused(&self, what: &str, act: impl FnOnce(&Pair) -> Result<Outcome>) -> Result<()> {
        // A refusal breaks the pair.
        act(&Pair::connect(&self.machine.pd, &self.port)?)?.refused(what)
    }
}

/// Both keys, and so many on either side of each. A key is the number of a
/// region and, in its lowest byte, what changes from one use of the number to
/// the next: both are counted up and down.
fn keys_around(stale: u32, home: u32, guesses: u32) -> BTreeSet<u32> {
    let mut keys = BTreeSet::new();
    for known in [stale, home] {
        for distance in 0..=guesses {
            for step in [1, 0x100] {
                keys.insert(known.wrapping_add(distance.wrapping_mul(step)));
                keys.insert(known.wrapping_sub(distance.wrapping_mul(step)));
            }
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_tried_on_either_side() {
        let keys = keys_around(0x5a00, 0x5b00, 2);
        let some = [0x5a00, 0x5b00, 0x5a01, 0x5a02, 0x59ff, 0x5c00, 0x5900, 0x5d00];
        assert!(some.iter().all(|key| keys.contains(key)), "{keys:x?}");
        assert!(!keys.contains(&0x5a03) && !keys.contains(&0x5e00), "{keys:x?}");
        assert_eq!(keys_around(7, 7, 0), [7].into());
    }
}
