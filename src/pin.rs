// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Pinned GPU memory.
//!
//! A *persistent* pin lasts until this module ends the pin. A *revocable* pin also ends when the
//! memory is freed. At that time the driver calls the free callback (`callback/callback.c`, which
//! calls `revocable.rs`). After the callback has returned, the driver frees the page table and the
//! mappings made from the table.

use core::{mem, ptr::null_mut};

use kernel::prelude::*;

use crate::{
    abi::{self, ffi::c_void},
    device::Device,
    dma::Mapping,
    errno::{eopnotsupp, number, to_result},
    extents::{Extents, Range},
    page_table::{DriverMapping, Gpu, PageTable},
    parameters::persistent_instead,
    ratelimit::pr_warn_ratelimited,
    sg_table::SgTable,
};

/// The unpin lock, taken for pinning. Any number of threads can pin at the same time. As long as this
/// object exists, the thread holds the lock.
///
/// The driver identifies a pin by the address of its page table. After the driver has freed a
/// table, a new pin's table may have the same address. While this module checks whether an old pin
/// still exists and unpins it, [`UnpinLock`] therefore keeps other threads from making new pins.
struct PinLock(());

impl PinLock {
    fn new() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock, which `drop` releases.
        unsafe { abi::nvpm_pin_lock() };
        Self(())
    }
}

impl Drop for PinLock {
    fn drop(&mut self) {
        // SAFETY: This object has taken the lock for pinning.
        unsafe { abi::nvpm_pin_unlock() };
    }
}

/// The unpin lock, taken for unpinning. Only one thread can unpin, and no thread can pin in the
/// meantime. As long as this object exists, the thread holds the lock.
struct UnpinLock(());

impl UnpinLock {
    fn new() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock, which `drop` releases.
        unsafe { abi::nvpm_unpin_lock() };
        Self(())
    }
}

impl Drop for UnpinLock {
    fn drop(&mut self) {
        // SAFETY: This object has taken the lock for unpinning.
        unsafe { abi::nvpm_unpin_unlock() };
    }
}

/// The reason why there is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinError {
    /// The address is not GPU memory of the calling process.
    NotGpuMemory,
    /// The memory is GPU memory, but cannot be pinned.
    Failed(Error),
}

impl PinError {
    /// Converts the driver's answer to a request for a pin, if the request has failed.
    fn from_driver(ret: i32) -> Self {
        match to_result(ret) {
            Err(error) if error == EINVAL => Self::NotGpuMemory,
            Err(error) => Self::Failed(error),
            Ok(()) => Self::Failed(EIO),
        }
    }

    /// Tells whether a revocable pin may succeed after a persistent pin has failed with this error.
    pub(crate) fn may_fall_back(self) -> bool {
        matches!(self, Self::Failed(error) if error == eopnotsupp() || error == EIO)
    }
}

/// Pages that are pinned until this object is dropped. The object also has the mapping of the
/// pages, which is undone before the pages are unpinned.
///
/// # Invariants
///
/// `table` came from a successful persistent pin at `address`. The pin was not given back, so the
/// driver does not free the table.
pub(crate) struct PersistentPin {
    table: PageTable,
    address: u64,
    mapping: PinMapping,
}

/// The mapping of persistently pinned pages. The pages are mapped at most once.
enum PinMapping {
    /// The pages were never mapped, or mapping them has failed.
    None,
    /// The device may use the addresses.
    Mapped(Mapping),
    /// The mapping was undone. The list is kept, because the core may still read the list.
    Unmapped {
        #[allow(dead_code)] // The list is only kept until the pages are unpinned.
        list: Option<SgTable>,
    },
}

// SAFETY: The driver lets any task put a persistent pin, and does not change the pin's table.
unsafe impl Send for PersistentPin {}

impl PersistentPin {
    /// Pins `range` of the calling process.
    pub(crate) fn new(range: &Range) -> Result<Self, PinError> {
        let mut table = null_mut();
        let lock = PinLock::new();
        // SAFETY: `table` is valid for the driver to store a pointer.
        let ret = unsafe {
            abi::nvpm_get_pages_persistent(range.start(), range.pinned_len(), &mut table)
        };
        drop(lock);
        // On failure the driver may leave any value in the pointer.
        if ret != 0 {
            return Err(PinError::from_driver(ret));
        }
        // SAFETY: The driver has just pinned the pages.
        let table = unsafe { PageTable::from_driver(table) }.ok_or(PinError::Failed(EIO))?;
        // INVARIANT: The pin is new.
        Ok(Self {
            table,
            address: range.start(),
            mapping: PinMapping::None,
        })
    }

    /// Returns the physical addresses of the pages, as extents.
    pub(crate) fn extents(&self, range: &Range) -> Result<Extents> {
        // SAFETY: By the type's invariant the driver does not free the table.
        unsafe { self.table.extents(range) }
    }

    /// Returns the physical addresses of the pages, and whether the memory is behind a coherent
    /// link.
    pub(crate) fn location(&self, range: &Range) -> Result<(Extents, bool)> {
        // SAFETY: By the type's invariant the driver does not free the table.
        unsafe { self.table.location(range) }
    }

    /// Returns the GPU that has the memory.
    pub(crate) fn gpu(&self) -> Gpu {
        // SAFETY: By the type's invariant the driver does not free the table.
        unsafe { self.table.gpu() }
    }

    /// Tells whether the pages may be mapped, because they were never mapped before.
    pub(crate) fn is_new(&self) -> bool {
        matches!(self.mapping, PinMapping::None)
    }

    /// Maps the pages for `device`. Returns the scatterlist for the core.
    pub(crate) fn map(&mut self, device: Device<'_>, range: &Range) -> Result<abi::sg_table> {
        let mapping = Mapping::new(device, &self.extents(range)?, range)?;
        Ok(self.set_mapping(mapping))
    }

    /// Lets the driver map the pages for `device`. Returns the scatterlist for the core.
    pub(crate) fn map_by_driver(
        &mut self,
        device: Device<'_>,
        range: &Range,
    ) -> Result<abi::sg_table> {
        // SAFETY: This object keeps the mapping, and `drop` undoes the mapping before it gives the
        // pin back. By the type's invariant the driver does not free the table before that.
        let mapping = unsafe { self.table.map(device) }?;
        let mapping = Mapping::by_driver(mapping, range)?;
        Ok(self.set_mapping(mapping))
    }

    fn set_mapping(&mut self, mapping: Mapping) -> abi::sg_table {
        let table = mapping.for_core();
        self.mapping = PinMapping::Mapped(mapping);
        table
    }

    /// Lets the driver map the pages for `device` as long as the result exists.
    pub(crate) fn driver_mapping(&self, device: Device<'_>) -> Result<DriverMapping<'_>> {
        // SAFETY: By the type's invariant the driver does not free the table. The result borrows
        // the pin, so the pin is not dropped before the result.
        unsafe { self.table.map(device) }
    }

    /// Undoes the mapping, if there is one, and keeps its scatterlist. May sleep.
    pub(crate) fn unmap(&mut self) {
        self.mapping = match mem::replace(&mut self.mapping, PinMapping::None) {
            PinMapping::Mapped(mapping) => PinMapping::Unmapped {
                list: mapping.unmap(),
            },
            // There is no mapping to undo. A list that is kept stays.
            other => other,
        };
    }

    /// Returns the state for `/proc/driver/nv_peer_mem/regions`.
    pub(crate) fn state(&self) -> abi::nvpm_region_state {
        match self.mapping {
            PinMapping::None => abi::NVPM_REGION_PINNED,
            PinMapping::Mapped(_) => abi::NVPM_REGION_MAPPED,
            PinMapping::Unmapped { .. } => abi::NVPM_REGION_UNMAPPED,
        }
    }
}

impl Drop for PersistentPin {
    fn drop(&mut self) {
        self.unmap();
        // SAFETY: By the type's invariant the pin was not given back. `self` owns the table and is
        // dropped now, so the table is not used again.
        let ret = unsafe { abi::nvpm_put_pages_persistent(self.address, self.table.as_ptr()) };
        if let Err(error) = to_result(ret) {
            pr_warn_ratelimited!("the NVIDIA driver did not unpin GPU memory (error {}): it stays in use until the driver is unloaded\n", number(&error));
        }
    }
}

/// The addresses and the GPU of revocably pinned memory. This is a copy of the page table's data,
/// because the driver may free the table at any time.
pub(crate) struct PinnedMemory {
    pub(crate) extents: Extents,
    pub(crate) gpu: Gpu,
}

/// Pages that are pinned until this module unpins them or the driver takes them back.
///
/// Dropping this object does not unpin the pages. It is dropped without [`Self::put`] if the driver
/// takes the pages back, because the driver then ends the pin itself.
///
/// # Invariants
///
/// The table came from a successful call to pin. This type uses the table's address only as a key
/// for the driver, and does not read the table.
#[must_use = "only `put` gives the pages back"]
pub(crate) struct RevocablePin(PageTable);

impl RevocablePin {
    /// Pins `range` of the calling process. When the memory is freed, the driver calls
    /// `nv_peer_mem_callback` with `data`. Returns the pin, together with the memory or the reason
    /// why the memory cannot be used. Returns an error if there is no pin.
    ///
    /// The callback may come before this function returns.
    ///
    /// # Safety
    ///
    /// The callback must wait until the caller has the result. The caller must let the callback
    /// continue before it calls [`Self::put`], because otherwise the callback and `put` would wait
    /// for each other.
    pub(crate) unsafe fn new(
        range: &Range,
        data: u64,
    ) -> Result<(Self, Result<PinnedMemory>), PinError> {
        let lock = PinLock::new();
        let table = get_pages(range, data);
        drop(lock);
        let table = table?;
        // SAFETY: By this function's requirement the callback waits, and the driver frees the table
        // only after the callback has returned.
        let memory = unsafe { Self::memory(&table, range) };
        // INVARIANT: The driver has just pinned the pages of this table.
        Ok((Self(table), memory))
    }

    /// Copies the addresses and the GPU from the page table. Returns an error if the memory cannot
    /// be pinned revocably.
    ///
    /// # Safety
    ///
    /// The driver must not free the table during the call.
    unsafe fn memory(table: &PageTable, range: &Range) -> Result<PinnedMemory> {
        // SAFETY: By this function's requirement the driver does not free the table during the
        // call.
        let (extents, coherent) = unsafe { table.location(range) }?;
        if coherent {
            pr_warn_ratelimited!(
                "GPU memory behind a coherent link cannot be revoked{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        // SAFETY: By this function's requirement the driver does not free the table during the
        // call.
        let gpu = unsafe { table.gpu() };
        Ok(PinnedMemory { extents, gpu })
    }

    /// Unpins `range`, unless `is_freed` says that the callback has come. After the callback, the
    /// driver frees the page table, and may use the table's address for another pin. Returns false
    /// if the driver reports an error, otherwise true.
    ///
    /// In two cases the driver reports success although it does not find the pin. In the first
    /// case, the driver takes the pages back at the same time. In the second case, the driver does
    /// not list the calling process for this memory any more. The driver cannot find a newer pin
    /// with the same key instead, because no thread can pin while this function holds the unpin
    /// lock.
    pub(crate) fn put(self, range: &Range, is_freed: impl FnOnce() -> bool) -> bool {
        let _lock = UnpinLock::new();
        is_freed() || put_pages(range, self.0)
    }
}

/// Pins `range` revocably. When the memory is freed, the driver passes `data` to the callback.
fn get_pages(range: &Range, data: u64) -> Result<PageTable, PinError> {
    let mut table = null_mut();
    // SAFETY: `table` is valid for the driver to store a pointer. The callback accepts any number,
    // and the code of the callback is never unloaded.
    let ret = unsafe {
        abi::nvidia_p2p_get_pages(
            0,
            0,
            range.start(),
            range.pinned_len(),
            &mut table,
            Some(abi::nvpm_callback),
            data as usize as *mut c_void,
        )
    };
    // On failure the driver may leave any value in the pointer, and will not call the callback.
    if ret != 0 {
        return Err(PinError::from_driver(ret));
    }
    // SAFETY: The driver has just pinned the pages.
    unsafe { PageTable::from_driver(table) }.ok_or(PinError::Failed(EIO))
}

/// Unpins pages that [`get_pages`] has pinned. Returns false, and logs a warning, if the driver
/// refuses.
fn put_pages(range: &Range, table: PageTable) -> bool {
    // SAFETY: The pin was made with the same arguments. The driver looks for the table's address
    // among its own tables, and reads the table only if the address is among them.
    let ret = unsafe { abi::nvidia_p2p_put_pages(0, 0, range.start(), table.as_ptr()) };
    if let Err(error) = to_result(ret) {
        pr_warn_ratelimited!(
            "the NVIDIA driver did not unpin GPU memory (error {}): it is unpinned when it is freed\n",
            number(&error)
        );
        return false;
    }
    true
}
