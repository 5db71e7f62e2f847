// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! NVIDIA's side: pinned GPU memory, and the driver's free callback.
//!
//! C header: `nv-p2p.h`. A *persistent* pin lasts until this module puts it. A *revocable* pin also ends
//! when the memory is freed: the driver calls back (`callback/callback.c`, then `revocable.rs`), and frees the
//! page table, with all that belongs to it, when the callback has returned.

use core::{
    ptr::{null_mut, NonNull},
    slice,
};

use kernel::prelude::*;

use crate::{
    abi::{self, eopnotsupp, ffi::c_void, persistent_instead},
    compat::pr_warn_ratelimited,
    dma::Device,
    extents::{Extents, Range},
};

/// Why there is no pin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PinError {
    /// The address is not GPU memory of the calling process.
    NotGpuMemory,
    /// It is GPU memory, but cannot be pinned.
    Failed(Error),
}

impl PinError {
    /// The reason in the driver's answer to a request to pin.
    fn from_driver(ret: i32) -> Self {
        match abi::check(ret) {
            Err(error) if error == EINVAL => Self::NotGpuMemory,
            Err(error) => Self::Failed(error),
            Ok(()) => Self::Failed(EIO),
        }
    }

    /// Whether a revocable pin may succeed where a persistent one failed for this reason.
    pub(crate) fn may_fall_back(self) -> bool {
        matches!(self, Self::Failed(error) if error == eopnotsupp() || error == EIO)
    }
}

/// Above this number of bytes the driver is asked for single pages first. Up to it the driver allocates
/// at most 16 MiB, twice.
const LARGE: u64 = 64 << 30;
/// More bytes than a GPU has. To pin this many the driver allocates 256 MiB.
const LARGEST: u64 = 1 << 40;

/// Whether the driver may be asked to pin all of `range`. The driver allocates memory for each page before
/// it looks up whose pages they are, so a huge range that is not GPU memory would cost gigabytes. Only one
/// allocation can be pinned, so both of its ends must be GPU memory of the process. A process can place
/// two allocations far apart and ask for everything between, so a range is never larger than a GPU.
pub(crate) fn probe_ends(range: &Range) -> bool {
    if range.pinned() <= LARGE {
        return true;
    }
    if range.pinned() > LARGEST {
        return false;
    }
    let is_gpu_memory = |page| !matches!(PersistentPin::new(&page), Err(PinError::NotGpuMemory));
    is_gpu_memory(range.first_page()) && is_gpu_memory(range.last_page())
}

/// A GPU, by its UUID; zeros where the driver does not say.
pub(crate) type Gpu = [u8; 16];

/// A page table of the driver.
///
/// # Invariants
///
/// Came from a successful call to pin. The driver may have freed it since: every function that reads
/// it requires that it has not.
#[derive(Clone, Copy)]
struct PageTable(NonNull<abi::nvidia_p2p_page_table>);

// SAFETY: The pointer may be followed from any thread, where it may be followed at all.
unsafe impl Send for PageTable {}

impl PageTable {
    /// Where the pages are: extents of physical addresses.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn extents(&self, range: &Range) -> Result<Extents> {
        // SAFETY: By the type's invariant it is a table of the driver, which by this function's
        // requirement is not freed meanwhile.
        let table = unsafe { self.0.as_ref() };
        // SAFETY: `table` is a reference, so it is valid for reading.
        if !unsafe { abi::nvpm_page_table_known(table) } {
            return Err(unknown_version("page table", table.version));
        }
        let (page, entries) = page_size("pinned", table.page_size, table.entries, range)?;
        if table.pages.is_null() {
            return Err(EIO);
        }
        // SAFETY: The driver's `pages` has `entries` pointers for as long as the table exists.
        let pages = unsafe { slice::from_raw_parts(table.pages, entries) };
        Extents::collect(pages, page, |&entry| {
            // SAFETY: Each of the pointers is to a page of the driver, which lives as long as the table.
            unsafe { (*entry).physical_address }
        })
    }

    /// Whether the memory is behind a coherent link: the kernel treats it as RAM, so it is not mapped as
    /// the memory of a device. An error if the kernel has not onlined it: then neither this module nor the
    /// driver can map it.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile, and [`Self::extents`] must have succeeded.
    unsafe fn is_coherent(&self) -> Result<bool> {
        // SAFETY: By this function's requirement the table is not freed meanwhile, and `extents` has
        // checked its version and its pages.
        let coherent = unsafe { abi::nvpm_page_table_coherent(self.0.as_ptr()) };
        if coherent < 0 {
            pr_warn_ratelimited!("GPU memory behind a coherent link is not online: nothing can reach it before the driver has given it to the kernel (numactl -H shows the GPU's node; nvidia-persistenced brings it online)\n");
        }
        abi::check(coherent.min(0))?;
        Ok(coherent > 0)
    }

    /// Where the pages are, and whether they are memory behind a coherent link.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn location(&self, range: &Range) -> Result<(Extents, bool)> {
        // SAFETY: By this function's requirement the table is not freed meanwhile.
        let extents = unsafe { self.extents(range) }?;
        // SAFETY: By this function's requirement the table is not freed meanwhile; `extents` has succeeded.
        let coherent = unsafe { self.is_coherent() }?;
        Ok((extents, coherent))
    }

    /// The GPU whose memory it is.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn gpu(&self) -> Gpu {
        // SAFETY: By this function's requirement the table is not freed meanwhile.
        let uuid = unsafe { abi::nvpm_page_table_uuid(self.0.as_ptr()) };
        // SAFETY: NULL, or valid for reading 16 bytes, as long as the table is not freed.
        unsafe { uuid.cast::<Gpu>().as_ref() }
            .copied()
            .unwrap_or_default()
    }
}

/// Logs that the driver has made an object of a version that this module does not know.
fn unknown_version(made: &str, version: u32) -> Error {
    pr_warn_ratelimited!(
        "the NVIDIA driver's {made} has version {version:#x}, which this module does not know; install a version of nv_peer_mem that fits the driver\n"
    );
    eopnotsupp()
}

/// The bytes of a page and the number of pages that the driver reports to have `done` (pinned or mapped).
/// An error if they do not add up to the whole range.
fn page_size(done: &str, kind: u32, entries: u32, range: &Range) -> Result<(u64, usize)> {
    let page: u64 = match kind {
        abi::NVIDIA_P2P_PAGE_SIZE_4KB => 4 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_64KB => 64 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_128KB => 128 << 10,
        _ => {
            pr_warn_ratelimited!(
                "the NVIDIA driver's page size type {kind} is unknown to this module\n"
            );
            return Err(eopnotsupp());
        }
    };
    if u64::from(entries).checked_mul(page) != Some(range.pinned()) {
        pr_warn_ratelimited!(
            "the NVIDIA driver {done} {entries} pages of {page} bytes for a range of {} bytes\n",
            range.pinned()
        );
        return Err(EIO);
    }
    let entries = usize::try_from(entries).map_err(|_| EIO)?;
    Ok((page, entries))
}

/// Pages that are pinned until this is dropped, and the driver's mapping of them, if there is one.
///
/// # Invariants
///
/// `table` came from a successful persistent pin at `address`. The pin has not been put, so the driver does
/// not free the table. `mapping` was made from the table for the device, and has not been unmapped.
pub(crate) struct PersistentPin {
    table: PageTable,
    address: u64,
    mapping: Option<(Device, NonNull<abi::nvidia_p2p_dma_mapping>)>,
}

// SAFETY: The driver lets any task unmap and put a persistent pin, and does not change its table and
// mapping meanwhile.
unsafe impl Send for PersistentPin {}

impl PersistentPin {
    /// Pins `range` of the calling process.
    pub(crate) fn new(range: &Range) -> Result<Self, PinError> {
        let mut table = null_mut();
        let lock = UnpinLock::shared();
        // SAFETY: `table` is valid for the driver to store a pointer.
        let ret =
            unsafe { abi::nvpm_get_pages_persistent(range.start(), range.pinned(), &mut table) };
        drop(lock);
        // On failure the driver leaves any value in the pointer.
        if ret != 0 {
            return Err(PinError::from_driver(ret));
        }
        let table = NonNull::new(table).ok_or(PinError::Failed(EIO))?;
        // INVARIANT: The driver has just returned it.
        Ok(Self {
            table: PageTable(table),
            address: range.start(),
            mapping: None,
        })
    }

    /// Where the pages are: extents of physical addresses.
    pub(crate) fn extents(&self, range: &Range) -> Result<Extents> {
        // SAFETY: By the type's invariant the driver does not free the table.
        unsafe { self.table.extents(range) }
    }

    /// Where the pages are, and whether they are memory behind a coherent link.
    pub(crate) fn location(&self, range: &Range) -> Result<(Extents, bool)> {
        // SAFETY: By the type's invariant the driver does not free the table.
        unsafe { self.table.location(range) }
    }

    /// The GPU whose memory it is.
    pub(crate) fn gpu(&self) -> Gpu {
        // SAFETY: By the type's invariant the driver does not free the table.
        unsafe { self.table.gpu() }
    }

    /// Lets the driver map the pages for `device`.
    pub(crate) fn map(&mut self, device: Device) -> Result {
        self.unmap();
        let mut mapping = null_mut();
        // SAFETY: By the invariant of `Device` the device exists, by that of this type the table does;
        // `mapping` is valid for the driver to store a pointer.
        abi::check(unsafe {
            abi::nvidia_p2p_dma_map_pages(device.as_pci(), self.table.0.as_ptr(), &mut mapping)
        })?;
        let mapping = NonNull::new(mapping).ok_or(EIO)?;
        // INVARIANT: The driver has just returned it.
        self.mapping = Some((device, mapping));
        Ok(())
    }

    /// The bus addresses to which the driver has mapped `range`, as extents.
    pub(crate) fn bus_extents(&self, range: &Range) -> Result<Extents> {
        let (_, mapping) = self.mapping.as_ref().ok_or(EINVAL)?;
        // SAFETY: By the type's invariant the mapping has not been unmapped.
        bus_extents(unsafe { mapping.as_ref() }, range)
    }

    /// Lets the driver undo its mapping, if there is one.
    pub(crate) fn unmap(&mut self) {
        let Some((device, mapping)) = self.mapping.take() else {
            return;
        };
        // SAFETY: By the type's invariant the mapping was made from this table for this device, and is
        // unmapped once. By the invariant of `Device` the device exists.
        let ret = unsafe {
            abi::nvidia_p2p_dma_unmap_pages(
                device.as_pci(),
                self.table.0.as_ptr(),
                mapping.as_ptr(),
            )
        };
        if let Err(error) = abi::check(ret) {
            pr_warn_ratelimited!(
                "the NVIDIA driver did not unmap GPU memory (error {})\n",
                -error.to_errno()
            );
        }
    }
}

impl Drop for PersistentPin {
    fn drop(&mut self) {
        self.unmap();
        // SAFETY: By the type's invariant the pin has not been put. `self` owns the table, so it is not
        // used after this.
        let ret = unsafe { abi::nvpm_put_pages_persistent(self.address, self.table.0.as_ptr()) };
        if let Err(error) = abi::check(ret) {
            pr_warn_ratelimited!("the NVIDIA driver did not unpin GPU memory (error {}): it stays in use until the driver is unloaded\n", -error.to_errno());
        }
    }
}

/// The bus addresses of a mapping of `range`, as extents.
fn bus_extents(mapping: &abi::nvidia_p2p_dma_mapping, range: &Range) -> Result<Extents> {
    // SAFETY: `mapping` is a reference, so it is valid for reading.
    if !unsafe { abi::nvpm_dma_mapping_known(mapping) } {
        return Err(unknown_version("DMA mapping", mapping.version));
    }
    let (page, entries) = page_size("mapped", mapping.page_size_type, mapping.entries, range)?;
    if mapping.dma_addresses.is_null() {
        return Err(EIO);
    }
    // SAFETY: The driver's `dma_addresses` has `entries` words for as long as the mapping exists.
    let addresses = unsafe { slice::from_raw_parts(mapping.dma_addresses, entries) };
    Extents::collect(addresses, page, |&address| address)
}

/// What this module keeps of the page table of a revocable pin, since the driver may free the table: where
/// the memory is, and of which GPU.
pub(crate) struct Memory {
    pub(crate) extents: Extents,
    pub(crate) gpu: Gpu,
}

/// Pages that are pinned until they are put or the driver takes them back, whichever comes first.
///
/// Dropping this does nothing: the driver itself undoes a pin that it takes back.
///
/// # Invariants
///
/// The table came from a successful pin. It is only used as a key for the driver, and never read.
#[must_use = "only `put` gives the pages back"]
pub(crate) struct RevocablePin(PageTable);

impl RevocablePin {
    /// Pins `range` of the calling process. When the memory is freed, the driver calls
    /// `nv_peer_mem_callback` with `data`. Returns the pin, and the memory or the reason why the memory is of
    /// no use.
    ///
    /// The callback may come before this returns.
    ///
    /// # Safety
    ///
    /// The callback must wait until the caller has the result. The pin must not be undone before the callback
    /// goes on: they would wait for each other.
    pub(crate) unsafe fn new(range: &Range, data: u64) -> Result<(Self, Result<Memory>), PinError> {
        let lock = UnpinLock::shared();
        let table = get_pages(range, data);
        drop(lock);
        let table = table?;
        // SAFETY: By this function's requirement the callback waits, and the driver frees the table when the
        // callback has returned.
        let memory = unsafe { Self::memory(&table, range) };
        // INVARIANT: The driver has just returned it.
        Ok((Self(table), memory))
    }

    /// Reads from the page table what is kept of it.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn memory(table: &PageTable, range: &Range) -> Result<Memory> {
        // SAFETY: By this function's requirement the table is not freed meanwhile.
        let (extents, coherent) = unsafe { table.location(range) }?;
        if coherent {
            pr_warn_ratelimited!(
                "GPU memory behind a coherent link cannot be revoked{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        // SAFETY: By this function's requirement the table is not freed meanwhile.
        let gpu = unsafe { table.gpu() };
        Ok(Memory { extents, gpu })
    }

    /// Unpins `range`, unless `is_freed` says that the callback has come: then the driver frees the page
    /// table, and may use its address again. False if the driver refuses.
    ///
    /// If the driver takes the pages back in this moment, or does not find the calling process any more in
    /// its list for this memory, it does not find the pin, and says nothing. No new pin can have the same key:
    /// pinning needs the unpin lock.
    pub(crate) fn put(self, range: &Range, is_freed: impl FnOnce() -> bool) -> bool {
        let _lock = UnpinLock::exclusive();
        is_freed() || put_pages(range, self.0)
    }
}

/// Pins `range` revocably; `data` is what the callback gets.
fn get_pages(range: &Range, data: u64) -> Result<PageTable, PinError> {
    let mut table = null_mut();
    // SAFETY: `table` is valid for the driver to store a pointer; the callback accepts any number, and its
    // code is never unloaded.
    let ret = unsafe {
        abi::nvidia_p2p_get_pages(
            0,
            0,
            range.start(),
            range.pinned(),
            &mut table,
            Some(abi::nvpm_callback),
            data as usize as *mut c_void,
        )
    };
    // On failure the driver leaves any value in the pointer, and arms no callback.
    if ret != 0 {
        return Err(PinError::from_driver(ret));
    }
    // INVARIANT: The driver has just returned it.
    NonNull::new(table)
        .map(PageTable)
        .ok_or(PinError::Failed(EIO))
}

/// Unpins what [`get_pages`] has pinned; false, with a warning in the log, if the driver refuses.
fn put_pages(range: &Range, table: PageTable) -> bool {
    // SAFETY: The arguments are those of the pin. The driver looks the table up by its address, and only
    // reads it when it has found it.
    let ret = unsafe { abi::nvidia_p2p_put_pages(0, 0, range.start(), table.0.as_ptr()) };
    if let Err(error) = abi::check(ret) {
        pr_warn_ratelimited!(
            "the NVIDIA driver did not unpin GPU memory (error {}): it is unpinned when it is freed\n",
            -error.to_errno()
        );
        return false;
    }
    true
}

/// The lock between pinning (shared) and unpinning what was pinned revocably (exclusive). The driver
/// identifies a pin by the address of its page table. When it frees a table, it must not use the address for
/// a new pin while this module is about to unpin the old one.
struct UnpinLock {
    exclusive: bool,
}

impl UnpinLock {
    /// For pinning: any number of threads at a time.
    fn shared() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock; `drop` unlocks it.
        unsafe { abi::nvpm_unpin_lock(false) };
        Self { exclusive: false }
    }

    /// For unpinning: one thread, and no thread that pins.
    fn exclusive() -> Self {
        // SAFETY: The caller may sleep and does not hold the lock; `drop` unlocks it.
        unsafe { abi::nvpm_unpin_lock(true) };
        Self { exclusive: true }
    }
}

impl Drop for UnpinLock {
    fn drop(&mut self) {
        // SAFETY: This object has taken the lock, in the same mode.
        unsafe { abi::nvpm_unpin_unlock(self.exclusive) };
    }
}
