// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The RDMA core's use of memory without a device: one registration for each
//! time that its file is open (`peer_consumer.c` of the lab's core).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};

use crate::failure::Failure;
use crate::gpu::Range;

const FILE: &str = "/sys/kernel/debug/peer_mem_lab/umem";

/// Whether the device could give the memory up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As for memory regions.
    Revocable,
    /// As for what the hardware owns: queues, doorbells.
    Fixed,
}

impl Way {
    pub const CHOICES: &'static [(&'static str, Self)] =
        &[("revocable", Self::Revocable), ("fixed", Self::Fixed)];

    fn word(self) -> &'static str {
        match self {
            Self::Revocable => "revocable",
            Self::Fixed => "fixed",
        }
    }
}

/// What came of a registration.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    pub register_ticks: u64,
    pub deregister_ticks: u64,
    pub entries: u64,
    pub page_size: u64,
    pub revoked: bool,
}

pub struct Consumer {
    file: File,
}

impl Consumer {
    pub fn open() -> Result<Self, Failure> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(FILE)
            .map_err(Failure::environment(format_args!(
                "this RDMA core is not the lab's: cannot open {FILE}"
            )))?;
        Ok(Self { file })
    }

    pub fn register(&mut self, range: Range, way: Way) -> io::Result<()> {
        self.command(&format!("register {}", words(range, way)))
    }

    pub fn deregister(&mut self) -> io::Result<()> {
        self.command("deregister")
    }

    /// Registers and deregisters, `cycles` times.
    pub fn repeat(&mut self, range: Range, way: Way, cycles: u64) -> io::Result<()> {
        self.command(&format!("repeat {} {cycles}", words(range, way)))
    }

    fn command(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(text.as_bytes())
    }

    pub fn outcome(&mut self) -> io::Result<Outcome> {
        let mut text = String::new();
        self.file.rewind()?;
        self.file.read_to_string(&mut text)?;
        let mut outcome = Outcome::default();
        for line in text.lines() {
            let (name, number) = line.split_once(' ').ok_or(io::ErrorKind::InvalidData)?;
            let number = number.parse().map_err(|_| io::ErrorKind::InvalidData)?;
            match name {
                "register_ticks" => outcome.register_ticks = number,
                "deregister_ticks" => outcome.deregister_ticks = number,
                "entries" => outcome.entries = number,
                "page_size" => outcome.page_size = number,
                "revoked" => outcome.revoked = number != 0,
                _ => {}
            }
        }
        Ok(outcome)
    }
}

fn words(range: Range, way: Way) -> String {
    format!("{} {} {}", range.addr(), range.length(), way.word())
}
