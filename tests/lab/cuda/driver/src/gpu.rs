// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The simulated GPU as its driver shows it (tests/lab/nvidia/lab_gpu.h).

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::sync::OnceLock;

use crate::error::Result;
use crate::sys;

/// What the GPU maps memory in.
pub const BLOCK: u64 = 2 << 20;

const DEVICE: &str = "/dev/nvidia-lab";
const DRIVER: &str = "/sys/bus/pci/drivers/nvidia";

/// Where the PCI bus has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot {
    pub domain: i32,
    pub bus: i32,
    pub device: i32,
    pub function: i32,
}

impl Slot {
    /// As in 0000:00:04.0; the domain and the function may be left out.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts: Vec<&str> = text.split(':').collect();
        let number = |text| i32::from_str_radix(text, 16).ok();
        let (device, function) = parts.pop()?.split_once('.').unwrap_or(("", "0"));
        Some(Self {
            device: number(device)?,
            function: number(function)?,
            bus: number(parts.pop()?)?,
            domain: parts.pop().map_or(Some(0), number)?,
        })
    }
}

pub struct Gpu {
    file: File,
    /// Whose it is: a child of fork() has nothing of it.
    pid: i32,
    pub slot: Slot,
    pub size: u64,
}

/// Memory as the driver has mapped it.
pub enum Where {
    /// Anywhere, with or without permission for others to pin it.
    Fresh { p2p: bool },
    /// Memory that begins there once more.
    Again { bar_offset: u64, p2p: bool },
}

impl Where {
    fn offset(&self) -> u64 {
        let (offset, p2p) = match self {
            Self::Fresh { p2p } => (sys::LAB_GPU_ANYWHERE, p2p),
            Self::Again { bar_offset, p2p } => (sys::LAB_GPU_AGAIN | bar_offset, p2p),
        };
        offset | if *p2p { 0 } else { sys::LAB_GPU_NO_P2P }
    }
}

fn pid() -> i32 {
    // SAFETY: always succeeds.
    unsafe { sys::getpid() }
}

/// The one GPU, from cuInit() on.
static GPU: OnceLock<Gpu> = OnceLock::new();

pub fn gpu() -> Result<&'static Gpu> {
    match GPU.get() {
        Some(gpu) if gpu.pid == pid() => Ok(gpu),
        _ => Err(sys::CUDA_ERROR_NOT_INITIALIZED),
    }
}

pub fn initialize() -> Result {
    if GPU.get().is_none() {
        // If another thread was faster, it has found the same.
        let _ = GPU.set(Gpu::open().map_err(|_| sys::CUDA_ERROR_NO_DEVICE)?);
    }
    gpu().map(|_| ())
}

impl Gpu {
    fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open(DEVICE)?;
        for entry in fs::read_dir(DRIVER)? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(slot) = name.to_str().and_then(Slot::parse) {
                return Ok(Self {
                    file,
                    pid: pid(),
                    slot,
                    size: bar_size(&entry.path())?,
                });
            }
        }
        Err(io::ErrorKind::NotFound.into())
    }

    /// Maps memory for the GPU alone, at `address` if that is not 0. `replace`
    /// says that what is there gives way.
    pub fn map(&self, address: u64, size: u64, at: Where, replace: bool) -> io::Result<u64> {
        let fixed = match (address, replace) {
            (0, _) => 0,
            (_, true) => sys::MAP_FIXED,
            (_, false) => sys::MAP_FIXED_NOREPLACE,
        };
        let fd = self.file.as_raw_fd();
        map(address, size, sys::MAP_SHARED | fixed, fd, at.offset())
    }

    /// Where in the GPU's memory an allocation begins.
    pub fn bar_offset(&self, address: u64) -> io::Result<u64> {
        let mut query = sys::lab_gpu_query {
            addr: address,
            index: 0,
            start: 0,
            size: 0,
            bar_offset: 0,
            pins: 0,
            persistent_pins: 0,
        };
        self.ioctl(sys::LAB_GPU_QUERY, &mut query)?;
        Ok(query.bar_offset)
    }

    /// `size` bytes between addresses of this process, on either side of the GPU
    /// or of the CPU. Memory that is not there is an illegal address.
    pub fn copy(&self, to: u64, from: u64, size: u64) -> Result {
        let mut copy = sys::lab_gpu_copy { to, from, size };
        self.ioctl(sys::LAB_GPU_COPY, &mut copy)
            .map_err(|_| sys::CUDA_ERROR_ILLEGAL_ADDRESS)
    }

    fn ioctl<T>(&self, request: u32, argument: &mut T) -> io::Result<()> {
        let argument = ptr::from_mut(argument);
        // SAFETY: the structure that the request names, alive until it returns.
        // The driver checks every address in it.
        match unsafe { sys::ioctl(self.file.as_raw_fd(), request.into(), argument) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

fn bar_size(device: &Path) -> io::Result<u64> {
    Ok(fs::metadata(device.join("resource2"))?.len())
}

/// Addresses that nobody can touch, and nobody else gets.
pub fn reserve(address: u64, size: u64, replace: bool) -> io::Result<u64> {
    let fixed = if replace {
        sys::MAP_FIXED
    } else {
        sys::MAP_FIXED_NOREPLACE
    };
    let kind = sys::MAP_PRIVATE | sys::MAP_ANONYMOUS | sys::MAP_NORESERVE | fixed;
    map(address, size, kind, -1, 0)
}

pub fn unmap(address: u64, size: u64) -> io::Result<()> {
    // SAFETY: a mapping of this library, whose addresses nobody dereferences.
    match unsafe { sys::munmap(address as *mut _, size as usize) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn map(address: u64, size: u64, flags: u32, fd: i32, offset: u64) -> io::Result<u64> {
    let offset = offset as i64;
    // SAFETY: at an address that is free, of the kernel's choice, or of a
    // reservation of this library that nobody dereferences.
    let mapped = unsafe {
        sys::mmap(
            address as *mut _,
            size as usize,
            sys::PROT_NONE as i32,
            flags as i32,
            fd,
            offset,
        )
    };
    if mapped as isize == -1 {
        return Err(io::Error::last_os_error());
    }
    Ok(mapped as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots() {
        let slot = |domain, bus, device, function| {
            Some(Slot {
                domain,
                bus,
                device,
                function,
            })
        };
        assert_eq!(Slot::parse("0000:00:1f.3"), slot(0, 0, 0x1f, 3));
        assert_eq!(Slot::parse("0001:a0:04.0"), slot(1, 0xa0, 4, 0));
        assert_eq!(Slot::parse("a0:04.0"), slot(0, 0xa0, 4, 0));
        assert_eq!(Slot::parse("module"), None);
    }
}
