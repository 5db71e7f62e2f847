// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! NVIDIA's side: pinned GPU memory, and the driver's free callback.
//!
//! C header: `nv-p2p.h`. There are two kinds of pins. A *persistent* one lasts until it is put. A
//! *revocable* one is also taken back when the memory is freed: the driver calls this module, and when
//! the callback returns it frees the page table and everything that hangs on it. It may do so before
//! the call that pinned has returned.

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
/// The driver gives the memory to others as soon as [`Self::revoke`] returns, and frees the page table
/// of the pin. By then no device may reach the memory by what was mapped of it, nobody may read that
/// table, and the pin must be forgotten, here or by [`RevocablePin::unpin`], which looks at the number
/// first. So `revoke` must wait until the caller of [`RevocablePin::new`] has what that returns.
pub(crate) unsafe trait Revoke {
    /// The driver takes the memory back: it does so when this returns.
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
    /// From the driver's answer to a request to pin.
    fn from_driver(ret: i32) -> Self {
        match abi::check(ret) {
            Err(error) if error == EINVAL => Self::NotGpuMemory,
            Err(error) => Self::Failed(error),
            Ok(()) => Self::Failed(EIO),
        }
    }

    /// Of a persistent pin: whether a revocable one may do instead.
    pub(crate) fn may_fall_back(self) -> bool {
        matches!(self, Self::Failed(error) if error == eopnotsupp() || error == EIO)
    }
}

/// Whether the driver that this module was built for has persistent pins.
pub(crate) fn has_persistent() -> bool {
    // SAFETY: Callable from any context.
    unsafe { abi::nvpm_has_persistent() }
}

/// Bytes above which the driver is asked for single pages first. Below, the driver allocates no more
/// than 16 MiB, twice.
const LARGE: u64 = 64 << 30;
/// Bytes that no GPU has. For as many the driver allocates 256 MiB.
const LARGEST: u64 = 1 << 40;

/// Whether it is worth to ask the driver for all of `range`. Before it looks whose memory it is it
/// allocates memory for each page, so a range that is nobody's would cost gigabytes. What the driver
/// pins is one allocation, of which both ends are the process's. The ends of two allocations may be as
/// far apart as their owner likes, so no range is larger than a GPU.
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
        // SAFETY: By the type's invariant it is the driver's table, by this function's requirement
        // it is still there.
        let table = unsafe { self.0.as_ref() };
        // SAFETY: A reference is a valid pointer.
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

    /// Whether it is memory behind a coherent link: RAM to the kernel, which is not mapped as a device's
    /// memory is. An error if the kernel has not onlined it: neither this module nor the driver can map
    /// it then.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile, and [`Self::extents`] must have succeeded.
    unsafe fn is_coherent(&self) -> Result<bool> {
        // SAFETY: By this function's requirement the table is there, and in order.
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
        // SAFETY: By this function's requirement the table is there.
        let extents = unsafe { self.extents(range) }?;
        // SAFETY: By this function's requirement the table is there; `extents` has succeeded.
        let coherent = unsafe { self.is_coherent() }?;
        Ok((extents, coherent))
    }

    /// The GPU whose memory it is.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn gpu(&self) -> Gpu {
        // SAFETY: By this function's requirement the table is there.
        let uuid = unsafe { abi::nvpm_page_table_uuid(self.0.as_ptr()) };
        // SAFETY: NULL, or the 16 bytes that hang on the table.
        unsafe { uuid.cast::<Gpu>().as_ref() }
            .copied()
            .unwrap_or_default()
    }
}

/// What the driver has made is of a version that this module does not know.
fn unknown_version(made: &str, version: u32) -> Error {
    pr_warn_ratelimited!(
        "the NVIDIA driver's {made} has version {version:#x}, which this module does not know; install a version that fits the driver\n"
    );
    eopnotsupp()
}

/// Bytes of a page and number of pages, of what the driver says it has `done` with the range: all
/// of it, or an error.
fn page_size(done: &str, kind: u32, entries: u32, range: &Range) -> Result<(u64, usize)> {
    let page: u64 = match kind {
        abi::NVIDIA_P2P_PAGE_SIZE_4KB => 4 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_64KB => 64 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_128KB => 128 << 10,
        _ => {
            pr_warn_ratelimited!(
                "the NVIDIA driver's page size {kind} is not one that this module knows\n"
            );
            return Err(eopnotsupp());
        }
    };
    if u64::from(entries).checked_mul(page) != Some(range.pinned()) {
        pr_warn_ratelimited!(
            "the NVIDIA driver {done} {entries} pages of {page} bytes for {} bytes\n",
            range.pinned()
        );
        return Err(EIO);
    }
    let entries = usize::try_from(entries).map_err(|_| EIO)?;
    Ok((page, entries))
}

/// Pages pinned until this is dropped, with what the driver has mapped of them.
///
/// # Invariants
///
/// `table` came from a successful persistent pin at `address` that has not been put: the driver does
/// not free it. `mapping` was made of it for the device, and has not been unmapped.
pub(crate) struct PersistentPin {
    table: PageTable,
    address: u64,
    mapping: Option<(Device, NonNull<abi::nvidia_p2p_dma_mapping>)>,
}

// SAFETY: The driver unmaps and puts a persistent pin from any task, and nothing changes its table
// and mapping meanwhile.
unsafe impl Send for PersistentPin {}

impl PersistentPin {
    /// Pins `range` of the calling process.
    pub(crate) fn new(range: &Range) -> Result<Self, PinError> {
        let mut table = null_mut();
        // SAFETY: `table` is valid for the driver to store a pointer.
        let ret =
            unsafe { abi::nvpm_get_pages_persistent(range.start(), range.pinned(), &mut table) };
        // On failure the pointer may be anything.
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

    /// Has the driver map the pages for `device`.
    pub(crate) fn map(&mut self, device: Device) -> Result {
        self.unmap();
        let mut mapping = null_mut();
        // SAFETY: The device exists by the invariant of its type, the table by that of this one;
        // `mapping` is valid for the driver to store a pointer.
        abi::check(unsafe {
            abi::nvidia_p2p_dma_map_pages(device.as_pci(), self.table.0.as_ptr(), &mut mapping)
        })?;
        let mapping = NonNull::new(mapping).ok_or(EIO)?;
        // INVARIANT: The driver has just returned it.
        self.mapping = Some((device, mapping));
        Ok(())
    }

    /// What the driver has mapped `range` to: extents of bus addresses.
    pub(crate) fn bus_extents(&self, range: &Range) -> Result<Extents> {
        let (_, mapping) = self.mapping.as_ref().ok_or(EINVAL)?;
        // SAFETY: By the type's invariant the mapping has not been unmapped.
        bus_extents(unsafe { mapping.as_ref() }, range)
    }

    /// Has the driver unmap what it has mapped.
    pub(crate) fn unmap(&mut self) {
        let Some((device, mapping)) = self.mapping.take() else {
            return;
        };
        // SAFETY: By the type's invariant the mapping was made of this table for this device, and is
        // unmapped once. The device exists by the invariant of its type.
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
        // SAFETY: By the type's invariant the pin has not been put, and nothing uses its table any more.
        let ret = unsafe { abi::nvpm_put_pages_persistent(self.address, self.table.0.as_ptr()) };
        if let Err(error) = abi::check(ret) {
            pr_warn_ratelimited!("the NVIDIA driver did not unpin GPU memory (error {}): it stays in use until the driver is unloaded\n", -error.to_errno());
        }
    }
}

/// Extents of the bus addresses of a mapping of `range`.
fn bus_extents(mapping: &abi::nvidia_p2p_dma_mapping, range: &Range) -> Result<Extents> {
    // SAFETY: A reference is a valid pointer.
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

/// What is known of revocably pinned memory when the driver may have freed its page table: where
/// it is, and whose.
pub(crate) struct Memory {
    pub(crate) extents: Extents,
    pub(crate) gpu: Gpu,
}

/// Pages pinned until they are put or the driver takes them back, whichever comes first.
///
/// Dropping it does nothing: the driver itself undoes what it takes back.
///
/// # Invariants
///
/// `table` came from a successful pin. It is a key for the driver, and is not followed.
#[must_use = "only `unpin` gives the pages back"]
pub(crate) struct RevocablePin(PageTable);

impl RevocablePin {
    /// Pins `range` of the calling process for the registration `number`, which has been armed. With
    /// the pin comes what there is to know of the memory, or the reason why the pin is of no use.
    ///
    /// The driver may revoke the registration before this returns, and waits until the caller has what
    /// this returns. Before that the pin must not be undone, or callback and unpinning would wait for
    /// each other. On failure the registration is not armed any more.
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

    /// What there is to know of the memory.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn memory(table: &PageTable, range: &Range) -> Result<Memory> {
        // SAFETY: By this function's requirement the table is there.
        let (extents, coherent) = unsafe { table.location(range) }?;
        if coherent {
            pr_warn_ratelimited!(
                "GPU memory behind a coherent link cannot be revoked{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        // SAFETY: By this function's requirement the table is there.
        let gpu = unsafe { table.gpu() };
        Ok(Memory { extents, gpu })
    }

    /// Unpins `range` for the registration `number`, if the driver has not taken the pages back. Where
    /// the driver would find nothing, or does not say whether it has done so, the pin becomes an
    /// orphan: the callback takes the registration out of the table when the memory is freed.
    pub(crate) fn unpin(self, range: &Range, number: Number) {
        if self.put(range, number) {
            drop(number.disarm());
        } else {
            number.orphan(range.pages());
        }
    }

    /// Whether the driver has unpinned the pages, or never will call back about them again.
    fn put(&self, range: &Range, number: Number) -> bool {
        // The driver knows a pin by process. From another process it would find nothing, do nothing
        // and say nothing. So it may in a process that exits, if the process's own objects of the
        // driver are gone: the driver frees what is left of them, with a callback.
        // SAFETY: Reads a flag of the calling thread.
        if !number.is_of_current() || unsafe { abi::nvpm_current_exiting() } {
            return false;
        }
        let _lock = UnpinLock::exclusive();
        // The callback has come: the driver frees the page table, and its address may be another's.
        if !number.is_armed() {
            return true;
        }
        // In a process that lives the driver may find nothing, too. It is asked before: afterwards
        // memory that is freed at this moment would look the same.
        if !is_listed(&range.first_page(), number) {
            return false;
        }
        // Drivers before 535 read the table before they take their lock: it must not have been freed
        // while they were asked.
        if !number.is_armed() {
            return true;
        }
        // If the driver has taken the pages back meanwhile, it finds no such key and returns 0: no pin
        // can have got the same address since, for that needs the lock. After this no callback can
        // start, and none is running.
        put_pages(range, self.0)
    }
}

/// Pins `range` revocably, for the callback to find the registration `number`.
fn get_pages(range: &Range, number: Number) -> Result<PageTable, PinError> {
    let mut table = null_mut();
    // SAFETY: `table` is valid for the driver to store a pointer; `free_callback` takes any number.
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
    // On failure the pointer may be anything, and no callback is armed.
    if ret != 0 {
        return Err(PinError::from_driver(ret));
    }
    // INVARIANT: The driver has just returned it.
    NonNull::new(table)
        .map(PageTable)
        .ok_or(PinError::Failed(EIO))
}

/// Unpins what [`get_pages`] has pinned; says so if the driver refuses.
fn put_pages(range: &Range, table: PageTable) -> bool {
    // SAFETY: The arguments are those of the pin. The driver looks for the table by its address and
    // does not follow it before it has found it.
    let ret = unsafe { abi::nvidia_p2p_put_pages(0, 0, range.start(), table.0.as_ptr()) };
    if let Err(error) = abi::check(ret) {
        pr_warn_ratelimited!(
            "the NVIDIA driver did not unpin GPU memory (error {}): it does so when the memory is freed\n",
            -error.to_errno()
        );
        return false;
    }
    true
}

/// Whether the driver finds memory of the calling process at `page`, which is pinned. The driver looks
/// for what to unpin among the processes that the memory's objects list, and the client of the driver
/// that lists this one may have ended (with MPS, which holds the memory of many processes in its own).
/// For the thread that holds the unpin lock exclusively.
fn is_listed(page: &Range, number: Number) -> bool {
    match get_pages(page, number) {
        Err(PinError::NotGpuMemory) => false,
        // No memory for the question says nothing of the answer.
        Err(PinError::Failed(_)) => true,
        // The callback of a page that stays pinned will look for the number.
        Ok(table) => put_pages(page, table),
    }
}

/// The lock between pinning revocably and unpinning. The driver knows a pin by the address of its page
/// table. It must not give the address of one that it frees to a new pin while the old pin is about to
/// be unpinned.
struct UnpinLock {
    exclusive: bool,
}

impl UnpinLock {
    /// For pinning: any number at a time.
    fn shared() -> Self {
        // SAFETY: Called where sleeping is allowed, without the lock; dropping unlocks.
        unsafe { abi::nvpm_unpin_lock(false) };
        Self { exclusive: false }
    }

    /// For unpinning: no other thread.
    fn exclusive() -> Self {
        // SAFETY: Called where sleeping is allowed, without the lock; dropping unlocks.
        unsafe { abi::nvpm_unpin_lock(true) };
        Self { exclusive: true }
    }
}

impl Drop for UnpinLock {
    fn drop(&mut self) {
        // SAFETY: Unlocks what this object has locked, in the same mode.
        unsafe { abi::nvpm_unpin_unlock(self.exclusive) };
    }
}

/// The driver's free callback.
///
/// # Safety
///
/// To be called by the driver, which frees the pages of the registration when this returns.
unsafe extern "C" fn free_callback(number: *mut c_void) {
    if let Some(target) = Number::from_data(number).disarm() {
        target.revoke();
    }
}

/// Returns when no callback is running any more, not even its last instructions.
///
/// The driver holds one lock over every callback and takes it to look for memory: it is asked for
/// memory that nobody has.
///
/// # Safety
///
/// For the module's end: no callback may be armed.
pub(crate) unsafe fn drain() {
    let Some(page) = Range::new(GPU_PAGE, GPU_PAGE) else {
        return;
    };
    loop {
        match get_pages(&page, Number::from_data(null_mut())) {
            // The driver may have had no memory to get as far as its lock.
            Err(PinError::Failed(error)) if error == ENOMEM => wait_for_memory(),
            Err(_) => return,
            Ok(table) => {
                put_pages(&page, table);
                return;
            }
        }
    }
}
