// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Numbers under which the driver's free callback finds what it is to revoke.

use core::ffi::c_void;

use super::Revoke;
use crate::{
    abi,
    errno::Errno,
    rt::Arc, //
};

/// A number under which the free callback finds its target. It is never used again, so a callback
/// that comes late finds nothing, where a pointer would lead to freed memory.
///
/// # Invariants
///
/// While the number is in the table, the table owns one reference to the `T`.
pub(super) struct Id<T> {
    pub(super) number: u64,
    _target: core::marker::PhantomData<Arc<T>>,
}

impl<T> Id<T> {
    pub(super) fn add(target: Arc<T>) -> Result<Self, Errno> {
        let target = Arc::into_raw(target);
        // SAFETY: Stores the pointer; it is not followed.
        let number = unsafe { abi::nvpm_ids_add(target.cast()) };
        if number == 0 {
            // SAFETY: `into_raw` above gave the pointer, and the table did not take it.
            drop(unsafe { Arc::from_raw(target) });
            return Err(Errno::NOMEM);
        }
        // INVARIANT: The table has the reference that `into_raw` gave up.
        Ok(Self {
            number,
            _target: core::marker::PhantomData,
        })
    }

    /// As the driver carries it to the callback.
    pub(super) fn to_data(&self) -> *mut c_void {
        self.number as usize as *mut c_void
    }

    /// Whether the callback has not come yet.
    pub(super) fn armed(&self) -> bool {
        // SAFETY: Looks up a number; it may be any.
        unsafe { abi::nvpm_ids_has(self.number) }
    }

    /// Takes the target out of the table, if nobody has.
    pub(super) fn take(&self) {
        // SAFETY: The number came from `add` for this type.
        drop(unsafe { take::<T>(self.number) });
    }
}

/// Takes out of the table of ids what is there under `number`: exactly one caller gets it.
///
/// # Safety
///
/// `number` must have been made by `Id::<T>::add`.
unsafe fn take<T>(number: u64) -> Option<Arc<T>> {
    // SAFETY: Looks up a number; it may be any.
    let target = unsafe { abi::nvpm_ids_take(number) };
    if target.is_null() {
        return None;
    }
    // SAFETY: By this function's requirement a pointer under this number is from `Arc::into_raw`
    // of an `Arc<T>`, and the table gives it out once.
    Some(unsafe { Arc::from_raw(target.cast_const().cast()) })
}

/// The driver's free callback.
///
/// # Safety
///
/// `data` must be from [`Id::to_data`] for this type.
pub(super) unsafe extern "C" fn free_callback<T: Revoke>(data: *mut c_void) {
    // SAFETY: By this function's requirement.
    if let Some(target) = unsafe { take::<T>(data as usize as u64) } {
        target.revoke();
    }
}
