// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A buffer in GPU memory, the source or target of a transfer. Bytes around the buffer show
//! whether the transfer touched other memory.

use anyhow::{bail, ensure, Context, Result};

use crate::gpu::{FreeBy, Gpu, GpuMemory, Machine, GPU_PAGE};
use crate::pattern;
use crate::value::size;
use crate::verbs::{Hca, Mr, ALL};

/// The bytes of a buffer before it is filled.
const POISON: u8 = 0xA5;

/// The place of a buffer in GPU memory.
#[derive(Clone, Copy)]
pub struct Place {
    /// Offset of the allocation in the BAR, a multiple of the GPU's page. The host looks for the
    /// bytes at this offset.
    pub offset: u64,
    /// Offset of the buffer in the allocation.
    pub shift: u64,
    pub length: u64,
}

/// Source and target of a transfer, and its bytes.
#[derive(clap::Args)]
pub struct Ends {
    /// Offset of the source in the BAR
    #[arg(long, value_parser = size)]
    from: u64,
    /// Offset of the target in the BAR
    #[arg(long, value_parser = size)]
    to: u64,
    /// Number of bytes to move
    #[arg(long, value_parser = size)]
    length: u64,
    /// Bytes between an offset and its buffer's start
    #[arg(long, value_parser = size, default_value = "0")]
    shift: u64,
    /// Seed of the pattern
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Ends {
    /// Allocates and registers the source, filled with [`Self::pattern`], and the target, filled
    /// with poison.
    pub fn registered(&self, machine: &Machine) -> Result<([Buffer; 2], [Mr; 2])> {
        let to = Place { offset: self.to, shift: self.shift, length: self.length };
        let mut source = Buffer::allocate(machine.gpu, Place { offset: self.from, ..to })?;
        let mut target = Buffer::allocate(machine.gpu, to)?;
        source.put(&self.pattern())?;
        target.poison()?;
        let regions = [source.register(&machine.hca)?, target.register(&machine.hca)?];
        Ok(([source, target], regions))
    }

    pub fn pattern(&self) -> Vec<u8> {
        pattern::bytes(self.seed, self.length as usize)
    }

    /// Returns bytes that differ from [`Self::pattern`].
    pub fn other_pattern(&self) -> Vec<u8> {
        pattern::bytes(self.seed.wrapping_add(1), self.length as usize)
    }
}

pub struct Buffer {
    memory: GpuMemory,
    pub place: Place,
}

impl Buffer {
    pub fn allocate(gpu: Gpu, place: Place) -> Result<Self> {
        let Place { offset, shift, length } = place;
        ensure!(offset % GPU_PAGE == 0, "{offset} is not the offset of a GPU page");
        ensure!(length > 0, "nothing is no buffer");
        let memory = gpu.allocate(offset, shift + length);
        let memory = memory.with_context(|| {
            format!("allocating {} bytes of GPU memory at offset {offset}", shift + length)
        })?;
        Ok(Self { memory, place })
    }

    /// Fills the buffer and the bytes around it with poison.
    pub fn poison(&mut self) -> Result<()> {
        self.put(&vec![POISON; self.place.length as usize])
    }

    /// Puts `bytes` into the buffer, and poison around it.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let all = self.around(bytes);
        self.memory.write(0, &all).context("writing GPU memory")
    }

    fn around(&self, bytes: &[u8]) -> Vec<u8> {
        let mut all = vec![POISON; self.memory.size as usize];
        all[self.place.shift as usize..][..self.place.length as usize].copy_from_slice(bytes);
        all
    }

    /// Checks that the buffer contains `bytes`, and that the memory around the buffer still
    /// contains poison.
    pub fn check(&self, bytes: &[u8]) -> Result<()> {
        let (expected, found) = (self.around(bytes), self.memory.read(0, self.memory.size)?);
        let mut wrong = (0..found.len()).filter(|at| found[*at] != expected[*at]);
        let Some(at) = wrong.next() else { return Ok(()) };
        bail!(
            "byte {at} behind offset {} in the BAR is {:#04x} instead of {:#04x}, {} in all are wrong",
            self.place.offset,
            found[at],
            expected[at],
            1 + wrong.count()
        )
    }

    pub fn is_poison(&self) -> Result<()> {
        self.check(&vec![POISON; self.place.length as usize])
    }

    pub fn register(&self, hca: &Hca) -> Result<Mr> {
        let Place { offset, shift, length } = self.place;
        hca.register(self.memory.range(shift, length), ALL)
            .with_context(|| format!("registering {length} bytes at offset {offset} + {shift}"))
    }

    pub fn free(&mut self, by: FreeBy) -> Result<()> {
        self.memory.free(by).context("freeing GPU memory")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::stand_in;

    #[test]
    fn no_byte_may_differ() {
        let place = Place { offset: GPU_PAGE, shift: 7, length: GPU_PAGE };
        let mut buffer = Buffer::allocate(stand_in(3), place).unwrap();
        let bytes = pattern::bytes(3, GPU_PAGE as usize);
        buffer.put(&bytes).unwrap();
        assert!(buffer.check(&bytes).is_ok() && buffer.is_poison().is_err());
        for at in [6, 7, 65542, 65543] {
            let before = buffer.memory.read(at, 1).unwrap()[0];
            buffer.memory.write(at, &[!before]).unwrap();
            let error = buffer.check(&bytes).unwrap_err().to_string();
            assert!(error.starts_with(&format!("byte {at} ")) && error.contains("1 in all"));
            buffer.memory.write(at, &[before]).unwrap();
        }
        buffer.poison().unwrap();
        assert!(buffer.is_poison().is_ok() && buffer.check(&bytes).is_err());
    }
}
