// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Reporting to the RDMA core that a registration is revoked.
//!
//! The core gives its function for that, and the handle that goes with it, when the revocable
//! client is registered. The driver's callback must find them without any context of its own, so
//! they stand here once for the module.

use core::{
    ffi::c_void,
    mem::transmute,
    ptr::null_mut, //
};

use super::{
    errno::Errno,
    rt::{
        complain,
        AtomicPtr,
        Ordering, //
    }, //
};

/// The core's function to invalidate a registration.
pub(crate) type Invalidate = unsafe extern "C" fn(*mut c_void, u64) -> core::ffi::c_int;

// The two change only while no registration can exist: before the module is open for them, and
// after the core has let go of the client.
static FUNCTION: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Stores what the core gave; from here on registrations can be revoked.
///
/// # Safety
///
/// `function` must be callable with `handle` until [`unset`].
pub(crate) unsafe fn set(function: Invalidate, handle: *mut c_void) {
    HANDLE.store(handle, Ordering::Relaxed);
    FUNCTION.store(function as *mut c_void, Ordering::Release);
}

/// Forgets what [`set`] stored.
pub(crate) fn unset() {
    FUNCTION.store(null_mut(), Ordering::Release);
}

/// Reports to the core that the registration with this ticket loses its memory. When this returns,
/// the device does not use the memory any more.
pub(crate) fn invalidate(ticket: u64) {
    let function = FUNCTION.load(Ordering::Acquire);
    if function.is_null() {
        return;
    }
    // SAFETY: Not NULL, so `set` stored it, from a function of this type.
    let function = unsafe { transmute::<*mut c_void, Invalidate>(function) };
    // SAFETY: By the requirement of `set`.
    let ret = unsafe { function(HANDLE.load(Ordering::Relaxed), ticket) };
    if let Err(errno) = Errno::check(ret) {
        complain!(
            "the RDMA core did not revoke a registration (error {})\n",
            errno.number()
        );
    }
}
