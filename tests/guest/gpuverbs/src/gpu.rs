// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the simulated GPU. This process has allocated a part of the GPU's BAR, and has mapped
//! this part for the CPU.
//!
//! No Rust reference points into that memory. A NIC also reads and writes it, and the memory may be
//! taken away while its address is still in use.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::process;
use std::ptr::with_exposed_provenance_mut;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::memfd::{memfd_create, MemFdCreateFlag};

use crate::sys;
use crate::verbs::Hca;

/// The size of a page of the GPU's memory.
pub const GPU_PAGE: u64 = sys::LAB_GPU_PAGE_SIZE as u64;

/// The file from which GPU memory is mapped, unless the environment variable `LAB_GPU` names
/// another file. Tests without the simulated driver use another file.
const DEVICE: &str = "/dev/nvidia-lab";

/// How GPU memory is given back.
#[derive(Clone, Copy, clap::ValueEnum)]
pub enum FreeBy {
    /// By the driver's ioctl: the memory goes, the mapping's address range stays
    Ioctl,
    /// By munmap: the address range goes, and the memory with it
    Munmap,
}

/// The GPU and the RDMA device of the machine on which a command runs.
pub struct Machine {
    pub gpu: Gpu,
    pub hca: Hca,
}

impl Machine {
    pub fn open() -> Result<Self> {
        Ok(Self { gpu: Gpu::open()?, hca: Hca::open()? })
    }
}

/// The GPU's device file. The file stays open until the process ends.
#[derive(Clone, Copy)]
pub struct Gpu {
    file: &'static File,
}

impl Gpu {
    pub fn open() -> Result<Self> {
        let path = std::env::var("LAB_GPU").unwrap_or_else(|_| DEVICE.to_owned());
        let file = File::options().read(true).write(true).open(&path);
        let file = file.with_context(|| format!("no GPU: opening {path}"))?;
        Ok(Self { file: Box::leak(Box::new(file)) })
    }

    /// Allocates `length` bytes of GPU memory at `offset` in the BAR. The length is rounded up to
    /// whole GPU pages.
    pub fn allocate(self, offset: u64, length: u64) -> io::Result<GpuMemory> {
        // SAFETY: Without MAP_FIXED, no mapping is replaced.
        unsafe { self.map(NEXT.fetch_add(SPACING, Relaxed), 0, offset, length) }
    }

    /// # Safety
    ///
    /// If `fixed` is `MAP_FIXED` and not 0, the caller must own the mapping at `addr`, which is
    /// replaced.
    unsafe fn map(
        self,
        addr: u64,
        fixed: c_int,
        offset: u64,
        length: u64,
    ) -> io::Result<GpuMemory> {
        let size = length.max(1).checked_next_multiple_of(GPU_PAGE);
        let size = size.ok_or(io::ErrorKind::OutOfMemory)?;
        let (flags, fd) = (libc::MAP_SHARED | fixed, self.file.as_raw_fd());
        // SAFETY: By this function's requirement the caller owns the mapping that is replaced, if
        // there is one.
        let addr = unsafe { map(addr, size, READ_WRITE, flags, fd, offset) }?;
        Ok(GpuMemory { gpu: self, addr, size, backed: true, mapped: true })
    }
}

/// The address for the next allocation, and the distance between two allocations. The addresses are
/// multiples of 2 MiB, like CUDA's addresses, because a device can use large pages only if address
/// and bus address have as many low bits in common.
static NEXT: AtomicU64 = AtomicU64::new(0x1000_0000_0000);
const SPACING: u64 = 1 << 32;

pub const READ_WRITE: c_int = libc::PROT_READ | libc::PROT_WRITE;

/// # Safety
///
/// With `MAP_FIXED`, the caller must own the mapping at `addr`, which is replaced.
pub unsafe fn map(
    addr: u64,
    size: u64,
    protection: c_int,
    flags: c_int,
    fd: c_int,
    offset: u64,
) -> io::Result<u64> {
    let addr = with_exposed_provenance_mut(addr as usize);
    // SAFETY: By this function's requirement no mapping of another owner is replaced. `fd` is a
    // descriptor or -1.
    let memory = unsafe { libc::mmap(addr, size as usize, protection, flags, fd, offset as i64) };
    match memory {
        libc::MAP_FAILED => Err(io::Error::last_os_error()),
        _ => Ok(memory as u64),
    }
}

/// An allocation, which is freed when it is dropped.
pub struct GpuMemory {
    gpu: Gpu,
    addr: u64,
    pub size: u64,
    /// Whether the process still has the GPU memory.
    backed: bool,
    /// Whether the process still has the address range.
    mapped: bool,
}

/// A range of addresses to register. The range may lie outside GPU memory, because tests also try
/// ranges whose registration must be refused.
#[derive(Clone, Copy)]
pub struct Range {
    pub addr: u64,
    pub length: u64,
}

impl GpuMemory {
    /// Returns the range of `length` bytes from `start` on.
    ///
    /// # Panics
    ///
    /// Panics if the range is not all in this allocation.
    pub fn range(&self, start: u64, length: u64) -> Range {
        self.at(start, length);
        Range { addr: self.addr + start, length }
    }

    /// Lets the kernel copy `bytes` from a file to `start`. If the memory has been taken away, the
    /// kernel returns an error. If this process itself wrote to the memory, it would get a signal.
    pub fn write(&mut self, start: u64, bytes: &[u8]) -> io::Result<()> {
        let to = self.at(start, bytes.len() as u64);
        let file = file_of(bytes)?;
        // SAFETY: at() checks the bounds, and no reference into the memory exists.
        moved_all(bytes.len(), unsafe { libc::pread(file.as_raw_fd(), to, bytes.len(), 0) })
    }

    /// Lets the kernel copy `length` bytes from `start` to a file, and returns the bytes. The
    /// errors are those of [`Self::write`].
    pub fn read(&self, start: u64, length: u64) -> io::Result<Vec<u8>> {
        let from = self.at(start, length);
        let (mut bytes, file) = (vec![0; length as usize], file_of(&[])?);
        // SAFETY: The requirement of the call before holds for this call also.
        moved_all(bytes.len(), unsafe { libc::pwrite(file.as_raw_fd(), from, bytes.len(), 0) })?;
        file.read_exact_at(&mut bytes, 0)?;
        Ok(bytes)
    }

    fn at(&self, start: u64, length: u64) -> *mut c_void {
        assert!(self.backed && self.mapped, "this GPU memory has been freed");
        let end = start.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.size), "not {length} bytes at {start}");
        with_exposed_provenance_mut((self.addr + start) as usize)
    }

    /// Returns the number of pins of this allocation. Persistent and revocable pins both count.
    pub fn pins(&self) -> Result<u32> {
        let mut address = sys::lab_gpu_address { addr: self.addr };
        // SAFETY: This ioctl reads this structure.
        unsafe { self.ioctl(sys::LAB_GPU_PINS, (&raw mut address).cast()) }
            .context("asking the GPU for its pins")
    }

    /// # Safety
    ///
    /// `argument` must point to the structure of this ioctl.
    unsafe fn ioctl(&self, request: u32, argument: *mut c_void) -> io::Result<u32> {
        // SAFETY: By this function's requirement `argument` fits the ioctl. The file is open.
        let rc = unsafe { libc::ioctl(self.gpu.file.as_raw_fd(), request.into(), argument) };
        Ok(Errno::result(rc)? as u32)
    }

    /// Frees the memory, even if parts of it are still registered.
    pub fn free(&mut self, by: FreeBy) -> io::Result<()> {
        match by {
            FreeBy::Ioctl => {
                let mut request = sys::lab_gpu_address { addr: self.addr };
                // SAFETY: This ioctl reads this structure. The freed memory is reached only
                // through `self`, which does not use it any more.
                unsafe { self.ioctl(sys::LAB_GPU_FREE, (&raw mut request).cast()) }?;
            }
            FreeBy::Munmap if self.mapped => {
                let addr = with_exposed_provenance_mut(self.addr as usize);
                // SAFETY: The mapping is our own, and is reached only through `self`, which does
                // not use it any more.
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

/// Checks the result of a call that should move `length` bytes.
fn moved_all(length: usize, moved: isize) -> io::Result<()> {
    match Errno::result(moved)? as usize {
        moved if moved == length => Ok(()),
        // The call has stopped at memory that was taken away.
        _ => Err(Errno::EFAULT.into()),
    }
}

/// Returns a file without a name that contains these bytes. The next call may overwrite the file.
fn file_of(bytes: &[u8]) -> io::Result<File> {
    let file = if bytes.len() as u64 <= GPU_PAGE { kept_file()? } else { new_file()? };
    file.write_all_at(bytes, 0)?;
    Ok(file)
}

fn new_file() -> io::Result<File> {
    Ok(memfd_create(c"gpuverbs", MemFdCreateFlag::MFD_CLOEXEC)?.into())
}

/// Returns a file that the thread keeps, because on a debug kernel making a file takes longer than
/// registering memory. A child process makes a new file, because it must not share its parent's.
fn kept_file() -> io::Result<File> {
    thread_local! {
        static KEPT: RefCell<Option<(u32, File)>> = const { RefCell::new(None) };
    }
    KEPT.with_borrow_mut(|kept| match kept {
        Some((owner, file)) if *owner == process::id() => file.try_clone(),
        _ => kept.insert((process::id(), new_file()?)).1.try_clone(),
    })
}

/// A part of the address space with the size of a GPU page. It is a separate allocation of GPU
/// memory, or host memory, or a hole.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    #[value(name = "gpu:64K")]
    Gpu,
    #[value(name = "host:64K")]
    Host,
    #[value(name = "hole:64K")]
    Hole,
}

/// Parts of the address space that follow each other directly. The addresses of host memory and of
/// holes stay reserved until the process ends.
pub struct Layout {
    pub start: u64,
    pub gpu: Vec<GpuMemory>,
}

impl Layout {
    /// Makes the parts. Their GPU memory begins at `offset` in the BAR.
    pub fn new(gpu: Gpu, parts: &[Part], mut offset: u64) -> io::Result<Self> {
        const ANONYMOUS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let size = (parts.len() as u64 + 1) * GPU_PAGE;
        // SAFETY: The kernel chooses the address, so no mapping is replaced.
        let start = unsafe { map(0, size, libc::PROT_NONE, ANONYMOUS, -1, 0) }?;
        let mut layout = Self { start: start.next_multiple_of(GPU_PAGE), gpu: Vec::new() };
        for (at, part) in (layout.start..).step_by(GPU_PAGE as usize).zip(parts) {
            if *part == Part::Gpu {
                // SAFETY: The addresses are part of the range that was reserved above.
                layout.gpu.push(unsafe { gpu.map(at, libc::MAP_FIXED, offset, GPU_PAGE) }?);
                offset += GPU_PAGE;
            } else if *part == Part::Host {
                let flags = ANONYMOUS | libc::MAP_FIXED;
                // SAFETY: The requirement of the call before holds for this call also.
                unsafe { map(at, GPU_PAGE, READ_WRITE, flags, -1, 0) }?;
            }
        }
        Ok(layout)
    }
}

/// Returns a GPU whose memory is an ordinary file of `pages` pages.
#[cfg(test)]
pub fn stand_in(pages: u64) -> Gpu {
    let file = new_file().unwrap();
    file.set_len(pages * GPU_PAGE).unwrap();
    Gpu { file: Box::leak(Box::new(file)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_lie_one_behind_the_other() {
        let layout =
            Layout::new(stand_in(2), &[Part::Gpu, Part::Hole, Part::Host, Part::Gpu], 0).unwrap();
        let starts: Vec<u64> = layout.gpu.iter().map(|memory| memory.addr - layout.start).collect();
        assert_eq!((layout.start % GPU_PAGE, &*starts), (0, &[0, 3 * GPU_PAGE][..]));
    }
}
