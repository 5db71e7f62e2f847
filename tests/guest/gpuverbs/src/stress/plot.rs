// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A piece of GPU memory with the registrations of it, and words in it that
//! tell whether somebody else has written there.

use std::io;

use crate::gpu::{FreeBy, Gpu, GpuMemory, Range, GPU_PAGE};
use crate::pattern::Random;
use crate::verbs::Mr;

use super::tally::is;

/// The largest piece. It has more pages than one chunk of the kernel's
/// scatterlists takes.
pub const LARGEST: u64 = 160 * GPU_PAGE;

/// Words are in the first so many pages.
const GUARDED: usize = 4;

pub struct Plot {
    memory: GpuMemory,
    pub regions: Vec<Mr>,
    /// We have given the memory back.
    pub freed: bool,
    word: u64,
}

/// Whether the words are still there.
#[derive(Debug, PartialEq, Eq)]
pub enum Words {
    Intact,
    Overwritten,
    /// The driver has taken the memory.
    Gone,
}

/// How much to allocate.
pub fn size(random: &mut Random) -> u64 {
    let pages = random.weighted(&[(85, 4), (13, 24), (2, LARGEST / GPU_PAGE)]);
    (1 + random.below(*pages)) * GPU_PAGE
}

impl Plot {
    pub fn new(gpu: &Gpu, offset: u64, size: u64, word: u64) -> io::Result<Self> {
        let memory = gpu.allocate(offset, size)?;
        let mut plot = Self { memory, regions: Vec::new(), freed: false, word };
        plot.mark()?;
        Ok(plot)
    }

    /// Writes the words. No error if the driver has taken the memory.
    pub fn mark(&mut self) -> io::Result<()> {
        for at in self.guarded() {
            match self.memory.write(at, &self.word.to_ne_bytes()) {
                Err(error) if is(&error, libc::EFAULT) => break,
                result => result?,
            }
        }
        Ok(())
    }

    pub fn words(&self) -> io::Result<Words> {
        for at in self.guarded() {
            match self.memory.read(at, 8) {
                Err(error) if is(&error, libc::EFAULT) => return Ok(Words::Gone),
                Err(error) => return Err(error),
                Ok(word) if word == self.word.to_ne_bytes() => {}
                Ok(_) => return Ok(Words::Overwritten),
            }
        }
        Ok(Words::Intact)
    }

    fn guarded(&self) -> impl Iterator<Item = u64> {
        (0..self.memory.size()).step_by(GPU_PAGE as usize).take(GUARDED)
    }

    /// Any range inside.
    pub fn range(&self, random: &mut Random) -> Range {
        let size = self.memory.size();
        let mut start = random.below(size);
        if random.one_in(2) {
            start -= start % GPU_PAGE;
        }
        // Short ones as often as long ones.
        let longest = match random.one_in(2) {
            true => size - start,
            false => (size - start).min(70_000),
        };
        self.memory.range(start, 1 + random.below(longest))
    }

    /// A range that ends outside.
    pub fn range_too_long(&self, random: &mut Random) -> Range {
        let addr = self.range(random).addr;
        let room = self.memory.range(0, 0).addr + self.memory.size() - addr;
        Range { addr, length: room + 1 + random.below(2 * GPU_PAGE) }
    }

    /// Gives the memory back; an error if the driver had it already.
    pub fn free(&mut self, by: FreeBy) -> io::Result<()> {
        self.freed = true;
        self.memory.free(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::stand_in;

    #[test]
    fn words_tell() {
        let (gpu, file) = stand_in(3);
        let mut plot = Plot::new(&gpu, 0, 3 * GPU_PAGE, 77).unwrap();
        assert_eq!(plot.words().unwrap(), Words::Intact);
        plot.memory.write(2 * GPU_PAGE, &[0]).unwrap();
        assert_eq!(plot.words().unwrap(), Words::Overwritten);
        plot.mark().unwrap();
        assert_eq!(plot.words().unwrap(), Words::Intact);
        // Memory that is gone is no signal.
        file.set_len(0).unwrap();
        assert_eq!(plot.words().unwrap(), Words::Gone);
        plot.mark().unwrap();
    }

    #[test]
    fn ranges_are_where_they_should_be() {
        let mut random = Random::new(4);
        for pages in [1, 2, 130] {
            let plot = Plot::new(&stand_in(pages).0, 0, pages * GPU_PAGE, 77).unwrap();
            let all = plot.memory.range(0, plot.memory.size());
            let end = |range: Range| range.addr + range.length;
            for _ in 0..1000 {
                let range = plot.range(&mut random);
                assert!(range.length > 0 && range.addr >= all.addr && end(range) <= end(all));
                let range = plot.range_too_long(&mut random);
                assert!(range.addr >= all.addr && range.addr < end(all) && end(range) > end(all));
            }
        }
    }

    #[test]
    fn sizes_are_small_and_large() {
        let mut random = Random::new(5);
        let sizes: Vec<u64> = (0..1000).map(|_| size(&mut random)).collect();
        assert!(sizes.iter().all(|size| size % GPU_PAGE == 0 && (1..=LARGEST).contains(size)));
        assert!(sizes.contains(&GPU_PAGE) && sizes.iter().any(|size| *size > 128 * GPU_PAGE));
    }
}
