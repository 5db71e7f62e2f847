// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The functions of the C library that this library uses. Every glibc has all of them, with these
//! names.

use core::ffi::{c_char, c_int, c_long, c_uint, c_void};

pub(crate) const ENOMEM: c_int = 12;
pub(crate) const EFAULT: c_int = 14;
pub(crate) const ENFILE: c_int = 23;
pub(crate) const EMFILE: c_int = 24;
pub(crate) const EOPNOTSUPP: c_int = 95;

pub(crate) const PTHREAD_CANCEL_DISABLE: c_int = 1;

const SYS_FUTEX: c_long = if cfg!(target_arch = "aarch64") { 98 } else { 202 };
/// `FUTEX_WAIT | FUTEX_PRIVATE_FLAG`.
const FUTEX_WAIT: c_int = 128;
/// `FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG`.
const FUTEX_WAKE_OP: c_int = 5 | 128;
/// The operation of `FUTEX_WAKE_OP` that adds 0 to a word. It is the value of the macro call
/// `FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0)`.
const ADD_NOTHING: c_int = 1 << 28;

/// The number of the system call. The library uses the system call, because glibc exports no
/// function `fstat()` before version 2.33.
const SYS_FSTAT: c_long = if cfg!(target_arch = "aarch64") { 80 } else { 5 };

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
    /// Creates a key for a value. Each thread has a value of its own, which is NULL at first.
    pub(crate) fn pthread_key_create(key: *mut c_uint, destructor: *const c_void) -> c_int;
    /// Returns this thread's value.
    pub(crate) fn pthread_getspecific(key: c_uint) -> *mut c_void;
    /// Sets this thread's value.
    pub(crate) fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    /// Sets whether this thread can be cancelled.
    pub(crate) fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
    /// Locks a mutex. Returns an error if another thread has locked it.
    pub(crate) fn pthread_mutex_trylock(mutex: *mut Mutex) -> c_int;
    /// Unlocks a mutex.
    pub(crate) fn pthread_mutex_unlock(mutex: *mut Mutex) -> c_int;
    /// Lets another thread run, if one is ready to run.
    fn sched_yield() -> c_int;
    /// Sets three functions. `fork()` calls the first one at its beginning, the second one at its
    /// end in the parent, and the third one at its end in the child. `pthread_atfork()` is not
    /// used, because the C library has it only as a part that must be linked into each library.
    pub(crate) fn __register_atfork(
        first: extern "C" fn(),
        in_parent: extern "C" fn(),
        in_child: extern "C" fn(),
        library: *const c_void,
    ) -> c_int;
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
    // SAFETY: as in `errno`.
    let location = unsafe { __errno_location() };
    // SAFETY: as in `errno`.
    unsafe { *location = errno }
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

/// Returns whether the process may write to the page that begins at `page`. The function does not
/// change the page. It lets the kernel add 0 to the first word of the page in one atomic step, and
/// the kernel fails if the page is read-only.
///
/// # Safety
///
/// The page is mapped.
pub(crate) unsafe fn is_writable(page: u64) -> bool {
    let before = errno();
    let nobody_waits: c_uint = 0;
    let here = &raw const nobody_waits;
    let none: c_long = 0;
    // SAFETY: no thread waits at any of the two addresses, so the kernel wakes no thread. The word
    // at `page` keeps its value, even if other threads change it at the same time.
    let failed = unsafe { syscall(SYS_FUTEX, here, FUTEX_WAKE_OP, 0, none, page, ADD_NOTHING) };
    let refused = failed != 0 && errno() == EFAULT;
    set_errno(before);
    !refused
}

/// A descriptor, closed when dropped.
pub(crate) struct Fd(pub(crate) c_int);

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: nothing else has this descriptor.
        unsafe { close(self.0) };
    }
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
        // A `struct stat` begins with the two numbers of the identity, and has at most 144 bytes.
        let mut stat = [0_u64; 18];
        // SAFETY: there is room for what the kernel writes.
        let failed = unsafe { syscall(SYS_FSTAT, fd, stat.as_mut_ptr()) } != 0;
        (!failed).then_some(Self { device: stat[0], inode: stat[1] })
    }
}
