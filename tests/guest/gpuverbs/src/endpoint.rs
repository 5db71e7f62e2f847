// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! One end of a connection between two machines, and a piece of GPU memory that
//! the other end may reach.
//!
//! It says `endpoint=…`, which the other end needs to connect, and then takes
//! orders, a line each. It says `holding` whenever it waits for one.

use std::fmt;
use std::io;
use std::str::FromStr;

use anyhow::{bail, Context, Result};

use crate::buffer::{Buffer, Place};
use crate::gpu::{FreeBy, Machine};
use crate::pattern;
use crate::value::{describe, line, say, size};
use crate::verbs::{deregister, Address, Link, Mr, Port, Remote, SECONDS};

/// Is one end of a connection between two machines, and takes orders from its input
#[derive(clap::Args)]
pub struct Join {
    /// Where in the BAR the buffer is
    #[arg(long, value_parser = size)]
    offset: u64,
    /// Of the buffer, the same at both ends
    #[arg(long, value_parser = size)]
    length: u64,
    /// Bytes between the offset and the buffer's start
    #[arg(long, value_parser = size, default_value = "0")]
    shift: u64,
}

impl Join {
    pub fn run(self) -> Result<()> {
        let Self { offset, length, shift } = self;
        let machine = Machine::open()?;
        let port = Port::query(&machine.pd.device)?;
        let mut buffer = Buffer::allocate(&machine.gpu, Place { offset, shift, length })?;
        buffer.poison()?;
        let region = buffer.register(&machine.pd)?;
        let link = Link::create(&machine.pd, &port)?;
        say("endpoint", Name { address: link.address, memory: region.remote() });
        let (region, other) = (Some(region), None);
        let mut endpoint = Endpoint { machine, port, link, region, buffer, other };
        loop {
            line("holding");
            let mut order = String::new();
            if io::stdin().read_line(&mut order).context("reading an order")? == 0 {
                break;
            }
            endpoint.obey(order.trim())?;
        }
        deregister(endpoint.region)?;
        endpoint.buffer.free(FreeBy::Munmap)
    }
}

struct Endpoint {
    machine: Machine,
    port: Port,
    link: Link,
    // Before the memory, so that on failure too it ends first.
    region: Option<Mr>,
    buffer: Buffer,
    /// Memory of the other end.
    other: Option<Remote>,
}

impl Endpoint {
    fn obey(&mut self, order: &str) -> Result<()> {
        let (verb, word) = order.split_once(' ').unwrap_or((order, ""));
        match verb {
            "connect" => {
                let name: Name = word.parse()?;
                self.other = Some(name.memory);
                self.link.connect(&self.port, &name.address, SECONDS)?;
            }
            "put" => self.buffer.put(&self.pattern(word)?)?,
            "check" => match self.buffer.check(&self.pattern(word)?) {
                Ok(()) => say("result", "ok"),
                Err(error) => {
                    say("result", "mismatch");
                    eprintln!("gpuverbs: {}", describe(&error));
                }
            },
            "write" => say("status", self.link.write(self.region()?, self.other()?)?),
            "read" => say("status", self.link.read(self.other()?, self.region()?)?),
            "send" => say("status", self.link.send(self.region()?)?),
            "receive" => {
                self.link.post_receive(self.region()?)?;
                line("posted");
                say("status", self.link.received()?);
            }
            "stream" => self.stream()?,
            "free" => self.buffer.free(FreeBy::Ioctl)?,
            "munmap" => self.buffer.free(FreeBy::Munmap)?,
            "allocate" => self.buffer = Buffer::allocate(&self.machine.gpu, self.buffer.place)?,
            "deregister" => deregister(self.region.take())?,
            _ => bail!("'{order}' is not an order"),
        }
        Ok(())
    }

    /// Writes until one fails: so whatever happens, happens in the middle of one.
    fn stream(&self) -> Result<()> {
        let mut outcome = self.link.write(self.region()?, self.other()?)?;
        if outcome.is_success() {
            line("streaming");
        }
        while outcome.is_success() {
            outcome = self.link.write(self.region()?, self.other()?)?;
        }
        say("status", outcome);
        Ok(())
    }

    fn pattern(&self, seed: &str) -> Result<Vec<u8>> {
        let seed = seed.parse().context("no seed")?;
        Ok(pattern::bytes(seed, self.buffer.place.length as usize))
    }

    fn region(&self) -> Result<&Mr> {
        self.region.as_ref().context("the buffer is not registered any more")
    }

    fn other(&self) -> Result<Remote> {
        self.other.context("not connected yet")
    }
}

/// All that another end must know: GID, queue pair, address and key, in
/// hexadecimal with slashes between them.
struct Name {
    address: Address,
    memory: Remote,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Address { gid, qp }, Remote { addr, rkey }) = (self.address, self.memory);
        write!(f, "{:032x}/{qp:x}/{addr:x}/{rkey:x}", u128::from_be_bytes(gid))
    }
}

impl FromStr for Name {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Result<Vec<u128>, _> =
            text.split('/').map(|part| u128::from_str_radix(part, 16)).collect();
        let [gid, qp, addr, rkey] = parts?[..] else {
            bail!("'{text}' is not what another endpoint says it is");
        };
        Ok(Self {
            address: Address { gid: gid.to_be_bytes(), qp: qp.try_into()? },
            memory: Remote { addr: addr.try_into()?, rkey: rkey.try_into()? },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let text = "00000000000000000000ffffc0a80701/11/7f0000010000/1a2b";
        let name: Name = text.parse().unwrap();
        assert_eq!(name.address.gid[12..], [192, 168, 7, 1]);
        assert_eq!(name.memory.rkey, 0x1a2b);
        assert_eq!(name.to_string(), text);
        for text in ["", "1/2/3", "1/2/3/x", "1/2/3/4/5", "1/100000000/3/4"] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }
}
