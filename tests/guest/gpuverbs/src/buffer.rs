// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A run of bytes in GPU memory, with room around it: what a transfer reads
//! from or writes to, and what shows that it touched nothing else.

use std::sync::Arc;

use anyhow::{bail, ensure, Context, Result};

use crate::gpu::{FreeBy, Gpu, GpuMemory, GPU_PAGE};
use crate::pattern;
use crate::value::size;
use crate::verbs::{Mr, Pd, ALL};

/// What buffers hold before anything good is put into them.
const POISON: u8 = 0xA5;

/// Where a buffer is to be.
#[derive(Clone, Copy)]
pub struct Place {
    /// Of the allocation, in the BAR: of whole GPU pages, for the host looks there.
    pub offset: u64,
    /// Of the buffer, in the allocation.
    pub shift: u64,
    pub length: u64,
}

impl Place {
    /// How much memory it takes.
    pub fn size(&self) -> u64 {
        self.shift + self.length
    }

    /// Offset in the BAR of the buffer's first byte.
    pub fn start(&self) -> u64 {
        self.offset + self.shift
    }
}

/// Where bytes are to be moved from and to, and which.
#[derive(clap::Args)]
pub struct Ends {
    /// Where in the BAR the source is
    #[arg(long, value_parser = size)]
    from: u64,
    /// Where in the BAR the target is
    #[arg(long, value_parser = size)]
    to: u64,
    /// How much to move
    #[arg(long, value_parser = size)]
    length: u64,
    /// Bytes between an offset and its buffer's start
    #[arg(long, value_parser = size, default_value = "0")]
    shift: u64,
    /// Which pattern
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

impl Ends {
    pub fn source(&self, gpu: &Gpu) -> Result<Buffer> {
        let Self { shift, length, .. } = *self;
        Buffer::allocate(gpu, Place { offset: self.from, shift, length })
    }

    pub fn target(&self, gpu: &Gpu) -> Result<Buffer> {
        let Self { shift, length, .. } = *self;
        Buffer::allocate(gpu, Place { offset: self.to, shift, length })
    }

    pub fn pattern(&self) -> Vec<u8> {
        pattern::bytes(self.seed, self.length as usize)
    }

    /// Bytes that are not those of [`Self::pattern`].
    pub fn other_pattern(&self) -> Vec<u8> {
        pattern::bytes(self.seed.wrapping_add(1), self.length as usize)
    }
}

pub struct Buffer {
    memory: GpuMemory,
    pub place: Place,
}

impl Buffer {
    pub fn allocate(gpu: &Gpu, place: Place) -> Result<Self> {
        let offset = place.offset;
        ensure!(offset % GPU_PAGE == 0, "{offset} is not the offset of a GPU page");
        ensure!(place.length > 0, "nothing is no buffer");
        let memory = gpu.allocate(offset, place.size());
        let memory = memory.with_context(|| {
            format!("allocating {} bytes of GPU memory at offset {offset}", place.size())
        })?;
        Ok(Self { memory, place })
    }

    /// Poison in the buffer and all around it.
    pub fn poison(&mut self) -> Result<()> {
        self.put(&vec![POISON; self.place.length as usize])
    }

    /// `bytes` in the buffer, poison all around it.
    pub fn put(&mut self, bytes: &[u8]) -> Result<()> {
        let all = self.around(bytes);
        self.memory.write(0, &all).context("writing GPU memory")
    }

    fn around(&self, bytes: &[u8]) -> Vec<u8> {
        assert_eq!(bytes.len() as u64, self.place.length);
        let mut all = vec![POISON; self.memory.size() as usize];
        all[self.place.shift as usize..self.place.size() as usize].copy_from_slice(bytes);
        all
    }

    /// Whether `bytes` are in the buffer, and poison is all around it.
    pub fn check(&self, bytes: &[u8]) -> Result<()> {
        let (expected, found) = (self.around(bytes), self.memory.read(0, self.memory.size())?);
        let mut wrong = (0..found.len()).filter(|at| found[*at] != expected[*at]);
        let Some(at) = wrong.next() else {
            return Ok(());
        };
        let inside = (self.place.shift..self.place.size()).contains(&(at as u64));
        bail!(
            "the byte at offset {} in the BAR, {} the buffer, is {:#04x} instead of {:#04x}, {} in all are wrong",
            self.place.offset + at as u64,
            if inside { "in" } else { "outside of" },
            found[at],
            expected[at],
            1 + wrong.count()
        )
    }

    pub fn is_poison(&self) -> Result<()> {
        self.check(&vec![POISON; self.place.length as usize])
    }

    pub fn register(&self, pd: &Arc<Pd>) -> Result<Mr> {
        let Place { shift, length, .. } = self.place;
        pd.register(self.memory.range(shift, length), ALL).with_context(|| {
            format!("ibv_reg_mr() of {length} bytes at offset {}", self.place.start())
        })
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
        let mut buffer = Buffer::allocate(&stand_in(3).0, place).unwrap();
        let bytes = pattern::bytes(3, GPU_PAGE as usize);
        buffer.put(&bytes).unwrap();
        assert!(buffer.check(&bytes).is_ok());
        assert!(buffer.is_poison().is_err());
        for (at, place) in [(6, "outside of"), (7, "in"), (65542, "in"), (65543, "outside of")] {
            let before = buffer.memory.read(at as u64, 1).unwrap()[0];
            buffer.memory.write(at as u64, &[!before]).unwrap();
            let error = buffer.check(&bytes).unwrap_err().to_string();
            let text = format!("offset {} in the BAR, {place} the buffer", 65536 + at);
            assert!(error.contains(&text) && error.contains("1 in all"), "{error}");
            buffer.memory.write(at as u64, &[before]).unwrap();
        }
        buffer.poison().unwrap();
        assert!(buffer.is_poison().is_ok());
    }

    #[test]
    fn places_that_are_refused() {
        for (offset, length) in [(1, 1), (0, 0)] {
            assert!(Buffer::allocate(&stand_in(1).0, Place { offset, shift: 0, length }).is_err());
        }
    }
}
