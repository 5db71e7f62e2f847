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

/// The exit status of a child that panicked, as usual in Rust.
const PANICKED: u8 = 101;

/// Starts a process. The process runs `child`, and then ends with the status that `child` returned.
/// It runs no destructors of inherited objects, so it ends as after a crash.
///
/// If this process has other threads, `child` must not take a lock that one of these threads may
/// hold, because the child would wait for ever. `child` must therefore not print. It may allocate
/// memory, because the C library prepares its own locks for a fork.
pub fn fork(child: impl FnOnce() -> u8) -> Result<Pid> {
    // SAFETY: The child has a copy of all memory, but only this thread. By this function's
    // description `child` takes no locks of other threads.
    match unsafe { nix::unistd::fork() }.context("a new process")? {
        ForkResult::Child => exit(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED)),
        ForkResult::Parent { child } => Ok(child),
    }
}

/// Starts a process like [`fork`], but as a child of this process's parent. The parent can then
/// wait for both processes. This process must have only one thread.
pub fn fork_sibling(child: impl FnOnce() -> u8) -> Result<Pid> {
    let flags = libc::c_long::from(libc::CLONE_PARENT | libc::SIGCHLD);
    let none: libc::c_long = 0;
    // SAFETY: The child has a copy of all memory, including the stack. The call bypasses the C
    // library, whose preparation for a fork is only needed if there are other threads.
    match unsafe { libc::syscall(libc::SYS_clone, flags, none, none, none, none) } {
        0 => {
            end_with_parent();
            exit(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED))
        }
        pid => Ok(Pid::from_raw(Errno::result(pid).context("a new process")? as i32)),
    }
}

/// Lets the kernel end this process when its parent ends.
pub fn end_with_parent() {
    // The kernel knows SIGKILL, so the call cannot fail.
    let _ = set_pdeathsig(Signal::SIGKILL);
}

/// Ends this process at once, without cleaning up.
pub fn exit(status: u8) -> ! {
    // SAFETY: _exit() does not return.
    unsafe { libc::_exit(status.into()) }
}

/// Makes counters, all 0, that this process shares with its future children.
pub fn shared_counters(n: usize) -> Result<&'static [AtomicU64]> {
    let (size, flags) = (n * size_of::<AtomicU64>(), libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: The kernel chooses the address. The new mapping is page-aligned, has room for `n`
    // counters, and is never unmapped. Its bytes are zero, which is a valid counter, and atomics
    // may be shared.
    unsafe {
        let memory = map(0, size as u64, READ_WRITE, flags, -1, 0)?;
        Ok(slice::from_raw_parts(with_exposed_provenance(memory as usize), n))
    }
}

/// Sends a descriptor in a message of one byte, because a message must not be empty. Returns
/// `EAGAIN` if the socket is full, because this function does not wait.
pub fn send_fd(socket: &UnixDatagram, fd: BorrowedFd) -> nix::Result<()> {
    let fds = [fd.as_raw_fd()];
    let (byte, control) = ([IoSlice::new(&[0])], [ControlMessage::ScmRights(&fds)]);
    sendmsg::<()>(socket.as_raw_fd(), &byte, &control, MsgFlags::MSG_DONTWAIT, None).map(drop)
}

/// Receives a descriptor. Returns `EAGAIN` if there is no message, because this function does not
/// wait.
pub fn receive_fd(socket: &UnixDatagram) -> nix::Result<OwnedFd> {
    let (mut byte, mut space) = ([0], nix::cmsg_space!([i32; 1]));
    let mut parts = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_CMSG_CLOEXEC;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut space), flags)?;
    match message.cmsgs()?.next() {
        // SAFETY: The kernel has just made this descriptor for this process, which owns it.
        Some(ControlMessageOwned::ScmRights(fds)) => Ok(unsafe { OwnedFd::from_raw_fd(fds[0]) }),
        _ => Err(Errno::EBADMSG),
    }
}
