// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! `endpoint`: one end of a connection between two machines, and a piece of GPU
//! memory that the other end may reach.
//!
//! It says `endpoint=…`, which the other end needs to connect, and then takes
//! orders, a line each. It says `holding` whenever it waits for one.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::args::{Args, Command, Opt};
use crate::buffer::{Buffer, Place};
use crate::failure::Failure;
use crate::gpu::FreeBy;
use crate::machine::{self, Machine};
use crate::output;
use crate::pattern::Pattern;
use crate::verbs::{Address, Link, Mr, Outcome, Pd, Port, Remote, PORT_OPTIONS};

pub const COMMAND: Command = Command {
    name: "endpoint",
    summary: "Is one end of a connection between two machines, and takes orders from its input",
    options: &[
        &[
            Opt::required("offset", "OFFSET", "where in the BAR the buffer is"),
            Opt::required("length", "SIZE", "of the buffer, the same at both ends"),
            Opt::optional(
                "shift",
                "N",
                "bytes between an offset and its buffer's start",
            ),
        ],
        machine::OPTIONS,
        PORT_OPTIONS,
    ],
    run,
};

fn run(args: &Args) -> Result<(), Failure> {
    let shift = args.number("shift")?.unwrap_or(0);
    let place = Place::aligned(args.required("offset")?, shift, args.required("length")?)?;
    let machine = Machine::open(args)?;
    let port = machine.port(args)?;
    let pd = Pd::allocate(&machine.device)?;
    let mut buffer = Buffer::allocate(&machine.gpu, place)?;
    buffer.poison();
    let region = buffer.register(&pd)?;
    let link = Link::create(&pd, &port)?;
    let name = Name {
        address: link.address(),
        memory: region.remote(),
    };
    output::value("endpoint", name);
    output::value("target_offset", place.start());
    let mut endpoint = Endpoint {
        machine,
        port,
        link,
        region: Some(region),
        buffer,
        other: None,
        _pd: pd,
    };
    for order in orders() {
        endpoint.obey(&order?)?;
    }
    endpoint.finish()
}

/// Lines of the input, until it ends.
fn orders() -> impl Iterator<Item = Result<String, Failure>> {
    std::iter::from_fn(|| {
        output::line("holding");
        let mut line = String::new();
        match io::stdin().read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(line)),
            Err(error) => Some(Err(Failure::unmet("reading an order")(error))),
        }
    })
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
    _pd: Arc<Pd>,
}

impl Endpoint {
    fn obey(&mut self, order: &str) -> Result<(), Failure> {
        let words: Vec<&str> = order.split_whitespace().collect();
        match words.as_slice() {
            ["connect", name] => self.connect(name),
            ["put", seed] => {
                let bytes = self.pattern(seed)?;
                self.buffer.put(&bytes);
                Ok(())
            }
            ["check", seed] => {
                let bytes = self.pattern(seed)?;
                self.check(&bytes);
                Ok(())
            }
            ["write"] => say(self.link.write(self.region()?, self.other()?)?),
            ["read"] => say(self.link.read(self.other()?, self.region()?)?),
            ["send"] => say(self.link.send(self.region()?)?),
            ["receive"] => self.receive(),
            ["stream"] => self.stream(),
            ["free"] => self.buffer.free(FreeBy::Ioctl),
            ["munmap"] => self.buffer.free(FreeBy::Munmap),
            ["allocate"] => {
                self.buffer = Buffer::allocate(&self.machine.gpu, self.buffer.place())?;
                Ok(())
            }
            ["deregister"] => self.deregister(),
            _ => Err(Failure::Unmet(format!(
                "'{}' is not an order",
                order.trim()
            ))),
        }
    }

    fn connect(&mut self, name: &str) -> Result<(), Failure> {
        let name = Name::parse(name).ok_or_else(|| {
            Failure::Unmet(format!("'{name}' is not what another endpoint says it is"))
        })?;
        self.other = Some(name.memory);
        self.link.connect(&self.port, &name.address)
    }

    fn receive(&self) -> Result<(), Failure> {
        self.link.post_receive(self.region()?)?;
        output::line("posted");
        say(self.link.received()?)
    }

    /// Writes until one fails: so whatever happens, happens in the middle of one.
    fn stream(&self) -> Result<(), Failure> {
        for writes in 0u64.. {
            let outcome = self.link.write(self.region()?, self.other()?)?;
            if !outcome.is_success() {
                output::value("writes", writes);
                return say(outcome);
            }
            if writes == 0 {
                output::line("streaming");
            }
        }
        Ok(())
    }

    fn check(&self, bytes: &[u8]) {
        match self.buffer.check(bytes) {
            Ok(()) => output::value("result", "ok"),
            Err(mismatch) => {
                output::value("result", "mismatch");
                eprintln!("gpuverbs: {mismatch}");
            }
        }
    }

    fn pattern(&self, seed: &str) -> Result<Vec<u8>, Failure> {
        let seed = seed
            .parse()
            .map_err(|_| Failure::Unmet(format!("'{seed}' is not a seed")))?;
        Ok(Pattern::bytes(seed, self.buffer.length()))
    }

    fn region(&self) -> Result<&Mr, Failure> {
        self.region
            .as_ref()
            .ok_or_else(|| Failure::Unmet("the buffer is not registered any more".to_owned()))
    }

    fn other(&self) -> Result<Remote, Failure> {
        self.other
            .ok_or_else(|| Failure::Unmet("not connected yet".to_owned()))
    }

    fn deregister(&mut self) -> Result<(), Failure> {
        match self.region.take() {
            Some(region) => region
                .deregister()
                .map_err(Failure::unmet("ibv_dereg_mr()")),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> Result<(), Failure> {
        self.deregister()?;
        self.buffer.free(FreeBy::Munmap)
    }
}

fn say(outcome: Outcome) -> Result<(), Failure> {
    output::value("status", outcome);
    Ok(())
}

/// All that another end must know: GID, queue pair, first packet, address and
/// key, in hexadecimal with slashes between them.
struct Name {
    address: Address,
    memory: Remote,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:032x}/{:x}/{:x}/{:x}/{:x}",
            u128::from_be_bytes(self.address.gid),
            self.address.qp,
            self.address.first_packet,
            self.memory.addr,
            self.memory.rkey
        )
    }
}

impl Name {
    fn parse(text: &str) -> Option<Self> {
        let parts: Vec<&str> = text.split('/').collect();
        let [gid, qp, first_packet, addr, rkey] = parts[..] else {
            return None;
        };
        Some(Self {
            address: Address {
                gid: u128::from_str_radix(gid, 16).ok()?.to_be_bytes(),
                qp: u32::from_str_radix(qp, 16).ok()?,
                first_packet: u32::from_str_radix(first_packet, 16).ok()?,
            },
            memory: Remote {
                addr: u64::from_str_radix(addr, 16).ok()?,
                rkey: u32::from_str_radix(rkey, 16).ok()?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        let text = "00000000000000000000ffffc0a80701/11/300000/7f0000010000/1a2b";
        let name = Name::parse(text).unwrap();
        assert_eq!(name.address.gid[12..], [192, 168, 7, 1]);
        assert_eq!(name.memory.rkey, 0x1a2b);
        assert_eq!(name.to_string(), text);
        for text in ["", "1/2/3/4", "1/2/3/4/x", "1/2/3/4/5/6"] {
            assert!(Name::parse(text).is_none(), "{text}");
        }
    }
}
