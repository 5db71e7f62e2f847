// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! NVIDIA's side: owning handles over what the driver gives, and its free callback.
//!
//! C header: `nv-p2p.h`. There are two kinds of pins. A *persistent* one lasts until it is put. A
//! *revocable* one is also taken back when the memory is freed: the driver calls us, and when we
//! return it frees the page table and everything that hangs on it. It may do so before the call
//! that pinned has returned.

use core::{
    ffi::c_void,
    ptr::NonNull,
    slice, //
};

use super::{
    abi,
    errno::Errno,
    extents::{
        runs,
        Extent,
        Range,
        GPU_PAGE, //
    },
    rt::{
        self,
        complain,
        Arc,
        KVVec,
        GFP_KERNEL, //
    }, //
};

/// What the driver's free callback finds under the id that it was armed with.
pub(crate) trait Revoke: Send + Sync {
    /// The driver takes the memory back: it does so when this returns.
    fn revoke(&self);
}

/// Extents of physical addresses, neighbours merged, or why there are none.
pub(crate) type Addresses = Result<KVVec<Extent>, Errno>;

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

/// A page table of the driver.
///
/// # Invariants
///
/// Came from a successful call to pin. Whoever reads it must know that the driver has not freed it.
#[derive(Clone, Copy)]
struct PageTable(NonNull<abi::nvidia_p2p_page_table>);

impl PageTable {
    /// Gives the pages to `each`, as extents of physical addresses, neighbours merged.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn extents(
        &self,
        range: &Range,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // SAFETY: By the type's invariant and this function's requirement the table is alive.
        let table = unsafe { self.0.as_ref() };
        // SAFETY: A reference is a valid pointer.
        if !unsafe { abi::nvpm_page_table_known(table) } {
            complain!(
                "the NVIDIA driver's page table has version {:#x}, which this module does not know; install a version that fits the driver\n",
                table.version
            );
            return Err(Errno::OPNOTSUPP);
        }
        let (page, entries) = whole("pinned", table.page_size, table.entries, range)?;
        if table.pages.is_null() {
            return Err(Errno::IO);
        }
        // SAFETY: The driver's `pages` has `entries` pointers, each to a page, for as long as the
        // table is alive.
        let pages = unsafe { slice::from_raw_parts(table.pages, entries) };
        let address = |&entry: &*mut abi::nvidia_p2p_page| {
            // SAFETY: As above.
            unsafe { (*entry).physical_address }
        };
        runs(pages, page, address, each)
    }
}

impl PageTable {
    /// The physical addresses that a device may use, copied.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    unsafe fn addresses(&self, range: &Range) -> Addresses {
        // SAFETY: By this function's requirement.
        if unsafe { abi::nvpm_page_table_coherent(self.0.as_ptr()) } {
            complain!("GPU memory behind a coherent link cannot be revoked; load the module with persistent_api_support=1\n");
            return Err(Errno::OPNOTSUPP);
        }
        // Mostly there is one, and that is known only when all pages have been looked at.
        let mut extents = KVVec::with_capacity(1, GFP_KERNEL).map_err(|_| Errno::NOMEM)?;
        // SAFETY: By this function's requirement.
        unsafe {
            self.extents(range, |extent| {
                extents.push(extent, GFP_KERNEL).map_err(|_| Errno::NOMEM)
            })
        }?;
        fitting(extents)
    }
}

/// Bytes of a page and number of pages, of what the driver says it has `done` with the range: all
/// of it, or an error.
fn whole(done: &str, kind: u32, entries: u32, range: &Range) -> Result<(u64, usize), Errno> {
    let page: u64 = match kind {
        abi::NVIDIA_P2P_PAGE_SIZE_4KB => 4 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_64KB => 64 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_128KB => 128 << 10,
        _ => {
            complain!("the NVIDIA driver's page size {kind} is not one that this module knows\n");
            return Err(Errno::OPNOTSUPP);
        }
    };
    if u64::from(entries).checked_mul(page) != Some(range.pinned()) {
        complain!(
            "the NVIDIA driver {done} {entries} pages of {page} bytes for {} bytes\n",
            range.pinned()
        );
        return Err(Errno::IO);
    }
    let entries = usize::try_from(entries).map_err(|_| Errno::IO)?;
    Ok((page, entries))
}

/// Pages pinned until this is dropped.
///
/// # Invariants
///
/// `table` came from a successful persistent pin that has not been put.
pub(crate) struct PersistentPin {
    table: PageTable,
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

/// Keeps the driver from giving the address of a page table that it frees to a new pin of ours
/// while we are about to unpin the old one: it knows pins by that address.
struct Gate {
    exclusive: bool,
}

impl Gate {
    /// For pinning: any number at a time.
    fn shared() -> Self {
        // SAFETY: Called without the gate, where sleeping is allowed; dropping lets it go.
        unsafe { abi::nvpm_gate_enter(false) };
        Self { exclusive: false }
    }

    /// For unpinning: nobody else.
    fn exclusive() -> Self {
        // SAFETY: As above.
        unsafe { abi::nvpm_gate_enter(true) };
        Self { exclusive: true }
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        // SAFETY: Lets go of what this object has taken, in the same way.
        unsafe { abi::nvpm_gate_leave(self.exclusive) };
    }
}

/// The extents in memory that is no larger than they are.
fn fitting(extents: KVVec<Extent>) -> Addresses {
    if extents.len() == extents.capacity() {
        return Ok(extents);
    }
    let mut copy = KVVec::with_capacity(extents.len(), GFP_KERNEL).map_err(|_| Errno::NOMEM)?;
    copy.extend_from_slice(&extents, GFP_KERNEL)
        .map_err(|_| Errno::NOMEM)?;
    Ok(copy)
}

/// A number under which the free callback finds its target. It is never used again, so a callback
/// that comes late finds nothing, where a pointer would lead to freed memory.
///
/// # Invariants
///
/// While the number is in the table, the table owns one reference to the `T`.
struct Id<T> {
    number: u64,
    _target: core::marker::PhantomData<Arc<T>>,
}

impl<T> Id<T> {
    fn add(target: Arc<T>) -> Result<Self, Errno> {
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
    fn to_data(&self) -> *mut c_void {
        self.number as usize as *mut c_void
    }

    /// Whether the callback has not come yet.
    fn armed(&self) -> bool {
        // SAFETY: Looks up a number; it may be any.
        unsafe { abi::nvpm_ids_has(self.number) }
    }

    /// Takes the target out of the table, if nobody has.
    fn take(&self) {
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
unsafe extern "C" fn free_callback<T: Revoke>(data: *mut c_void) {
    // SAFETY: By this function's requirement.
    if let Some(target) = unsafe { take::<T>(data as usize as u64) } {
        target.revoke();
    }
}

/// A device that can reach GPU memory: a PCI device.
///
/// # Invariants
///
/// Both pointers are to the same device, which is there for as long as a region is mapped for it.
#[derive(Clone, Copy)]
pub(crate) struct Device {
    device: NonNull<abi::device>,
    pci: NonNull<abi::pci_dev>,
}

// SAFETY: The DMA functions may be called for a device from any thread.
unsafe impl Send for Device {}

impl Device {
    /// The device behind a pointer of the RDMA core.
    ///
    /// # Safety
    ///
    /// The pointer must be NULL or to a device that outlives every mapping made for it.
    pub(crate) unsafe fn from_raw(device: *mut abi::device) -> Result<Self, Errno> {
        // SAFETY: By this function's requirement; NULL is answered with NULL.
        let pci = unsafe { abi::nvpm_pci_dev(device) };
        match (NonNull::new(device), NonNull::new(pci)) {
            // INVARIANT: `nvpm_pci_dev` says that they are the same device.
            (Some(device), Some(pci)) => Ok(Self { device, pci }),
            _ => {
                complain!("the RDMA device is not a PCI device: it cannot reach GPU memory\n");
                Err(Errno::OPNOTSUPP)
            }
        }
    }

    /// Whether a registration for this device can be revoked. The driver of some never says that
    /// a registration is complete, and the core would wait for that for ever.
    pub(crate) fn revocable(&self) -> bool {
        // SAFETY: By the type's invariant.
        let revocable = unsafe { abi::nvpm_revocable(self.device.as_ptr()) };
        if !revocable {
            complain!("the driver of this RDMA device cannot give up GPU memory that is freed; load the module with persistent_api_support=1\n");
        }
        revocable
    }

    /// Most bytes of one scatterlist entry.
    pub(crate) fn max_segment(&self) -> u32 {
        // SAFETY: By the type's invariant.
        unsafe { abi::nvpm_max_segment(self.device.as_ptr()) }
    }
}

/// A persistent pin that the driver has mapped for a device.
///
/// # Invariants
///
/// `mapping` was made of `pin`; fields drop in their order here.
pub(crate) struct DriverMapping {
    mapping: Mapping,
    pin: PersistentPin,
}

/// What the driver has to undo.
///
/// # Invariants
///
/// `mapping` came from the driver for `device` and `table` and has not been unmapped; the pages of
/// `table` stay pinned for as long as this lives.
struct Mapping {
    device: Device,
    table: PageTable,
    mapping: NonNull<abi::nvidia_p2p_dma_mapping>,
}

// SAFETY: The driver unmaps from any task, and nothing changes the mapping meanwhile.
unsafe impl Send for Mapping {}

impl DriverMapping {
    /// Maps the pages of `pin` for `device`; a pin that cannot be mapped comes back.
    pub(crate) fn new(device: Device, pin: PersistentPin) -> Result<Self, (Errno, PersistentPin)> {
        let mut mapping = core::ptr::null_mut();
        // SAFETY: The device is there by the invariant of its type, the pages while there is `pin`;
        // `mapping` is valid for the driver to store a pointer.
        let ret = unsafe {
            abi::nvidia_p2p_dma_map_pages(device.pci.as_ptr(), pin.table.0.as_ptr(), &mut mapping)
        };
        let mapping = match (Errno::check(ret), NonNull::new(mapping)) {
            (Err(errno), _) => return Err((errno, pin)),
            (Ok(()), None) => return Err((Errno::IO, pin)),
            (Ok(()), Some(mapping)) => mapping,
        };
        // INVARIANT: The driver has just returned it, and the pin stays with it.
        let mapping = Mapping {
            device,
            table: pin.table,
            mapping,
        };
        Ok(Self { mapping, pin })
    }

    /// Unmaps the pages, which stay pinned.
    pub(crate) fn unmap(self) -> PersistentPin {
        let Self { mapping, pin } = self;
        drop(mapping);
        pin
    }

    /// Gives the bus addresses that the device shall use for `range` to `each`, neighbours merged.
    #[inline(never)] // All registers for the one loop that a large region needs.
    pub(crate) fn extents(
        &self,
        range: &Range,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // SAFETY: By the invariant of `Mapping` it is alive.
        let mapping = unsafe { self.mapping.mapping.as_ref() };
        // SAFETY: A reference is a valid pointer.
        if !unsafe { abi::nvpm_dma_mapping_known(mapping) } {
            complain!(
                "the NVIDIA driver's DMA mapping has version {:#x}, which this module does not know; install a version that fits the driver\n",
                mapping.version
            );
            return Err(Errno::OPNOTSUPP);
        }
        let (page, entries) = whole("mapped", mapping.page_size_type, mapping.entries, range)?;
        if mapping.dma_addresses.is_null() {
            return Err(Errno::IO);
        }
        // SAFETY: The driver's `dma_addresses` has `entries` words for as long as the mapping is
        // alive.
        let addresses = unsafe { slice::from_raw_parts(mapping.dma_addresses, entries) };
        runs(addresses, page, |&address| address, each)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the mapping is there to be unmapped, once.
        let ret = unsafe {
            abi::nvidia_p2p_dma_unmap_pages(
                self.device.pci.as_ptr(),
                self.table.0.as_ptr(),
                self.mapping.as_ptr(),
            )
        };
        if let Err(errno) = Errno::check(ret) {
            complain!(
                "the NVIDIA driver did not unmap GPU memory (error {})\n",
                errno.number()
            );
        }
    }
}

/// A mapping that we made, of the physical extents of a revocable pin: the driver's own call to
/// map reads a page table that its callback may be freeing.
///
/// # Invariants
///
/// The first `mapped` of the extents are addresses that the device's DMA layer gave, and their
/// lengths; those behind are physical.
pub(crate) struct OwnMapping {
    device: Device,
    extents: KVVec<Extent>,
    mapped: usize,
}

impl OwnMapping {
    /// Maps the physical `extents` for `device`; they become bus addresses in place.
    pub(crate) fn new(device: Device, extents: KVVec<Extent>) -> Result<Self, Errno> {
        // INVARIANT: None is mapped; if one fails below, dropping undoes those before it.
        let mut mapping = Self {
            device,
            extents,
            mapped: 0,
        };
        for extent in mapping.extents.iter_mut() {
            extent.start = map_one(device, *extent)?;
            // INVARIANT: One more is mapped.
            mapping.mapped += 1;
        }
        Ok(mapping)
    }

    /// Gives the bus addresses that the device shall use to `each`.
    pub(crate) fn extents(
        &self,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.extents.iter().copied().try_for_each(each)
    }
}

/// The bus address at which `device` reaches a physical extent.
fn map_one(device: Device, extent: Extent) -> Result<u64, Errno> {
    let len = usize::try_from(extent.len).map_err(|_| Errno::INVAL)?;
    let mut address = 0;
    // SAFETY: By the invariant of `Device`; `address` is valid to store a word.
    let ret = unsafe { abi::nvpm_dma_map(device.device.as_ptr(), extent.start, len, &mut address) };
    Errno::check(ret)?;
    Ok(address)
}

impl Drop for OwnMapping {
    fn drop(&mut self) {
        for extent in self.extents.iter().take(self.mapped) {
            // SAFETY: By the type's invariant the address is mapped; the length fitted a `usize`.
            unsafe {
                abi::nvpm_dma_unmap(
                    self.device.device.as_ptr(),
                    extent.start,
                    extent.len as usize,
                )
            };
        }
    }
}

/// Whether the driver that this module was built for has persistent pins.
pub(crate) fn has_persistent() -> bool {
    // SAFETY: Takes no arguments.
    unsafe { abi::nvpm_has_persistent() }
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
