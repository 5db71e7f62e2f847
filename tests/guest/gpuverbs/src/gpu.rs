// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the simulated GPU: the part of its BAR that this process has
//! allocated, mapped for the CPU.
//!
//! Nobody ever gets a reference into that memory. It is read and written with
//! volatile accesses, because a NIC does so at the same time, and what is
//! behind an address may be taken away while the address still stands in a
//! registration.

use std::ffi::c_void;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::atomic::{fence, Ordering};
use std::sync::Arc;

use crate::args::{Args, Opt};
use crate::failure::Failure;
use crate::sys;

/// What a GPU's memory is made of.
pub const GPU_PAGE: u64 = sys::LAB_GPU_PAGE_SIZE as u64;

const DEVICE: &str = "/dev/nvidia-lab";

pub const OPTION: Opt = Opt::optional(
    "gpu",
    "FILE",
    "device of the GPU (default: /dev/nvidia-lab); an ordinary file stands for host memory",
);

/// How GPU memory is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreeBy {
    /// The driver's ioctl: the memory goes, the mapping's address range stays.
    Ioctl,
    /// munmap(): the address range goes, and the memory with it.
    Munmap,
}

#[derive(Clone)]
pub struct Gpu {
    file: Arc<File>,
}

impl Gpu {
    pub fn open(args: &Args) -> Result<Self, Failure> {
        let path = args.text("gpu").unwrap_or(DEVICE);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(Failure::environment(format_args!(
                "no GPU: cannot open {path}"
            )))?;
        Ok(Self::of_file(file))
    }

    pub fn of_file(file: File) -> Self {
        Self {
            file: Arc::new(file),
        }
    }

    /// Allocates the GPU memory at `offset` in the BAR: `length` bytes, rounded
    /// up to whole GPU pages.
    pub fn allocate(&self, offset: u64, length: u64) -> io::Result<GpuMemory> {
        // SAFETY: at an address of the kernel's choice.
        unsafe { self.map(ptr::null_mut(), offset, length) }
    }

    /// # Safety
    ///
    /// What is mapped at `addr`, if that is not NULL, must be the caller's to
    /// replace.
    pub unsafe fn map(&self, addr: *mut c_void, offset: u64, length: u64) -> io::Result<GpuMemory> {
        let fixed = if addr.is_null() { 0 } else { sys::MAP_FIXED };
        let too_big = || io::Error::from_raw_os_error(sys::EOVERFLOW as i32);
        let rounded = length
            .max(1)
            .checked_next_multiple_of(GPU_PAGE)
            .ok_or_else(too_big)?;
        let size = usize::try_from(rounded).map_err(|_| too_big())?;
        let file_offset = i64::try_from(offset).map_err(|_| too_big())?;
        // SAFETY: a new mapping touches no memory of ours, by this function's
        // requirement; the file is open.
        let addr = unsafe {
            sys::mmap(
                addr,
                size,
                (sys::PROT_READ | sys::PROT_WRITE) as i32,
                (sys::MAP_SHARED | fixed) as i32,
                self.file.as_raw_fd(),
                file_offset,
            )
        };
        // MAP_FAILED
        if addr as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(GpuMemory {
            file: Arc::clone(&self.file),
            addr: addr.cast(),
            size,
            backed: true,
            mapped: true,
        })
    }
}

/// One allocation. Given back when dropped.
pub struct GpuMemory {
    file: Arc<File>,
    addr: *mut u8,
    size: usize,
    /// The GPU memory has not been given back.
    backed: bool,
    /// The address range has not been given back.
    mapped: bool,
}

// SAFETY: an address; nobody has a reference to what is there.
unsafe impl Send for GpuMemory {}

/// A range of GPU memory by its addresses, to register it.
#[derive(Clone, Copy)]
pub struct Range {
    addr: u64,
    length: usize,
}

impl Range {
    /// Any range of addresses, for those who try what must be refused.
    pub fn of_addresses(addr: u64, length: usize) -> Self {
        Self { addr, length }
    }

    pub fn addr(&self) -> u64 {
        self.addr
    }

    pub fn length(&self) -> usize {
        self.length
    }
}

/// Pins of one allocation, of either kind.
pub struct Pins {
    pub revocable: u32,
    pub persistent: u32,
}

impl GpuMemory {
    pub fn size(&self) -> usize {
        self.size
    }

    /// `length` bytes from `start` on.
    ///
    /// # Panics
    /// If they are not all in this allocation.
    pub fn range(&self, start: usize, length: usize) -> Range {
        self.check(start, length);
        Range {
            addr: self.addr as u64 + start as u64,
            length,
        }
    }

    pub fn fill(&mut self, byte: u8) {
        self.check(0, self.size);
        for at in 0..self.size {
            // SAFETY: in bounds and backed, by check(); nobody has a reference.
            unsafe { self.addr.add(at).write_volatile(byte) };
        }
        // Before the NIC is told of it.
        fence(Ordering::SeqCst);
    }

    pub fn write(&mut self, start: usize, bytes: &[u8]) {
        self.check(start, bytes.len());
        for (at, byte) in bytes.iter().enumerate() {
            // SAFETY: in bounds and backed, by check(); nobody has a reference.
            unsafe { self.addr.add(start + at).write_volatile(*byte) };
        }
        fence(Ordering::SeqCst);
    }

    pub fn read(&self, start: usize, length: usize) -> Vec<u8> {
        self.check(start, length);
        // After the NIC has told of it.
        fence(Ordering::SeqCst);
        (start..start + length)
            // SAFETY: in bounds and backed, by check(); nobody has a reference.
            .map(|at| unsafe { self.addr.add(at).read_volatile() })
            .collect()
    }

    /// The 8 bytes at `start`, or an error if the memory has been taken away
    /// without our doing, where reading it ourselves would be a signal.
    pub fn peek(&self, through: &File, start: usize) -> io::Result<u64> {
        self.check(start, 8);
        // SAFETY: in bounds, by check(); the kernel reads, and fails gently.
        let n = unsafe { sys::pwrite(through.as_raw_fd(), self.addr.add(start).cast(), 8, 0) };
        let mut word = [0; 8];
        moved_word(n)?;
        through.read_exact_at(&mut word, 0)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Sets the 8 bytes at `start`, with errors as [`Self::peek`].
    pub fn poke(&mut self, through: &File, start: usize, word: u64) -> io::Result<()> {
        self.check(start, 8);
        through.write_all_at(&word.to_ne_bytes(), 0)?;
        // SAFETY: in bounds, by check(); nobody has a reference.
        let n = unsafe { sys::pread(through.as_raw_fd(), self.addr.add(start).cast(), 8, 0) };
        moved_word(n)
    }

    fn check(&self, start: usize, length: usize) {
        assert!(self.backed && self.mapped, "this GPU memory has been freed");
        assert!(
            start
                .checked_add(length)
                .is_some_and(|end| end <= self.size),
            "{length} bytes at {start} are not in an allocation of {}",
            self.size
        );
    }

    /// How this allocation is pinned; `None` where the device is an ordinary
    /// file, which cannot say.
    pub fn pins(&self) -> io::Result<Option<Pins>> {
        let mut query = sys::lab_gpu_query {
            addr: self.addr as u64,
            index: 0,
            start: 0,
            size: 0,
            bar_offset: 0,
            pins: 0,
            persistent_pins: 0,
        };
        // SAFETY: the structure that this ioctl reads and writes, alive until
        // it returns.
        let rc = unsafe {
            sys::ioctl(
                self.file.as_raw_fd(),
                sys::LAB_GPU_QUERY.into(),
                ptr::from_mut(&mut query),
            )
        };
        if rc == 0 {
            return Ok(Some(Pins {
                revocable: query.pins,
                persistent: query.persistent_pins,
            }));
        }
        match io::Error::last_os_error() {
            error if error.raw_os_error() == Some(sys::ENOTTY as i32) => Ok(None),
            error => Err(error),
        }
    }

    /// Gives the memory back, whatever may still be registered of it.
    pub fn free(&mut self, by: FreeBy) -> io::Result<()> {
        match by {
            FreeBy::Ioctl => self.free_backing(),
            FreeBy::Munmap => self.unmap(),
        }
    }

    fn free_backing(&mut self) -> io::Result<()> {
        let mut request = sys::lab_gpu_free {
            addr: self.addr as u64,
        };
        // SAFETY: the request that this ioctl reads, alive until it returns. The
        // memory that goes is reached only through `self`, which forgets it.
        let rc = unsafe {
            sys::ioctl(
                self.file.as_raw_fd(),
                sys::LAB_GPU_FREE.into(),
                ptr::from_mut(&mut request),
            )
        };
        if rc != 0 {
            return Err(io::Error::last_os_error());
        }
        self.backed = false;
        Ok(())
    }

    fn unmap(&mut self) -> io::Result<()> {
        if !self.mapped {
            return Ok(());
        }
        // SAFETY: a mapping of our own, reached only through `self`, which
        // forgets it.
        if unsafe { sys::munmap(self.addr.cast(), self.size) } != 0 {
            return Err(io::Error::last_os_error());
        }
        self.mapped = false;
        self.backed = false;
        Ok(())
    }
}

/// The answer of a call that was to move a word.
fn moved_word(n: isize) -> io::Result<()> {
    match n {
        8 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        _ => Err(io::Error::from_raw_os_error(sys::EIO as i32)),
    }
}

/// A file of no name, for [`GpuMemory::peek`] and [`GpuMemory::poke`].
pub fn scratch_file() -> io::Result<File> {
    // SAFETY: a C string; the descriptor that comes back is new.
    unsafe {
        match sys::memfd_create(c"gpuverbs".as_ptr(), 0) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(File::from_raw_fd(fd)),
        }
    }
}

impl Drop for GpuMemory {
    fn drop(&mut self) {
        if let Err(error) = self.unmap() {
            eprintln!("gpuverbs: munmap() of GPU memory: {error}");
        }
    }
}
