// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Processes that share descriptors and counters.

use std::io::{IoSlice, IoSliceMut};
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::ptr::with_exposed_provenance;
use std::slice;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::Signal;
use nix::sys::socket::{recvmsg, sendmsg, ControlMessage, ControlMessageOwned, MsgFlags};
use nix::unistd::{ForkResult, Pid};

use crate::gpu::{map, READ_WRITE};

/// The exit status of a child that panicked, the usual one of Rust.
const PANICKED: u8 = 101;

/// A new process that runs `child` and ends with the status that comes back; it
/// runs no destructors, so what it has inherited ends as at a crash.
///
/// Where this process has other threads, `child` must not take a lock that one
/// of them may have, or it waits for ever. That forbids printing, but not
/// allocating: the C library sees to its own locks.
pub fn fork(child: impl FnOnce() -> u8) -> Result<Pid> {
    // SAFETY: the child has a copy of all memory, and of threads only this one.
    match unsafe { nix::unistd::fork() }.context("a new process")? {
        ForkResult::Child => exit(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED)),
        ForkResult::Parent { child } => Ok(child),
    }
}

/// The same, but the new process is a child of this one's parent, which can wait for both.
/// For processes of one thread.
pub fn fork_sibling(child: impl FnOnce() -> u8) -> Result<Pid> {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: the child has a copy of all memory, of the stack too. What the C library would
    // do at a fork is for the locks of other threads.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => {
            end_with_parent();
            exit(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED))
        }
        pid => Ok(Pid::from_raw(Errno::result(pid).context("a new process")? as i32)),
    }
}

/// Ends this process together with its parent.
pub fn end_with_parent() {
    // It knows every signal.
    let _ = set_pdeathsig(Signal::SIGKILL);
}

/// Ends this process at once, cleaning up nothing.
pub fn exit(status: u8) -> ! {
    // SAFETY: does not come back.
    unsafe { libc::_exit(status.into()) }
}

/// Counters, all 0, that this process and its children to come have in common.
pub fn shared_counters(n: usize) -> Result<&'static [AtomicU64]> {
    let (size, flags) = (n * size_of::<AtomicU64>(), libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping at an address of the kernel's choice: page-aligned memory of
    // `n` counters, zero, which is a valid one; never unmapped; and atomics may be shared.
    unsafe {
        let memory = map(0, size as u64, READ_WRITE, flags, -1, 0)?;
        Ok(slice::from_raw_parts(with_exposed_provenance(memory as usize), n))
    }
}

/// Sends a descriptor, and a byte because there has to be something. Does not
/// wait: `EAGAIN` if the socket is full.
pub fn send_fd(socket: &UnixDatagram, fd: BorrowedFd) -> nix::Result<()> {
    let fds = [fd.as_raw_fd()];
    let (byte, control) = ([IoSlice::new(&[0])], [ControlMessage::ScmRights(&fds)]);
    sendmsg::<()>(socket.as_raw_fd(), &byte, &control, MsgFlags::MSG_DONTWAIT, None).map(drop)
}

/// Receives a descriptor, without waiting.
pub fn receive_fd(socket: &UnixDatagram) -> nix::Result<OwnedFd> {
    let (mut byte, mut space) = ([0], nix::cmsg_space!([i32; 1]));
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    match message.cmsgs()?.next() {
        // SAFETY: the kernel has just made this descriptor for us.
        Some(ControlMessageOwned::ScmRights(fds)) => Ok(unsafe { OwnedFd::from_raw_fd(fds[0]) }),
        _ => Err(Errno::EBADMSG),
    }
}
