// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of different kinds, without a gap between, in the address space.

use std::io;
use std::ptr;

use crate::args;
use crate::gpu::{Gpu, GpuMemory, GPU_PAGE};
use crate::sys;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An allocation of its own.
    Gpu,
    Host,
    /// Nothing at all.
    Hole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    kind: Kind,
    size: u64,
}

impl Part {
    /// `gpu:64K,host:128K`: sizes are multiples of a GPU page.
    pub fn parse_all(text: &str) -> Option<Vec<Self>> {
        text.split(',').map(Self::parse).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let (kind, size) = text.split_once(':')?;
        let kind = match kind {
            "gpu" => Kind::Gpu,
            "host" => Kind::Host,
            "hole" => Kind::Hole,
            _ => return None,
        };
        let size = args::number(size)?;
        (size > 0 && size % GPU_PAGE == 0).then_some(Self { kind, size })
    }
}

/// Parts in memory. The addresses of host memory and holes stay reserved until
/// the process ends.
pub struct Layout {
    start: u64,
    size: u64,
    gpu: Vec<GpuMemory>,
}

impl Layout {
    pub fn new(gpu: &Gpu, mut offset: u64, parts: &[Part]) -> io::Result<Self> {
        let size = parts.iter().map(|part| part.size).sum();
        let mut layout = Self {
            start: reserve(size)?,
            size,
            gpu: Vec::new(),
        };
        let mut at = layout.start;
        for part in parts {
            match part.kind {
                Kind::Gpu => {
                    // SAFETY: a part of what has been reserved.
                    let memory = unsafe { gpu.map(at as *mut _, offset, part.size) }?;
                    layout.gpu.push(memory);
                    offset += part.size;
                }
                Kind::Host => host(at, part.size)?,
                Kind::Hole => {}
            }
            at += part.size;
        }
        Ok(layout)
    }

    pub fn start(&self) -> u64 {
        self.start
    }

    pub fn size(&self) -> u64 {
        self.size
    }

    pub fn gpu_memory(&self) -> &[GpuMemory] {
        &self.gpu
    }
}

/// Addresses that nobody else gets, from a multiple of the GPU page on.
fn reserve(size: u64) -> io::Result<u64> {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE;
    // SAFETY: at an address of the kernel's choice.
    let start = unsafe { map(0, size + GPU_PAGE, sys::PROT_NONE, flags) }?;
    Ok(start.next_multiple_of(GPU_PAGE))
}

fn host(at: u64, size: u64) -> io::Result<()> {
    let flags = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_FIXED;
    // SAFETY: a part of what has been reserved.
    unsafe { map(at, size, sys::PROT_READ | sys::PROT_WRITE, flags) }.map(|_| ())
}

/// # Safety
///
/// With `MAP_FIXED`, what is at `at` must be the caller's to replace.
unsafe fn map(at: u64, size: u64, protection: u32, flags: u32) -> io::Result<u64> {
    // SAFETY: by this function's requirement.
    let memory = unsafe {
        sys::mmap(
            ptr::with_exposed_provenance_mut(at as usize),
            size as usize,
            protection as i32,
            flags as i32,
            -1,
            0,
        )
    };
    match memory as isize {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(memory as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::scratch_file;

    #[test]
    fn parts_are_read() {
        let parts = Part::parse_all("gpu:64K,host:128K,hole:1M").unwrap();
        let sizes: Vec<u64> = parts.iter().map(|part| part.size).collect();
        assert_eq!(sizes, [64 << 10, 128 << 10, 1 << 20]);
        for text in ["", "gpu", "gpu:", "gpu:1", "gpu:0", "disk:64K", "gpu:64K,"] {
            assert_eq!(Part::parse_all(text), None, "{text}");
        }
    }

    #[test]
    fn parts_lie_one_behind_the_other() {
        let file = scratch_file().unwrap();
        file.set_len(4 * GPU_PAGE).unwrap();
        let parts = Part::parse_all("gpu:128K,host:64K,gpu:64K").unwrap();
        let layout = Layout::new(&Gpu::of_file(file), 0, &parts).unwrap();
        assert_eq!(layout.start() % GPU_PAGE, 0);
        assert_eq!(layout.size(), 4 * GPU_PAGE);
        let starts: Vec<u64> = layout
            .gpu_memory()
            .iter()
            .map(|memory| memory.range(0, 0).addr() - layout.start())
            .collect();
        assert_eq!(starts, [0, 3 * GPU_PAGE]);
    }
}
