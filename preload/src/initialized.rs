// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tells whether CUDA was initialized in this process. Only then has the process memory of a GPU,
//! and only then does libcuda stay mapped. Before, another thread may close libcuda at any time: a
//! program that looks for GPUs opens and closes libcuda. Or another thread may still be inside the
//! `dlopen()` that loads libcuda, whose pointers are not relocated yet.
//!
//! `cuInit()` opens `/dev/nvidia-uvm`, and CUDA keeps this file open. The library looks for the
//! file among the links in `/proc/thread-self/fd`. (`/proc/self/fd` has the files of the first thread,
//! which may have ended, or may not share its files with this thread.) The library makes system
//! calls, because functions of the C library are cancellation points, or belong to another preloaded
//! library.
//!
//! On some machines NVML also opens the file. A process that uses NVML, opens and closes libcuda
//! without initializing CUDA, and has a failed registration at this moment, may still crash.

use core::ffi::{c_int, CStr};
use core::sync::atomic::{AtomicBool, Ordering};

use crate::libc::{self, Fd};

/// A buffer for some entries of a directory.
type Entries = [u64; 256];

/// The place of an entry's size, and that of its name (`struct linux_dirent64`).
const SIZE: usize = 16;
const NAME: usize = 19;

/// Whether CUDA was initialized when the library last looked. It stays initialized.
static WAS: AtomicBool = AtomicBool::new(false);
/// Whether this process is a child after `fork()`.
static IS_CHILD: AtomicBool = AtomicBool::new(false);
/// Whether CUDA was initialized before the fork. CUDA does not work in such a child.
static BEFORE_FORK: AtomicBool = AtomicBool::new(false);

/// Notes that this process is a child after `fork()`. The child calls this function first.
pub(crate) fn in_child() {
    IS_CHILD.store(true, Ordering::Relaxed);
    BEFORE_FORK.store(WAS.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Returns whether this process is a child after `fork()`. In a child, locks of the dynamic linker
/// may be locked for ever.
pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Returns whether CUDA may work in this process. Takes no lock.
pub(crate) fn may_work() -> bool {
    !BEFORE_FORK.load(Ordering::Relaxed) && is_initialized()
}

/// Returns whether CUDA was initialized. If the process cannot read its list of files, returns
/// true.
fn is_initialized() -> bool {
    if WAS.load(Ordering::Relaxed) {
        return true;
    }
    let is = match libc::open_directory(c"/proc/thread-self/fd") {
        Some(list) => has_cuda(&list),
        None => true,
    };
    WAS.store(is, Ordering::Relaxed);
    is
}

/// Returns whether a list of open files contains one that CUDA opens.
fn has_cuda(list: &Fd) -> bool {
    let mut entries: Entries = [0; 256];
    loop {
        let size = libc::read_directory(list, &mut entries);
        if size == 0 {
            return false;
        }
        // SAFETY: the buffer has more bytes than the kernel has written.
        let bytes = unsafe { core::slice::from_raw_parts(entries.as_ptr().cast::<u8>(), size) };
        let is_there = each_name(bytes).any(|name| {
            // A process with very many files has sockets, and reading their links takes long.
            !number(name).is_some_and(libc::is_socket)
                && is_of_cuda(libc::read_link(list, name, &mut [0; 64]))
        });
        if is_there {
            return true;
        }
    }
}

/// Returns the descriptor that has this name, or `None` if the name is no number.
fn number(name: &[u8]) -> Option<c_int> {
    CStr::from_bytes_until_nul(name).ok()?.to_str().ok()?.parse().ok()
}

/// Returns the names in some entries of a directory, each with the zero bytes at its end.
fn each_name(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    core::iter::from_fn(move || {
        let size = usize::from(u16::from_ne_bytes([*bytes.get(SIZE)?, *bytes.get(SIZE + 1)?]));
        let name = bytes.get(NAME..size)?;
        bytes = bytes.get(size..)?;
        Some(name)
    })
}

/// Returns whether a path is that of a device that CUDA opens and monitors usually do not, such as
/// `/dev/nvidia-uvm`. Monitors open `/dev/nvidiactl` and `/dev/nvidia-caps/nvidia-cap1`.
fn is_of_cuda(path: &[u8]) -> bool {
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    path.starts_with(b"/dev/") && name.starts_with(b"nvidia-") && !name.starts_with(b"nvidia-cap")
}
