// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! NVIDIA's side: owning handles over what the driver gives, and its free callback.
//!
//! C header: `nv-p2p.h`. There are two kinds of pins. A *persistent* one lasts until it is put. A
//! *revocable* one is also taken back when the memory is freed: the driver calls us, and when we
//! return it frees the page table and everything that hangs on it. It may do so before the call
//! that pinned has returned.

use super::{
    abi,
    errno::Errno,
    extents::GPU_PAGE,
    rt, //
};

// With their paths, for the host tests, which take this file from where it is.
#[path = "p2p/device.rs"]
mod device;
#[path = "p2p/gate.rs"]
mod gate;
#[path = "p2p/ids.rs"]
mod ids;
#[path = "p2p/mapping.rs"]
mod mapping;
#[path = "p2p/pieces.rs"]
mod pieces;
#[path = "p2p/pins.rs"]
mod pins;
#[path = "p2p/process.rs"]
mod process;
#[path = "p2p/table.rs"]
mod table;
#[path = "p2p/verdict.rs"]
mod verdict;

use ids::free_callback;

pub(crate) use device::Device;
pub(crate) use mapping::{
    map,
    DriverMapping,
    MappedRange,
    Placed, //
};
pub(crate) use pins::{
    plausible,
    NoPin,
    PersistentPin,
    Physical,
    RevocablePin, //
};
pub(crate) use process::{
    LeftBehind,
    Process, //
};
pub(crate) use verdict::{
    way,
    Way, //
};

/// What the driver's free callback finds under the id that it was armed with.
///
/// # Safety
///
/// The driver gives the memory to others as soon as [`Self::revoke`] returns, and frees the page table
/// of the pin. By then no device may reach the memory by what was mapped of it, nobody may read that
/// table, and the pin is given up by [`RevocablePin::forget`] or by whoever unpins it, who looks at the
/// id first. So it must wait until the caller of [`RevocablePin::new`] has what that returns.
pub(crate) unsafe trait Revoke: Send + Sync {
    /// The driver takes the memory back: it does so when this returns.
    fn revoke(&self);
}

/// Whether the driver that this module was built for has persistent pins.
pub(crate) fn has_persistent() -> bool {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_has_persistent() }
}

/// The module's end.
///
/// # Safety
///
/// No region, and nothing else that knows a GPU, may be left or come.
pub(crate) unsafe fn end<T: Revoke>() {
    drain::<T>();
    // SAFETY: By this function's requirement.
    unsafe { verdict::forget() };
}

/// Returns when no callback is running any more, not even its last instructions. For the module's
/// end: by then no callback is armed, since each keeps the module.
///
/// The driver holds one lock over every callback and takes it to look for memory: it is asked for
/// some that nobody has.
pub(crate) fn drain<T: Revoke>() {
    let mut table = core::ptr::null_mut();
    loop {
        // SAFETY: `table` is valid for the driver to store a pointer; the id 0 is nobody's.
        let ret = unsafe {
            abi::nvidia_p2p_get_pages(
                0,
                0,
                GPU_PAGE,
                GPU_PAGE,
                &mut table,
                Some(free_callback::<T>),
                core::ptr::null_mut(),
            )
        };
        match Errno::check(ret) {
            // The driver may have had no memory to get as far as its lock.
            Err(Errno::NOMEM) => rt::pause(),
            Err(_) => return,
            Ok(()) => {
                // SAFETY: The driver has just returned this pin.
                unsafe { abi::nvidia_p2p_put_pages(0, 0, GPU_PAGE, table) };
                return;
            }
        }
    }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/p2p.rs"]
mod kunit;
