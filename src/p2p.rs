// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! NVIDIA's side: pinned GPU memory, and the driver's free callback.
//!
//! C header: `nv-p2p.h`. A *persistent* pin lasts until this module puts it. A *revocable* pin also ends
//! when the memory is freed: the driver calls this module back, and frees the page table, with all that
//! belongs to it, when the callback has returned. The callback may come before the call that pinned has
//! returned.

use core::{
    ptr::{null_mut, NonNull},
    slice,
};

use kernel::prelude::*;

use crate::{
    abi::{self, ffi::c_void, persistent_instead, wait_for_memory},
    compat::{eopnotsupp, pr_warn_ratelimited},
    dma::Device,
    extents::{Extents, Range, GPU_PAGE},
    registry::Number,
};

/// What the driver's free callback finds under the number that it was armed with.
///
/// # Safety
///
/// As soon as [`Self::revoke`] returns, the driver frees the page table of the pin and gives the memory
/// to others. By then no device may reach the memory through the region's mapping, no thread may read
/// that table, and the pin must be forgotten, here or by [`RevocablePin::unpin`], which looks at the
/// number first. So `revoke` must wait until the caller of [`RevocablePin::new`] has its result.
pub(crate) unsafe trait Revoke {
    /// The driver takes the memory back when this returns.
    fn revoke(&self);
}

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

/// Whether the driver that this module was built for has persistent pins.
pub(crate) fn has_persistent() -> bool {
    // SAFETY: Callable from any context.
    unsafe { abi::nvpm_has_persistent() }
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
    !has_persistent() || (is_gpu_memory(range.first_page()) && is_gpu_memory(range.last_page()))
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
        // SAFETY: `table` is valid for the driver to store a pointer.
        let ret =
            unsafe { abi::nvpm_get_pages_persistent(range.start(), range.pinned(), &mut table) };
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
#[must_use = "only `unpin` gives the pages back"]
pub(crate) struct RevocablePin(PageTable);

impl RevocablePin {
    /// Pins `range` of the calling process for the registration `number`, which must be armed. Returns the
    /// pin, and the memory or the reason why the memory is of no use.
    ///
    /// The driver's callback may come before this returns, and waits until the caller has the result. The
    /// pin must not be undone before that, or the callback and the unpinning would wait for each other. On
    /// failure this disarms the registration.
    pub(crate) fn new(range: &Range, number: Number) -> Result<(Self, Result<Memory>), PinError> {
        let lock = UnpinLock::shared();
        let pinned = get_pages(range, number);
        drop(lock);
        let table = pinned.inspect_err(|_| drop(number.disarm()))?;
        // SAFETY: The callback waits for the caller of this function, and the driver frees the table
        // when the callback has returned.
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

    /// Unpins `range` for the registration `number`, unless the driver has taken the pages back. If the
    /// driver would not find the pin, or reports an error, the registration becomes an orphan: the callback
    /// removes it from the registry when the memory is freed.
    pub(crate) fn unpin(self, range: &Range, number: Number) {
        if self.put(range, number) {
            drop(number.disarm());
        } else {
            number.orphan(range.pages());
        }
    }

    /// Unpins; whether the pages are unpinned and no callback for them can come any more.
    fn put(&self, range: &Range, number: Number) -> bool {
        // The driver looks a pin up by process. Called from another process it finds nothing, and returns
        // 0. The same can happen in a process that exits, whose objects in the driver may be gone: the
        // driver then frees its memory, with a callback.
        // SAFETY: Reads a flag of the calling thread, from any context.
        if !number.is_of_current() || unsafe { abi::nvpm_current_exiting() } {
            return false;
        }
        let _lock = UnpinLock::exclusive();
        // In a living process, too, the driver may not find the pin. It is asked before the unpinning:
        // asked afterwards, it would give the same answer for memory that was freed at that moment.
        if !is_listed(&range.first_page(), number) {
            return false;
        }
        // If the callback has come, the driver frees the page table, and may use its address again. This
        // is the last question, since drivers before 535 read the table before they take their lock.
        if !number.is_armed() {
            return true;
        }
        // If the driver takes the pages back in this moment, it does not find the key, and returns 0. No
        // new pin can have the same key: pinning needs the unpin lock. After this call no callback for this
        // pin is running, and none can start.
        put_pages(range, self.0)
    }
}

/// Pins `range` revocably, for the callback to find the registration `number`.
fn get_pages(range: &Range, number: Number) -> Result<PageTable, PinError> {
    let mut table = null_mut();
    // SAFETY: `table` is valid for the driver to store a pointer; `free_callback` accepts any number.
    let ret = unsafe {
        abi::nvidia_p2p_get_pages(
            0,
            0,
            range.start(),
            range.pinned(),
            &mut table,
            Some(free_callback),
            number.to_data(),
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

/// Whether the driver still finds GPU memory of the calling process at `page`, which is pinned. An object of
/// the driver lists the processes that may pin its memory, and this process can disappear from that list
/// while it lives (with MPS, one server owns the memory of many processes). Then the driver does not find
/// the pin either. The caller must hold the unpin lock exclusively.
fn is_listed(page: &Range, number: Number) -> bool {
    match get_pages(page, number) {
        Err(PinError::NotGpuMemory) => false,
        // The question itself has failed, which says nothing about the list.
        Err(PinError::Failed(_)) => true,
        // If this page stays pinned, its callback will look for the number.
        Ok(table) => put_pages(page, table),
    }
}

/// The lock between pinning revocably (shared) and unpinning (exclusive). The driver identifies a pin by
/// the address of its page table. When it frees a table, it must not use the address for a new pin while
/// this module is about to unpin the old one.
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

/// The driver's free callback.
///
/// # Safety
///
/// Only the driver may call this. It frees the pages of the registration when this returns.
unsafe extern "C" fn free_callback(number: *mut c_void) {
    if let Some(target) = Number::from_data(number).disarm() {
        target.revoke();
    }
}

/// Waits until no callback is running any more, not even its last instructions.
///
/// The driver holds one lock during each callback, and takes the same lock to look memory up. So this asks
/// it to pin an address that is not GPU memory.
///
/// # Safety
///
/// No callback may be armed: for the unloading of the module.
pub(crate) unsafe fn drain() {
    let Some(page) = Range::new(GPU_PAGE, GPU_PAGE) else {
        return;
    };
    loop {
        match get_pages(&page, Number::from_data(null_mut())) {
            // Without memory the driver may not have got as far as its lock.
            Err(PinError::Failed(error)) if error == ENOMEM => wait_for_memory(),
            Err(_) => return,
            Ok(table) => {
                put_pages(&page, table);
                return;
            }
        }
    }
}
