// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A process that has freed registered GPU memory, and tries to reach it when it
//! is another process's.
//!
//! The *intruder* keeps the registration, and whatever keys it can guess. The *resident*,
//! another process, is given the same memory, puts a secret there and registers it too.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{ensure, Context, Result};
use nix::sys::wait::{waitpid, WaitStatus};

use crate::buffer::{Buffer, Ends};
use crate::gpu::{FreeBy, Machine};
use crate::process;
use crate::value::{say, status_of};
use crate::verbs::{Operation, Pair, Remote, Status, OPERATIONS};

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
        // What the resident says of its memory: an address and a key.
        let home = process::shared_counters(2)?;
        // While this process has nothing that could be inherited.
        let resident =
            process::fork(|| status_of(self.reside(&theirs, home).context("the resident")))?;
        drop(theirs);
        let intruded = self.intrude(&ours, home);
        // Whatever happened, the resident looks at its memory and ends. It has a
        // copy of this end, so closing would not tell it.
        let _ = ours.shutdown(Shutdown::Both);
        let status = waitpid(resident, None)?;
        say("refused", intruded?);
        ensure!(matches!(status, WaitStatus::Exited(_, 0)), "the resident ended with {status:?}");
        say("result", "kept out");
        Ok(())
    }

    /// The other process: says what somebody would need to reach its memory.
    fn reside(&self, mut intruder: &UnixStream, says: &[AtomicU64]) -> Result<()> {
        intruder.read_exact(&mut [0])?;
        let machine = Machine::open()?;
        let mut home = Buffer::allocate(machine.gpu, self.ends.place_of_target())?;
        let secret = self.ends.other_pattern();
        home.put(&secret)?;
        let region = home.register(&machine.hca)?;
        says[0].store(region.remote().addr, Relaxed);
        says[1].store(region.remote().rkey.into(), Relaxed);
        intruder.write_all(&[0])?;

        // Until the intruder has given up.
        let _ = intruder.read(&mut [0]);
        home.check(&secret)
    }

    /// How many ways were tried.
    fn intrude(&self, mut resident: &UnixStream, said: &[AtomicU64]) -> Result<u32> {
        let machine = Machine::open()?;
        let ([mut own_memory, mut lost], [own, stale]) = self.ends.registered(&machine)?;
        // While the memory is the intruder's all of it works, or the rest would
        // prove nothing.
        Pair::connect(&machine.hca)?
            .run(Operation::Write, &own, &stale)?
            .succeeded("the write before the memory was freed")?;
        lost.free(FreeBy::Munmap)?;
        own_memory.poison()?;

        resident.write_all(&[0])?;
        resident.read_exact(&mut [0]).context("asking the resident")?;
        let home = Remote { addr: said[0].load(Relaxed), rkey: said[1].load(Relaxed) as u32 };

        let mut tried = 0;
        let mut refused = |what: &str, act: &dyn Fn(Pair) -> Result<Status>| {
            tried += 1;
            // A refusal breaks the pair.
            act(Pair::connect(&machine.hca)?)?.refused(what)
        };
        // The registration itself, in both directions.
        for operation in OPERATIONS {
            for (source, target) in [(&own, &stale), (&stale, &own)] {
                refused("a stale region", &|pair| pair.run(operation, source, target))?;
            }
        }
        // Keys that were overheard or guessed, with either process's address.
        for rkey in keys_around(stale.remote().rkey, home.rkey, GUESSES) {
            if rkey == own.remote().rkey {
                continue;
            }
            for addr in [home.addr, stale.remote().addr] {
                let remote = Remote { addr, rkey };
                let what = format!("the key {rkey:#x}");
                refused(&what, &|pair| pair.source.write(&own, remote))?;
                refused(&what, &|pair| pair.target.read(remote, &own))?;
            }
        }
        own_memory.is_poison().context("the intruder has read something")?;
        Ok(tried)
    }
}

/// Both keys, and so many on either side of each. A key is the number of a
/// region and, in its lowest byte, what changes from one use of the number to
/// the next: both are counted up and down.
fn keys_around(stale: u32, home: u32, guesses: u32) -> BTreeSet<u32> {
    let mut keys = BTreeSet::new();
    for known in [stale, home] {
        for step in (0..=guesses).flat_map(|distance| [distance, distance << 8]) {
            keys.extend([known.wrapping_add(step), known.wrapping_sub(step)]);
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
    }
}
