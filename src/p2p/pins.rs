// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Pinned memory, of both kinds.

use core::ptr::NonNull;

use super::{
    gate::Gate,
    ids::{
        free_callback,
        Id, //
    },
    table::{
        Addresses,
        PageTable, //
    },
    Revoke, //
};
use crate::{
    abi,
    errno::Errno,
    extents::Range,
    rt::{
        self,
        complain,
        Arc, //
    }, //
};

/// Why there is no pin.
pub(crate) enum NoPin {
    /// The address is not GPU memory of the calling process.
    NotGpuMemory,
    /// The driver cannot pin this memory in the way that was asked for.
    NotInThisWay,
    /// It is GPU memory, but cannot be had.
    Failed(Errno),
}

impl NoPin {
    /// The driver's answer to a request to pin.
    fn from_driver(ret: i32) -> Self {
        match Errno::check(ret) {
            Err(Errno::INVAL) => Self::NotGpuMemory,
            Err(Errno::OPNOTSUPP) => Self::NotInThisWay,
            Err(errno) => Self::Failed(errno),
            Ok(()) => Self::Failed(Errno::IO),
        }
    }
}

/// Pages pinned until this is dropped.
///
/// # Invariants
///
/// `table` came from a successful persistent pin that has not been put.
pub(crate) struct PersistentPin {
    pub(super) table: PageTable,
    address: u64,
}

// SAFETY: The driver puts a persistent pin from any task, and nothing changes its table meanwhile.
unsafe impl Send for PersistentPin {}

impl PersistentPin {
    /// Pins `range` of the calling process.
    pub(crate) fn new(range: &Range) -> Result<Self, NoPin> {
        let mut table = core::ptr::null_mut();
        // SAFETY: `table` is valid for the driver to store a pointer.
        let ret =
            unsafe { abi::nvpm_get_pages_persistent(range.start(), range.pinned(), &mut table) };
        // On failure the pointer may be anything.
        if ret != 0 {
            return Err(NoPin::from_driver(ret));
        }
        let table = NonNull::new(table).ok_or(NoPin::Failed(Errno::IO))?;
        // INVARIANT: The driver has just returned it.
        Ok(Self {
            table: PageTable(table),
            address: range.start(),
        })
    }
}

impl Drop for PersistentPin {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the pin is there to be put, once.
        let ret = unsafe { abi::nvpm_put_pages_persistent(self.address, self.table.0.as_ptr()) };
        if let Err(errno) = Errno::check(ret) {
            complain!("the NVIDIA driver did not unpin GPU memory (error {}): it stays in use until the driver is unloaded\n", errno.number());
        }
    }
}

/// Pages pinned until they are put or the driver takes them back, whichever comes first.
///
/// # Invariants
///
/// `table` came from a successful pin by the process `owner`, whose callback was armed with `id`.
pub(crate) struct RevocablePin<T: Revoke> {
    table: PageTable,
    address: u64,
    owner: i32,
    id: Id<T>,
}

// SAFETY: The pointer in it is a key for the driver; it is not followed.
unsafe impl<T: Revoke> Send for RevocablePin<T> {}

impl<T: Revoke> RevocablePin<T> {
    /// Pins `range` of the calling process, for the driver to call `target` when it takes the
    /// memory back. With the pin come the extents of physical addresses, which stay readable when
    /// the driver has freed its page table; or the reason why the pin is of no use.
    ///
    /// The driver may call `target` before this returns: its [`Revoke::revoke`] must then wait
    /// until the caller has what this returns. Before that the pin must not be dropped, or
    /// callback and unpinning would wait for each other.
    pub(crate) fn new(range: &Range, target: Arc<T>) -> Result<(Self, Addresses), NoPin> {
        let id = Id::add(target).map_err(NoPin::Failed)?;
        let gate = Gate::shared();
        let mut table = core::ptr::null_mut();
        // SAFETY: `table` is valid for the driver to store a pointer; the callback takes an id of
        // this very type, which stays in the table of ids until it is taken.
        let ret = unsafe {
            abi::nvidia_p2p_get_pages(
                0,
                0,
                range.start(),
                range.pinned(),
                &mut table,
                Some(free_callback::<T>),
                id.to_data(),
            )
        };
        drop(gate);
        // On failure the pointer may be anything, and no callback is armed.
        if ret != 0 {
            id.take();
            return Err(NoPin::from_driver(ret));
        }
        let Some(table) = NonNull::new(table) else {
            return Err(NoPin::Failed(Errno::IO));
        };
        // INVARIANT: The driver has just returned it.
        let pin = Self {
            table: PageTable(table),
            address: range.start(),
            owner: rt::process(),
            id,
        };
        // SAFETY: The callback waits for this function's caller, and the driver frees the table
        // only when the callback has returned.
        let addresses = unsafe { pin.table.addresses(range) };
        Ok((pin, addresses))
    }

    /// Lets go of a pin that the driver itself undoes.
    pub(crate) fn forget(self) {
        core::mem::forget(self);
    }
}

impl<T: Revoke> Drop for RevocablePin<T> {
    fn drop(&mut self) {
        // From another process the driver would find nothing, do nothing and say nothing: the
        // callback stays armed. It takes the id when the memory is freed.
        if rt::process() != self.owner {
            return;
        }
        let _gate = Gate::exclusive();
        // The callback has come: the driver frees the page table, and its address may be another's.
        if !self.id.armed() {
            return;
        }
        // SAFETY: By the type's invariant the arguments are those of the pin. If the driver has
        // taken the pages back meanwhile, it finds no such key and returns 0: nobody can have been
        // given the same address since, for that needs the gate.
        let ret = unsafe { abi::nvidia_p2p_put_pages(0, 0, self.address, self.table.0.as_ptr()) };
        match Errno::check(ret) {
            // After this no callback can start, and none is running.
            Ok(()) => self.id.take(),
            Err(errno) => complain!("the NVIDIA driver did not unpin GPU memory (error {}): it does so when the memory is freed\n", errno.number()),
        }
    }
}
