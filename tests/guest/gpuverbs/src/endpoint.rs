// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! An endpoint is one end of a connection between two machines. It has a piece of GPU memory that
//! the other end may access.
//!
//! The endpoint prints `endpoint=…`, which the other end needs to connect. It then reads orders
//! from its input, one per line, and carries them out. It prints `holding` whenever it waits for an
//! order.

use std::io;

use anyhow::{bail, Context, Result};

use crate::buffer::{Buffer, Place};
use crate::gpu::{FreeBy, Machine};
use crate::pattern;
use crate::value::{line, say, size};
use crate::verbs::{deregister, Address, Link, Mr, Remote, READ, SEND, WRITE};

/// Is one end of a connection between two machines, and takes orders from its input
#[derive(clap::Args)]
pub struct Join {
    /// Offset of the buffer in the BAR
    #[arg(long, value_parser = size)]
    offset: u64,
    /// Length of the buffer, the same at both ends
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
        let mut buffer = Buffer::allocate(machine.gpu, Place { offset, shift, length })?;
        buffer.poison()?;
        let region = buffer.register(&machine.hca)?;
        let link = Link::create(&machine.hca)?;
        let (Address { gid, lid, qp }, Remote { addr, rkey }) = (link.address, region.remote());
        let gid = u128::from_be_bytes(gid);
        say("endpoint", format_args!("{gid:x}/{lid:x}/{qp:x}/{addr:x}/{rkey:x}"));
        let (region, other) = (Some(region), None);
        let mut endpoint = Endpoint { machine, link, region, buffer, other };
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
    link: Link,
    region: Option<Mr>,
    buffer: Buffer,
    /// The other end's memory.
    other: Option<Remote>,
}

impl Endpoint {
    fn obey(&mut self, order: &str) -> Result<()> {
        let (verb, word) = order.split_once(' ').unwrap_or((order, ""));
        let pattern = || {
            let seed = word.parse().context("no seed")?;
            anyhow::Ok(pattern::bytes(seed, self.buffer.place.length as usize))
        };
        let region = || self.region.as_ref().context("the buffer is not registered any more");
        let other = || self.other.context("not connected yet");
        match verb {
            "connect" => {
                let numbers = word.split('/').map(|number| u128::from_str_radix(number, 16));
                let [gid, lid, qp, addr, rkey] = numbers.collect::<Result<Vec<_>, _>>()?[..] else {
                    bail!("'{word}' is not what another endpoint says it is");
                };
                self.other = Some(Remote { addr: addr.try_into()?, rkey: rkey.try_into()? });
                let (gid, lid, qp) = (gid.to_be_bytes(), lid.try_into()?, qp.try_into()?);
                self.link.connect(&Address { gid, lid, qp })?;
            }
            "put" => self.buffer.put(&pattern()?)?,
            "check" => match self.buffer.check(&pattern()?) {
                Ok(()) => say("result", "ok"),
                Err(error) => say("result", format_args!("mismatch: {error:#}")),
            },
            "write" => say("status", self.link.run(WRITE, region()?, Some(other()?))?),
            "read" => say("status", self.link.run(READ, region()?, Some(other()?))?),
            "send" => say("status", self.link.run(SEND, region()?, None)?),
            "receive" => {
                self.link.post_receive(region()?)?;
                line("posted");
                say("status", self.link.received()?);
            }
            // Writes again and again until a write fails, so that the memory is freed during a
            // write.
            "stream" => {
                let mut status = self.link.run(WRITE, region()?, Some(other()?))?;
                if status.is_success() {
                    line("streaming");
                }
                while status.is_success() {
                    status = self.link.run(WRITE, region()?, Some(other()?))?;
                }
                say("status", status);
            }
            "free" => self.buffer.free(FreeBy::Ioctl)?,
            "munmap" => self.buffer.free(FreeBy::Munmap)?,
            "allocate" => self.buffer = Buffer::allocate(self.machine.gpu, self.buffer.place)?,
            "deregister" => deregister(self.region.take())?,
            _ => bail!("'{order}' is not an order"),
        }
        Ok(())
    }
}
