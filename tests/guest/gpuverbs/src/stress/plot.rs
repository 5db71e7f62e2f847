// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A piece of GPU memory with the registrations of it, and words in it that
//! tell whether somebody else has written there.

use std::fs::File;
use std::io;

use crate::gpu::{FreeBy, Gpu, GpuMemory, Range, GPU_PAGE};
use crate::random::Random;
use crate::sys;
use crate::verbs::Mr;

use super::tally::is;

/// The largest piece. It has more pages than one chunk of the kernel's
/// scatterlists takes.
pub const LARGEST: u64 = 160 * GPU_PAGE;

/// Words are in the first so many pages.
const GUARDED: usize = 4;

pub struct Plot {
    pub memory: GpuMemory,
    pub regions: Vec<Mr>,
    /// We have given the memory back.
    pub freed: bool,
    word: u64,
}

/// Whether the words are still there.
#[derive(PartialEq, Eq)]
pub enum Words {
    Intact,
    Overwritten,
    /// The driver has taken the memory.
    Gone,
}

/// How much to allocate.
pub fn size(random: &mut Random) -> u64 {
    let pages = random.weighted(&[(85, 4), (13, 24), (2, LARGEST / GPU_PAGE)]);
    (1 + random.below(pages)) * GPU_PAGE
}

impl Plot {
    pub fn new(gpu: &Gpu, offset: u64, size: u64, word: u64, scratch: &File) -> io::Result<Self> {
        let mut plot = Self {
            memory: gpu.allocate(offset, size)?,
            regions: Vec::new(),
            freed: false,
            word,
        };
        plot.mark(scratch)?;
        Ok(plot)
    }

    /// Writes the words. No error if the driver has taken the memory.
    pub fn mark(&mut self, scratch: &File) -> io::Result<()> {
        for at in self.guarded() {
            match self.memory.poke(scratch, at, self.word) {
                Err(error) if is(&error, sys::EFAULT) => break,
                result => result?,
            }
        }
        Ok(())
    }

    pub fn words(&self, scratch: &File) -> io::Result<Words> {
        for at in self.guarded() {
            match self.memory.peek(scratch, at) {
                Err(error) if is(&error, sys::EFAULT) => return Ok(Words::Gone),
                Err(error) => return Err(error),
                Ok(word) if word == self.word => {}
                Ok(_) => return Ok(Words::Overwritten),
            }
        }
        Ok(Words::Intact)
    }

    fn guarded(&self) -> impl Iterator<Item = usize> {
        (0..self.memory.size())
            .step_by(GPU_PAGE as usize)
            .take(GUARDED)
    }

    /// Any range inside.
    pub fn range(&self, random: &mut Random) -> Range {
        let size = self.memory.size();
        let mut start = random.index(size);
        if random.one_in(2) {
            start -= start % GPU_PAGE as usize;
        }
        // Short ones as often as long ones.
        let longest = if random.one_in(2) {
            size - start
        } else {
            (size - start).min(70_000)
        };
        self.memory.range(start, 1 + random.index(longest))
    }

    /// A range that ends outside.
    pub fn range_too_long(&self, random: &mut Random) -> Range {
        let inside = self.range(random);
        let start = self.memory.range(0, 0).addr();
        let room = (start + self.memory.size() as u64 - inside.addr()) as usize;
        Range::of_addresses(
            inside.addr(),
            room + 1 + random.index(2 * GPU_PAGE as usize),
        )
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
    use crate::gpu::scratch_file;

    fn plot(size: u64) -> Plot {
        let file = scratch_file().unwrap();
        file.set_len(size).unwrap();
        Plot::new(&Gpu::of_file(file), 0, size, 77, &scratch_file().unwrap()).unwrap()
    }

    #[test]
    fn words_tell() {
        let scratch = scratch_file().unwrap();
        for pages in [1, 3, 9] {
            let mut plot = plot(pages * GPU_PAGE);
            assert!(plot.words(&scratch).unwrap() == Words::Intact);
            plot.memory.write(0, &[0]);
            assert!(plot.words(&scratch).unwrap() == Words::Overwritten);
            plot.mark(&scratch).unwrap();
            assert!(plot.words(&scratch).unwrap() == Words::Intact);
        }
    }

    #[test]
    fn memory_that_is_gone_is_no_signal() {
        let scratch = scratch_file().unwrap();
        let file = scratch_file().unwrap();
        file.set_len(GPU_PAGE).unwrap();
        let mut plot = Plot::new(
            &Gpu::of_file(file.try_clone().unwrap()),
            0,
            GPU_PAGE,
            77,
            &scratch,
        )
        .unwrap();
        file.set_len(0).unwrap();
        assert!(plot.words(&scratch).unwrap() == Words::Gone);
        plot.mark(&scratch).unwrap();
    }

    #[test]
    fn ranges_are_where_they_should_be() {
        let mut random = Random::new(4);
        for pages in [1, 2, 130] {
            let plot = plot(pages * GPU_PAGE);
            let all = plot.memory.range(0, plot.memory.size());
            let end = |range: Range| range.addr() + range.length() as u64;
            for _ in 0..1000 {
                let range = plot.range(&mut random);
                assert!(range.length() > 0);
                assert!(range.addr() >= all.addr() && end(range) <= end(all));
                let range = plot.range_too_long(&mut random);
                assert!(range.addr() >= all.addr() && range.addr() < end(all));
                assert!(end(range) > end(all));
            }
        }
    }

    #[test]
    fn sizes_are_small_and_large() {
        let mut random = Random::new(5);
        let sizes: Vec<u64> = (0..1000).map(|_| size(&mut random)).collect();
        assert!(sizes
            .iter()
            .all(|size| size % GPU_PAGE == 0 && *size <= LARGEST && *size > 0));
        assert!(sizes.contains(&GPU_PAGE));
        assert!(sizes.iter().any(|size| *size > 128 * GPU_PAGE));
    }
}
