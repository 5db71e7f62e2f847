// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The functions of the C library that this library uses. Every glibc has all of them, with these
//! names, and musl has them, too. A program that is linked with musl does not start if a library in
//! `LD_PRELOAD` needs a function that musl lacks.

use core::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void, CStr};
use core::mem;
use core::ptr::null_mut;

const EAGAIN: c_int = 11;
pub(crate) const ENOMEM: c_int = 12;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const ENFILE: c_int = 23;
pub(crate) const EMFILE: c_int = 24;
pub(crate) const EPROTONOSUPPORT: c_int = 93;
pub(crate) const EOPNOTSUPP: c_int = 95;

const PTHREAD_CANCEL_DISABLE: c_int = 1;

const IS_ARM: bool = cfg!(target_arch = "aarch64");
const SYS_IOCTL: c_long = if IS_ARM { 29 } else { 16 };
const SYS_OPENAT: c_long = if IS_ARM { 56 } else { 257 };
const SYS_GETDENTS64: c_long = if IS_ARM { 61 } else { 217 };
const SYS_READLINKAT: c_long = if IS_ARM { 78 } else { 267 };
const AT_FDCWD: c_int = -100;
const O_CLOEXEC: c_int = 0o2_000_000;
const SYS_FUTEX: c_long = if IS_ARM { 98 } else { 202 };
/// `FUTEX_WAIT | FUTEX_PRIVATE_FLAG`.
const FUTEX_WAIT: c_int = 128;
/// `FUTEX_CMP_REQUEUE | FUTEX_PRIVATE_FLAG`.
const FUTEX_CMP_REQUEUE: c_int = 4 | 128;
/// `FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG`.
const FUTEX_WAKE_OP: c_int = 5 | 128;
/// The operation of `FUTEX_WAKE_OP` that adds 0 to a word. It is the value of the macro call
/// `FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)`.
const ADD_NOTHING: c_int = 1 << 28;

/// The number of the system call. The library uses the system call, because glibc exports no
/// function `fstat()` before version 2.33.
const SYS_FSTAT: c_long = if IS_ARM { 80 } else { 5 };

/// The place of the file's mode in a `struct stat`. The mode is in the low half of the number.
const MODE: usize = if IS_ARM { 2 } else { 3 };
const S_IFMT: u64 = 0o170_000;
const S_IFSOCK: u64 = 0o140_000;

/// A `pthread_mutex_t`. The fifth number is the kind of the mutex. On 64-bit machines, all other
/// numbers are 0 at first.
#[repr(C, align(8))]
pub(crate) struct Mutex([c_int; 12]);

impl Mutex {
    /// `PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP`
    pub(crate) const RECURSIVE: Self = Self([0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
}

/// Makes `dlsym()` search only the objects after the calling object.
pub(crate) const RTLD_NEXT: *mut c_void = usize::MAX as *mut c_void;

// Since glibc 2.34 the first of these libraries contains the functions of the others.
#[link(name = "c")]
#[link(name = "dl")]
#[link(name = "pthread")]
#[rustfmt::skip]
extern "C" {
    /// Ends the process.
    pub(crate) fn abort() -> !;
    /// Returns the address of a symbol, or NULL. Waits for a thread that is inside `dlopen()`.
    pub(crate) fn dlsym(object: *mut c_void, name: *const c_char) -> *mut c_void;
    /// Returns a variable of the environment, or NULL.
    pub(crate) fn getenv(name: *const c_char) -> *const c_char;
    /// Prints to a descriptor.
    pub(crate) fn dprintf(fd: c_int, format: *const c_char, ...) -> c_int;
    /// Returns the size of a page of the host.
    fn getpagesize() -> c_int;
    /// Returns a new descriptor, or -1.
    pub(crate) fn eventfd(value: c_uint, flags: c_int) -> c_int;
    /// Closes a descriptor.
    pub(crate) fn close(fd: c_int) -> c_int;
    /// Makes a system call.
    fn syscall(number: c_long, ...) -> c_long;
    /// Sets whether this thread can be cancelled.
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    /// Changes which signals this thread blocks.
    fn pthread_sigmask(how: c_int, set: *const Signals, old: *mut Signals) -> c_int;
    /// Locks a mutex. Returns an error if another thread has locked it.
    pub(crate) fn pthread_mutex_trylock(mutex: *mut Mutex) -> c_int;
    /// Unlocks a mutex.
    pub(crate) fn pthread_mutex_unlock(mutex: *mut Mutex) -> c_int;
    /// Lets another thread run, if one is ready to run.
    fn sched_yield() -> c_int;
    /// Returns the address of this thread's error number.
    fn __errno_location() -> *mut c_int;
}

/// Returns the error number of the last call that has failed.
pub(crate) fn errno() -> c_int {
    // SAFETY: the C library has an error number for each thread, always.
    let location = unsafe { __errno_location() };
    // SAFETY: the pointer is valid, and no other thread uses this error number.
    unsafe { *location }
}

/// Sets the error number that the caller will find.
pub(crate) fn set_errno(errno: c_int) {
    // SAFETY: the C library has an error number for each thread, always.
    let location = unsafe { __errno_location() };
    // SAFETY: the pointer is valid, and no other thread uses this error number.
    unsafe { *location = errno }
}

/// Makes the system call of `ioctl()`.
///
/// # Safety
///
/// The arguments are valid for `ioctl()`.
pub(crate) unsafe fn system_ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    // SAFETY: the caller promises that the arguments are valid for `ioctl()`, whose system call takes
    // the same arguments.
    unsafe { syscall(SYS_IOCTL, fd, request, argument) as c_int }
}

/// While this object exists, the thread cannot be cancelled. `ioctl()` is not a cancellation point,
/// but a translation calls libcuda and `close()`.
pub(crate) struct Uncancelled {
    /// The value that `pthread_setcancelstate()` had before.
    before: c_int,
}

impl Uncancelled {
    pub(crate) fn begin() -> Self {
        let mut before = 0;
        // SAFETY: there is room for the old state.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Self { before }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the pointer for the old state may be NULL.
        unsafe { pthread_setcancelstate(self.before, null_mut()) };
    }
}

/// A `sigset_t`.
type Signals = [u64; 16];
const SIG_BLOCK: c_int = 0;
const SIG_SETMASK: c_int = 2;

/// While this object exists, no signal handler runs on the thread.
pub(crate) struct WithoutSignals(Signals);

impl WithoutSignals {
    pub(crate) fn begin() -> Self {
        let mut before = [0; 16];
        // SAFETY: there is room for the old signals.
        unsafe { pthread_sigmask(SIG_BLOCK, &[u64::MAX; 16], &raw mut before) };
        Self(before)
    }
}

impl Drop for WithoutSignals {
    fn drop(&mut self) {
        // SAFETY: the pointer for the old signals may be NULL.
        unsafe { pthread_sigmask(SIG_SETMASK, &raw const self.0, null_mut()) };
    }
}

/// Lets another thread run, if one is ready to run.
pub(crate) fn let_others_run() {
    // SAFETY: the function has no argument.
    unsafe { sched_yield() };
}

/// Sleeps a millisecond, or less if a signal comes. The thread waits for a word that no thread
/// changes, because `nanosleep()` would be a cancellation point. The kernel measures the time by a
/// clock that cannot be set.
pub(crate) fn sleep_a_millisecond() {
    let before = errno();
    let nothing: c_uint = 0;
    // This is a `struct timespec`.
    let millisecond: [c_long; 2] = [0, 1_000_000];
    let (here, end) = (&raw const nothing, &raw const millisecond);
    // SAFETY: the word and the time exist until the function returns.
    unsafe { syscall(SYS_FUTEX, here, FUTEX_WAIT, 0, end) };
    set_errno(before);
}

/// Returns the size of a page of the host.
pub(crate) fn page_size() -> u64 {
    // SAFETY: the function only returns a number.
    u64::from(unsafe { getpagesize() }.unsigned_abs())
}

/// Returns whether the process may read `size` bytes at an address, which lie in at most two pages.
/// The kernel compares the first and the last word with 0. If the word is 0, the kernel wakes no
/// thread that waits for the word, and moves no thread to another word.
pub(crate) fn is_readable(address: usize, size: usize) -> bool {
    let other: c_uint = 0;
    let here = &raw const other;
    let none: c_long = 0;
    at_both_ends(address, size, |word| {
        // SAFETY: the kernel checks the first address itself, and the second word exists.
        unsafe { syscall(SYS_FUTEX, word, FUTEX_CMP_REQUEUE, none, none, here, 0) }
    })
}

/// Returns whether the process may write `size` bytes at an address, which lie in at most two
/// pages. The function does not change them. It lets the kernel add 0 to the first and to the last
/// word in one atomic step, and the kernel fails if a word is read-only. The words keep their
/// values, even if other threads change them at the same time.
pub(crate) fn is_writable(address: usize, size: usize) -> bool {
    let nobody_waits: c_uint = 0;
    let here = &raw const nobody_waits;
    let none: c_long = 0;
    at_both_ends(address, size, |word| {
        // SAFETY: no thread waits at any of the two addresses, so the kernel wakes no thread, and
        // the kernel checks the second address itself.
        unsafe { syscall(SYS_FUTEX, here, FUTEX_WAKE_OP, 0, none, word, ADD_NOTHING) }
    })
}

/// Returns whether `call` reaches the first and the last word of a range. `EAGAIN` says that the
/// kernel has read another number than 0. The error number stays.
fn at_both_ends(address: usize, size: usize, call: impl Fn(usize) -> c_long) -> bool {
    let before = errno();
    let last = address.wrapping_add(size.saturating_sub(1));
    let good = [address, last].into_iter().all(|at| call(at & !3) != -1 || errno() == EAGAIN);
    set_errno(before);
    good
}

/// A descriptor, closed when dropped.
pub(crate) struct Fd(pub(crate) c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: nothing else has this descriptor.
        unsafe { close(self.0) };
    }
}

/// Opens a directory. Returns `None` if this is not possible.
pub(crate) fn open_directory(path: &CStr) -> Option<Fd> {
    // SAFETY: the path is a string.
    let fd = unsafe { syscall(SYS_OPENAT, AT_FDCWD, path.as_ptr(), O_CLOEXEC) };
    (fd >= 0).then_some(Fd(fd as c_int))
}

/// Reads the next entries of a directory. Returns how many bytes were read, and 0 at the end.
pub(crate) fn read_directory<T>(directory: &Fd, entries: &mut T) -> usize {
    let room = mem::size_of::<T>();
    // SAFETY: there is room for this number of bytes.
    let size = unsafe { syscall(SYS_GETDENTS64, directory.0, &raw mut *entries, room) };
    usize::try_from(size).unwrap_or(0)
}

/// Reads a link in a directory. `name` ends with a zero byte. Returns the beginning of the link, as
/// far as there is room, and nothing if there is no such link.
pub(crate) fn read_link<'a>(directory: &Fd, name: &[u8], link: &'a mut [u8]) -> &'a [u8] {
    let (place, room) = (link.as_mut_ptr(), link.len());
    // SAFETY: there is room for this number of bytes, and the name is a string.
    let size = unsafe { syscall(SYS_READLINKAT, directory.0, name.as_ptr(), place, room) };
    link.get(..usize::try_from(size).unwrap_or(0)).unwrap_or_default()
}

/// The identity of an open file, pipe, socket or terminal.
#[derive(PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl File {
    /// Returns the identity of a descriptor's file, or `None` if the descriptor is closed.
    pub(crate) fn of(fd: c_int) -> Option<Self> {
        stat(fd).map(|stat| Self { device: stat[0], inode: stat[1] })
    }
}

/// Returns whether a descriptor belongs to a socket.
pub(crate) fn is_socket(fd: c_int) -> bool {
    stat(fd).is_some_and(|stat| stat[MODE] & S_IFMT == S_IFSOCK)
}

/// Returns a descriptor's `struct stat`, or `None` if the descriptor is closed. The structure begins
/// with the two numbers of the file's identity, and has at most 144 bytes.
fn stat(fd: c_int) -> Option<[u64; 18]> {
    let mut stat = [0_u64; 18];
    // SAFETY: there is room for what the kernel writes.
    let failed = unsafe { syscall(SYS_FSTAT, fd, stat.as_mut_ptr()) } != 0;
    (!failed).then_some(stat)
}
