// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Processes that share descriptors and counters, come and go, and are killed.

use std::io;
use std::mem::{offset_of, size_of, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::os::unix::process::ExitStatusExt;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process::ExitStatus;
use std::ptr;
use std::sync::atomic::AtomicU64;

use crate::sys;

/// The status of a child that panicked, as of any Rust program.
const PANICKED: u8 = 101;

/// A child, to be waited for once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Child(i32);

/// A new process that runs `child` and ends with the status that comes back; it
/// runs no destructors, so what it has inherited ends as at a crash.
///
/// Where this process has other threads, `child` must not take a lock that one
/// of them may have, or it waits for ever. That forbids printing, but not
/// allocating: the C library sees to its own locks.
pub fn fork(child: impl FnOnce() -> u8) -> io::Result<Child> {
    // SAFETY: the child has a copy of all memory, and of threads only this one.
    match unsafe { sys::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => exit(catch_unwind(AssertUnwindSafe(child)).unwrap_or(PANICKED)),
        pid => Ok(Child(pid)),
    }
}

/// Ends this process at once, cleaning up nothing.
pub fn exit(status: u8) -> ! {
    // SAFETY: does not come back.
    unsafe { sys::_exit(i32::from(status)) }
}

impl Child {
    /// A child's child that this process adopts when its parent is gone.
    pub fn of_number(pid: i32) -> Self {
        Self(pid)
    }

    pub fn number(self) -> i32 {
        self.0
    }

    pub fn kill(self) {
        // SAFETY: a child that has not been waited for: nobody else has its
        // number. It may have ended already, which is no matter.
        unsafe { sys::kill(self.0, sys::SIGKILL as i32) };
    }

    pub fn wait(self) -> io::Result<ExitStatus> {
        match wait_for(self.0, 0)? {
            Some((_, status)) => Ok(status),
            None => Err(io::Error::from_raw_os_error(sys::ECHILD as i32)),
        }
    }
}

/// Any child that has ended, without waiting for one: `None` if none has, an
/// error (`ECHILD`) if there is none.
pub fn reap() -> io::Result<Option<(Child, ExitStatus)>> {
    wait_for(-1, sys::WNOHANG as i32)
}

/// As [`reap`], but waits.
pub fn wait_any() -> io::Result<Option<(Child, ExitStatus)>> {
    wait_for(-1, 0)
}

fn wait_for(pid: i32, options: i32) -> io::Result<Option<(Child, ExitStatus)>> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is written before the call returns.
        match unsafe { sys::waitpid(pid, &mut status, options) } {
            0 => return Ok(None),
            -1 => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::Interrupted => {}
                error => return Err(error),
            },
            pid => return Ok(Some((Child(pid), ExitStatus::from_raw(status)))),
        }
    }
}

/// From now on the orphans among this process's descendants are its children.
pub fn adopt_orphans() -> io::Result<()> {
    // SAFETY: integers only.
    match unsafe { sys::prctl(sys::PR_SET_CHILD_SUBREAPER as i32, 1u64, 0u64, 0u64, 0u64) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Counters, all 0, that this process and its children to come have in common.
pub fn shared_counters(n: usize) -> io::Result<&'static [AtomicU64]> {
    // SAFETY: a new mapping at an address of the kernel's choice.
    let memory = unsafe {
        sys::mmap(
            ptr::null_mut(),
            n * size_of::<AtomicU64>(),
            (sys::PROT_READ | sys::PROT_WRITE) as i32,
            (sys::MAP_SHARED | sys::MAP_ANONYMOUS) as i32,
            -1,
            0,
        )
    };
    if memory as isize == -1 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: page-aligned memory of `n` counters, zero, which is a valid one;
    // never unmapped; and atomics may be shared.
    Ok(unsafe { std::slice::from_raw_parts(memory.cast(), n) })
}

/// A control message with one descriptor, as the kernel lays it out.
#[repr(C)]
struct Control {
    length: usize,
    level: i32,
    kind: i32,
    fd: RawFd,
    padding: u32,
}

/// Sends a descriptor, and a byte because there has to be something. Does not
/// wait: `WouldBlock` if the socket is full.
pub fn send_fd(socket: &UnixDatagram, fd: BorrowedFd) -> io::Result<()> {
    let mut control = Control {
        length: offset_of!(Control, padding),
        level: sys::SOL_SOCKET as i32,
        kind: sys::gpuverbs_scm_rights,
        fd: fd.as_raw_fd(),
        padding: 0,
    };
    let sent = message(&mut control, |message| {
        // SAFETY: a message whose parts last for the call.
        unsafe { sys::sendmsg(socket.as_raw_fd(), message, sys::gpuverbs_msg_dontwait) }
    });
    sent.map(|_| ())
}

/// Receives a descriptor, without waiting.
pub fn receive_fd(socket: &UnixDatagram) -> io::Result<OwnedFd> {
    let mut control = Control {
        length: 0,
        level: 0,
        kind: 0,
        fd: -1,
        padding: 0,
    };
    let flags = sys::gpuverbs_msg_dontwait | sys::gpuverbs_msg_cloexec;
    message(&mut control, |message| {
        // SAFETY: a message with room for what may come, for the call.
        unsafe { sys::recvmsg(socket.as_raw_fd(), message, flags) }
    })?;
    if control.kind != sys::gpuverbs_scm_rights {
        return Err(io::Error::from_raw_os_error(sys::EBADMSG as i32));
    }
    // SAFETY: the kernel has just made this descriptor for us.
    Ok(unsafe { OwnedFd::from_raw_fd(control.fd) })
}

fn message(control: &mut Control, call: impl FnOnce(*mut sys::msghdr) -> isize) -> io::Result<()> {
    let mut byte = 0u8;
    let mut part = sys::iovec {
        iov_base: ptr::from_mut(&mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: integers and pointers only, for which zero is valid.
    let mut message: sys::msghdr = unsafe { zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    message.msg_control = ptr::from_mut(control).cast();
    message.msg_controllen = size_of::<Control>() as _;
    match call(&mut message) {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::sync::atomic::Ordering;

    #[test]
    fn children_share_counters_and_say_how_they_ended() {
        let counters = shared_counters(600).unwrap();
        let child = || {
            counters[599].fetch_add(7, Ordering::Relaxed);
            3
        };
        let child = fork(child).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(3));
        assert_eq!(counters[599].load(Ordering::Relaxed), 7);

        let child = fork(|| loop {
            std::thread::park()
        })
        .unwrap();
        child.kill();
        assert_eq!(child.wait().unwrap().signal(), Some(sys::SIGKILL as i32));
    }

    #[test]
    fn descriptors_travel() {
        let (here, there) = UnixDatagram::pair().unwrap();
        assert_eq!(
            receive_fd(&there).unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        let (mut near, far) = std::os::unix::net::UnixStream::pair().unwrap();
        send_fd(&here, far.as_fd()).unwrap();
        drop(far);
        let mut file = File::from(receive_fd(&there).unwrap());
        file.write_all(b"x").unwrap();
        drop(file);
        let mut text = String::new();
        near.read_to_string(&mut text).unwrap();
        assert_eq!(text, "x");
    }
}
