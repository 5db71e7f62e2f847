// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the simulated GPU: the part of its BAR that this process has
//! allocated, mapped for the CPU.
//!
//! Nobody ever gets a reference into that memory: a NIC reads and writes it, too, and
//! what is behind an address may be taken away while the address still stands in a
//! registration.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::ptr::with_exposed_provenance_mut;
use std::sync::Arc;

use anyhow::{bail, Context, Result};
use nix::errno::Errno;
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};

use crate::sys;
use crate::value;
use crate::verbs::{Device, Pd};

/// What a GPU's memory is made of.
pub const GPU_PAGE: u64 = sys::LAB_GPU_PAGE_SIZE as u64;

/// What is opened for GPU memory, unless `LAB_GPU` in the environment names another file:
/// where there is no double, memory of any kind that a program may have.
const DEVICE: &str = "/dev/nvidia-lab";

/// How GPU memory is given back.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum FreeBy {
    /// The driver's ioctl: the memory goes, the mapping's address range stays
    Ioctl,
    /// The address range goes, and the memory with it
    Munmap,
}

/// The machine that a command runs on: its GPU and its RDMA device.
pub struct Machine {
    pub gpu: Gpu,
    pub pd: Arc<Pd>,
}

impl Machine {
    pub fn open() -> Result<Self> {
        let gpu = Gpu::open()?;
        let pd = Pd::allocate(Device::open()?)?;
        Ok(Self { gpu, pd })
    }
}

#[derive(Clone)]
pub struct Gpu {
    file: Arc<File>,
}

impl Gpu {
    pub fn open() -> Result<Self> {
        let path = std::env::var("LAB_GPU").unwrap_or_else(|_| DEVICE.to_owned());
        let file = File::options().read(true).write(true).open(&path);
        let file = file.with_context(|| format!("no GPU: opening {path}"))?;
        Ok(Self { file: Arc::new(file) })
    }

    /// Allocates the GPU memory at `offset` in the BAR: `length` bytes, rounded
    /// up to whole GPU pages.
    pub fn allocate(&self, offset: u64, length: u64) -> io::Result<GpuMemory> {
        // SAFETY: at an address of the kernel's choice.
        unsafe { self.map(0, offset, length) }
    }

    /// # Safety
    ///
    /// What is mapped at `addr`, if that is not 0, must be the caller's to replace.
    unsafe fn map(&self, addr: u64, offset: u64, length: u64) -> io::Result<GpuMemory> {
        let fixed = if addr == 0 { 0 } else { libc::MAP_FIXED };
        let size = length.max(1).checked_next_multiple_of(GPU_PAGE);
        let size = size.ok_or(io::ErrorKind::OutOfMemory)?;
        let (fd, scratch) = (self.file.as_raw_fd(), scratch_file()?);
        // SAFETY: by this function's requirement.
        let addr = unsafe { map(addr, size, READ_WRITE, libc::MAP_SHARED | fixed, fd, offset) }?;
        let file = Arc::clone(&self.file);
        Ok(GpuMemory { file, scratch, addr, size, backed: true, mapped: true })
    }
}

pub const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// # Safety
///
/// With `MAP_FIXED`, what is at `addr` must be the caller's to replace.
pub unsafe fn map(
    addr: u64,
    size: u64,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: u64,
) -> io::Result<u64> {
    let addr = with_exposed_provenance_mut(addr as usize);
    // SAFETY: by this function's requirement; a descriptor, or -1.
    let memory = unsafe { libc::mmap(addr, size as usize, protection, flags, fd, offset as i64) };
    match memory {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(memory as u64),
    }
}

/// One allocation. Given back when dropped.
pub struct GpuMemory {
    file: Arc<File>,
    /// What the kernel copies from and to.
    scratch: File,
    addr: u64,
    size: u64,
    /// The GPU memory has not been given back.
    backed: bool,
    /// The address range has not been given back.
    mapped: bool,
}

/// A range of addresses, to register it: any, for those who try what must be
/// refused.
#[derive(Clone, Copy)]
pub struct Range {
    pub addr: u64,
    pub length: u64,
}

impl GpuMemory {
    pub fn size(&self) -> u64 {
        self.size
    }

    /// `length` bytes from `start` on.
    ///
    /// # Panics
    /// If they are not all in this allocation.
    pub fn range(&self, start: u64, length: u64) -> Range {
        self.at(start, length);
        Range { addr: self.addr + start, length }
    }

    /// Has the kernel write what is to be at `start`: it fails gently where the memory
    /// has been taken away, and writing ourselves would be a signal.
    pub fn write(&mut self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let to = self.at(start, bytes.len() as u64).cast();
        self.scratch.write_all_at(bytes, 0)?;
        let fd = self.scratch.as_raw_fd();
        // SAFETY: in bounds, by at(); nobody has a reference.
        moved_all(bytes.len(), unsafe { libc::pread(fd, to, bytes.len(), 0) })
    }

    /// As [`Self::write`].
    pub fn read(&self, start: u64, length: u64) -> io::Result<Vec<u8>> {
        let from = self.at(start, length).cast();
        let mut bytes = vec![0; length as usize];
        let fd = self.scratch.as_raw_fd();
        // SAFETY: as above.
        moved_all(bytes.len(), unsafe { libc::pwrite(fd, from, bytes.len(), 0) })?;
        self.scratch.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn at(&self, start: u64, length: u64) -> *mut u8 {
        assert!(self.backed && self.mapped, "this GPU memory has been freed");
        assert!(
            start.checked_add(length).is_some_and(|end| end <= self.size),
            "{length} bytes at {start} are not in an allocation of {}",
            self.size
        );
        with_exposed_provenance_mut((self.addr + start) as usize)
    }

    /// How many pins of this allocation there are, of either kind.
    pub fn pins(&self) -> Result<u32> {
        let mut address = sys::lab_gpu_address { addr: self.addr };
        // SAFETY: the structure that this ioctl reads.
        unsafe { self.ioctl(sys::LAB_GPU_PINS, (&raw mut address).cast()) }
            .context("asking the GPU for its pins")
    }

    /// # Safety
    ///
    /// `argument` must be what this ioctl takes.
    unsafe fn ioctl(&self, request: u32, argument: *mut c_void) -> io::Result<u32> {
        // SAFETY: by this function's requirement; the file is open.
        let rc = unsafe { libc::ioctl(self.file.as_raw_fd(), request.into(), argument) };
        Ok(Errno::result(rc)? as u32)
    }

    /// Gives the memory back, whatever may still be registered of it.
    pub fn free(&mut self, by: FreeBy) -> io::Result<()> {
        match by {
            FreeBy::Ioctl => {
                let mut request = sys::lab_gpu_address { addr: self.addr };
                // SAFETY: the request that this ioctl reads. The memory that
                // goes is reached only through `self`, which forgets it.
                unsafe { self.ioctl(sys::LAB_GPU_FREE, (&raw mut request).cast()) }?;
            }
            FreeBy::Munmap if self.mapped => {
                let addr = with_exposed_provenance_mut(self.addr as usize);
                // SAFETY: a mapping of our own, reached only through `self`,
                // which forgets it.
                Errno::result(unsafe { libc::munmap(addr, self.size as usize) })?;
                self.mapped = false;
            }
            FreeBy::Munmap => {}
        }
        self.backed = false;
        Ok(())
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        if let Err(error) = self.free(FreeBy::Munmap) {
            eprintln!("gpuverbs: munmap() of GPU memory: {error}");
        }
    }
}

/// The answer of a call that was to move so many bytes.
fn moved_all(length: usize, moved: isize) -> io::Result<()> {
    match Errno::result(moved)? as usize {
        moved if moved == length => Ok(()),
        // All before memory that has been taken away.
        _ => Err(Errno::EFAULT.into()),
    }
}

/// A file of no name.
fn scratch_file() -> io::Result<File> {
    Ok(memfd_create(c"gpuverbs", MemFdCreateFlag::MFD_CLOEXEC)?.into())
}

/// A kind of memory in a [`Layout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
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

/// For the command line: `gpu:64K`, `host:128K`, `hole:64K`. Sizes are multiples
/// of a GPU page.
impl std::str::FromStr for Part {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (kind, size) = text.split_once(':').context("not KIND:SIZE")?;
        let kind = match kind {
            "gpu" => Kind::Gpu,
            "host" => Kind::Host,
            "hole" => Kind::Hole,
            _ => bail!("neither gpu nor host nor hole"),
        };
        match value::size(size) {
            Ok(size) if size > 0 && size % GPU_PAGE == 0 => Ok(Self { kind, size }),
            _ => bail!("its size is no multiple of 64K"),
        }
    }
}

/// Memory of different kinds, without a gap between, in the address space. The
/// addresses of host memory and holes stay reserved until the process ends.
pub struct Layout {
    pub start: u64,
    pub size: u64,
    pub gpu: Vec<GpuMemory>,
}

impl Layout {
    /// The parts of the GPU's memory begin at `offset` in the BAR.
    pub fn new(gpu: &Gpu, parts: &[Part], mut offset: u64) -> io::Result<Self> {
        const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let size = parts.iter().map(|part| part.size).sum();
        // SAFETY: at an address of the kernel's choice.
        let reserved = unsafe { map(0, size + GPU_PAGE, libc::PROT_NONE, ANONYMOUS, -1, 0) }?;
        let start = reserved.next_multiple_of(GPU_PAGE);
        let mut layout = Self { start, size, gpu: Vec::new() };
        let mut at = start;
        for part in parts {
            match part.kind {
                Kind::Gpu => {
                    // SAFETY: a part of what has been reserved.
                    layout.gpu.push(unsafe { gpu.map(at, offset, part.size) }?);
                    offset += part.size;
                }
                Kind::Host => {
                    let flags = ANONYMOUS | libc::MAP_FIXED;
                    // SAFETY: as above.
                    unsafe { map(at, part.size, READ_WRITE, flags, -1, 0) }?;
                }
                Kind::Hole => {}
            }
            at += part.size;
        }
        Ok(layout)
    }
}

/// Memory as long as these pages, in place of a GPU's, and the file that it is.
#[cfg(test)]
pub fn stand_in(pages: u64) -> (Gpu, Arc<File>) {
    let file = Arc::new(scratch_file().unwrap());
    file.set_len(pages * GPU_PAGE).unwrap();
    (Gpu { file: Arc::clone(&file) }, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_one_behind_the_other() {
        let parts: Vec<Part> =
            ["gpu:128K", "host:64K", "gpu:64K"].map(|text| text.parse().unwrap()).into();
        let layout = Layout::new(&stand_in(4).0, &parts, 0).unwrap();
        assert_eq!(layout.start % GPU_PAGE, 0);
        assert_eq!(layout.size, 4 * GPU_PAGE);
        let starts: Vec<u64> = layout.gpu.iter().map(|memory| memory.addr - layout.start).collect();
        assert_eq!(starts, [0, 3 * GPU_PAGE]);
        for text in ["", "gpu", "gpu:", "gpu:1", "gpu:0", "disk:64K"] {
            assert!(text.parse::<Part>().is_err(), "{text}");
        }
    }
}
