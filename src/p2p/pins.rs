// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Pinned memory, of both kinds.

use core::ptr::NonNull;

use super::{
    gate::Gate,
    has_persistent,
    ids::{
        free_callback,
        Id, //
    },
    pieces::Pieces,
    process::{
        LeftBehind,
        Process, //
    },
    table::PageTable,
    verdict::Gpu,
    Revoke, //
};
use crate::{
    abi,
    errno::Errno,
    extents::{
        Extent,
        Range, //
    },
    rt::{
        self,
        complain,
        Arc, //
    }, //
};

/// Why there is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPin {
    /// The address is not GPU memory of the calling process.
    NotGpuMemory,
    /// It is GPU memory, but cannot be had.
    Failed(Errno),
}

impl NoPin {
    /// The driver's answer to a request to pin.
    fn from_driver(ret: i32) -> Self {
        match Errno::check(ret) {
            Err(Errno::INVAL) => Self::NotGpuMemory,
            Err(errno) => Self::Failed(errno),
            Ok(()) => Self::Failed(Errno::IO),
        }
    }

    /// Of a pin that is never revoked: whether one that can be revoked may do.
    pub(crate) fn other_way(self) -> bool {
        matches!(self, Self::Failed(Errno::OPNOTSUPP | Errno::IO))
    }
}

/// Bytes above which the driver is asked for single pages first. Below, what it takes is no more
/// than 16 MiB, twice.
const LARGE: u64 = 64 << 30;
/// Bytes that no GPU has. For as many the driver takes 256 MiB of its own.
const LARGEST: u64 = 1 << 40;

/// Whether it is worth to ask the driver for all of `range`: before it looks whose memory it is,
/// it takes memory of its own for each page, so a range that is nobody's would cost gigabytes.
/// What the driver pins is one allocation, of which both ends are the process's. The ends of two
/// allocations may be as far apart as their owner likes, so no range is larger than a GPU.
pub(crate) fn plausible(range: &Range) -> bool {
    if range.pinned() <= LARGE {
        return true;
    }
    if range.pinned() > LARGEST {
        return false;
    }
    if !has_persistent() {
        return true;
    }
    let somebodys = |page| !matches!(PersistentPin::new(&page), Err(NoPin::NotGpuMemory));
    somebodys(range.first_page()) && somebodys(range.last_page())
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

impl PersistentPin {
    /// Gives the pages to `each`, as extents of physical addresses, neighbours merged.
    pub(super) fn extents(
        &self,
        range: &Range,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // SAFETY: By the type's invariant the driver frees the table when we put the pin.
        unsafe { self.table.extents(range, each) }
    }

    /// Where the pages are.
    pub(super) fn pieces(&self, range: &Range) -> Result<Pieces, Errno> {
        // SAFETY: As above.
        unsafe { self.table.pieces(range) }
    }

    /// Whether it is memory behind a coherent link; [`Self::pieces`] has read it before.
    pub(super) fn coherent(&self) -> Result<bool, Errno> {
        // SAFETY: As above.
        unsafe { self.table.coherent() }
    }

    /// The GPU whose memory it is.
    pub(crate) fn gpu(&self) -> Result<Gpu, Errno> {
        // SAFETY: As above.
        unsafe { self.table.gpu() }
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

/// What is known of revocably pinned memory when the driver may have freed its page table: where
/// it is, and of which GPU.
pub(crate) struct Physical {
    pub(crate) pieces: Pieces,
    pub(crate) gpu: Gpu,
}

/// Pages pinned until they are put or the driver takes them back, whichever comes first.
///
/// # Invariants
///
/// `table` came from a successful pin, whose callback was armed with `id`.
pub(crate) struct RevocablePin<T: Revoke> {
    table: PageTable,
    id: Id<T>,
}

// SAFETY: The pointer in it is a key for the driver; it is not followed.
unsafe impl<T: Revoke> Send for RevocablePin<T> {}

impl<T: Revoke> RevocablePin<T> {
    /// Pins `range` of the calling process, for the driver to call `target` when it takes the
    /// memory back. With the pin comes what there is to know of the memory, or the reason why the
    /// pin is of no use.
    ///
    /// The driver may call `target` before this returns: its [`Revoke::revoke`] must then wait
    /// until the caller has what this returns. Before that the pin must not be undone, or
    /// callback and unpinning would wait for each other.
    pub(crate) fn new(
        range: &Range,
        target: Arc<T>,
    ) -> Result<(Self, Result<Physical, Errno>), NoPin> {
        Process::calling().may_pin().map_err(NoPin::Failed)?;
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
            id,
        };
        // SAFETY: The callback waits for this function's caller, and the driver frees the table
        // only when the callback has returned.
        let physical = unsafe { pin.physical(range) };
        Ok((pin, physical))
    }

    /// What there is to know of the memory.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn physical(&self, range: &Range) -> Result<Physical, Errno> {
        // SAFETY: By this function's requirement.
        let pieces = unsafe { self.table.pieces(range) }?;
        // SAFETY: As above; it has just been read.
        if unsafe { self.table.coherent() }? {
            complain!(
                "GPU memory behind a coherent link cannot be revoked{}\n",
                rt::persistent_instead()
            );
            return Err(Errno::OPNOTSUPP);
        }
        // SAFETY: As above.
        let gpu = unsafe { self.table.gpu() }?;
        Ok(Physical { pieces, gpu })
    }

    /// Lets go of a pin that the driver itself undoes.
    pub(crate) fn forget(self) {}

    /// Unpins `range`, which `owner` has pinned, if the driver has not taken the pages back. Where it
    /// cannot be told to, or does not say whether it has done so, the pin is left behind, and its
    /// callback armed: it takes the id when the memory is freed.
    pub(crate) fn unpin(self, range: &Range, owner: &Process) -> Option<LeftBehind> {
        // From another process the driver would find nothing, do nothing and say nothing. So it may
        // in a process that ends, if its own objects of the driver are gone: what is left of them
        // is for the driver to free, with a callback.
        if !owner.is_calling() || rt::exiting() {
            return self.left_behind(range, owner);
        }
        let gate = Gate::exclusive();
        // The callback has come: the driver frees the page table, and its address may be another's.
        if !self.id.armed() {
            return None;
        }
        // In a process that lives the driver may find nothing, too. It is asked before: afterwards
        // memory that is freed at this moment would look the same.
        if !self.listed(&range.first_page()) {
            drop(gate);
            return self.left_behind(range, owner);
        }
        // Drivers before 535 read the table before they take their lock: it must not have been freed
        // while they were asked.
        if !self.id.armed() {
            return None;
        }
        // SAFETY: By the type's invariant the arguments are those of the pin. If the driver has
        // taken the pages back meanwhile, it finds no such key and returns 0: nobody can have been
        // given the same address since, for that needs the gate.
        let ret = unsafe { abi::nvidia_p2p_put_pages(0, 0, range.start(), self.table.0.as_ptr()) };
        drop(gate);
        match Errno::check(ret) {
            // After this no callback can start, and none is running.
            Ok(()) => {
                self.id.take();
                None
            }
            Err(errno) => {
                did_not_unpin(errno);
                self.left_behind(range, owner)
            }
        }
    }

    /// Whether the driver finds memory of the calling process at `page`, which is pinned: it looks
    /// for what to unpin among the processes that the memory's objects list, and the client of the
    /// driver that lists this one may have ended (with MPS, which holds the memory of many
    /// processes in its own). For the thread that has the gate to itself.
    fn listed(&self, page: &Range) -> bool {
        let mut table = core::ptr::null_mut();
        // SAFETY: `table` is valid for the driver to store a pointer; the callback takes the id of
        // this pin, which finds the same target for both, once.
        let ret = unsafe {
            abi::nvidia_p2p_get_pages(
                0,
                0,
                page.start(),
                page.pinned(),
                &mut table,
                Some(free_callback::<T>),
                self.id.to_data(),
            )
        };
        match Errno::check(ret) {
            Err(Errno::INVAL) => false,
            // No memory for the question says nothing of the answer.
            Err(_) => true,
            Ok(()) => {
                // SAFETY: The driver has just pinned this page. If it has taken it back meanwhile it
                // finds no such pin: nobody can have been given the address of its table, for that
                // needs the gate.
                let ret = unsafe { abi::nvidia_p2p_put_pages(0, 0, page.start(), table) };
                // The callback of a page that stays pinned will look for the id.
                Errno::check(ret)
                    .inspect_err(|&errno| did_not_unpin(errno))
                    .is_ok()
            }
        }
    }

    /// Counts what is left behind, unless the callback has come.
    fn left_behind(self, range: &Range, owner: &Process) -> Option<LeftBehind> {
        if !self.id.armed() {
            return None;
        }
        LeftBehind::new(owner, range.pages())
    }
}

/// Says that memory stays pinned, whose callback is armed.
fn did_not_unpin(errno: Errno) {
    complain!(
        "the NVIDIA driver did not unpin GPU memory (error {}): it does so when the memory is freed\n",
        errno.number()
    );
}
