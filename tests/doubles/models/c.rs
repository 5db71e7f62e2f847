// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The models' implementation of all C functions that the module calls. Some of these functions
//! belong to the module itself, and the others to its neighbours.
#![allow(clippy::missing_safety_doc, missing_docs, non_upper_case_globals)]

use std::{
    array,
    cell::Cell,
    ffi::CStr,
    ptr::null_mut,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::{
    abi::{
        self, device, ffi::c_void, invalidate_peer_memory, nvidia_p2p_dma_mapping,
        nvidia_p2p_page_table, nvpm_iova, nvpm_lock_name, nvpm_process, nvpm_region, pci_dev,
        peer_memory_client, scatterlist, sg_table,
    },
    atomic::{AtomicU64, Ordering},
    driver::FreeCallback,
    registry, revocable,
    world::{may_sleep, task, world},
};

/// A device, which may be a PCI device.
pub(crate) struct Device {
    pub(crate) pci: bool,
    pub(crate) can_invalidate: bool,
    pub(crate) direct: bool,
    /// The number of registrations for the device.
    pub(crate) registrations: Cell<u32>,
    pub(crate) max_segment: u32,
    pub(crate) references: Cell<i32>,
    pub(crate) removed: Cell<bool>,
}

/// The kernel's time, the name of each process, and the address of each device. `ADDRESS` contains the
/// domain, and a number made of the bus and the devfn.
pub(crate) const SECONDS: u32 = 77;
pub(crate) const COMM: &[u8; 16] = b"fifteen-letters\0";
pub(crate) const ADDRESS: (u32, u16) = (3, 8);

fn model<'a>(device: *mut device) -> &'a Device {
    // SAFETY: The module only has pointers to devices of this type, which exist until the end.
    unsafe { &*device.cast() }
}

/// Returns addresses and lengths of a table's entries.
pub(crate) fn entries(table: &sg_table) -> Vec<(u64, u64)> {
    assert_eq!(
        table.orig_nents, 0,
        "who looks for pages finds entries without"
    );
    if table.nents == 0 {
        return Vec::new();
    }
    world().linux.lists.read(table.sgl);
    (0..table.nents as usize)
        // SAFETY: The list is alive, as just checked, and has this number of entries.
        .map(|at| unsafe { *table.sgl.add(at) })
        .map(|entry| {
            assert_eq!(entry.dma_length, entry.length);
            (entry.dma_address, entry.length.into())
        })
        .collect()
}

/// The counters, which statistics.c defines in the real module.
#[no_mangle]
static nvpm_counters: [AtomicU64; abi::NVPM_COUNTERS as usize] =
    [const { AtomicU64::new(0) }; abi::NVPM_COUNTERS as usize];

/// Returns the value of a counter.
pub(crate) fn counter(counter: abi::nvpm_counter) -> u64 {
    nvpm_counters[counter as usize].fetch_add(0, Ordering::Relaxed)
}

/// Returns the list of registrations, in the order of the keys.
pub(crate) fn listed() -> Vec<nvpm_region> {
    let mut number = 0;
    let mut all = Vec::new();
    loop {
        let mut region = nvpm_region::default();
        // SAFETY: `region` is valid for writing.
        number = unsafe { registry::nvpm_region_from(number + 1, &mut region) };
        if number == 0 {
            return all;
        }
        all.push(region);
    }
}

// The driver.

#[no_mangle]
extern "C" fn nvidia_p2p_get_pages(
    _token: u64,
    _space: u32,
    address: u64,
    len: u64,
    table: *mut *mut nvidia_p2p_page_table,
    callback: Option<FreeCallback>,
    data: *mut c_void,
) -> i32 {
    let callback = callback.expect("a pin without a callback needs another function");
    world().linux.unpin_lock.assert_shared("pins");
    // SAFETY: The caller's pointer is valid.
    let table = unsafe { &mut *table };
    world()
        .driver
        .get_pages(address, len, table, (callback, data))
}

#[no_mangle]
extern "C" fn nvidia_p2p_put_pages(
    _token: u64,
    _space: u32,
    address: u64,
    table: *mut nvidia_p2p_page_table,
) -> i32 {
    world().driver.put_pages(address, table)
}

#[no_mangle]
extern "C" fn nvpm_get_pages_persistent(
    address: u64,
    len: u64,
    table: *mut *mut nvidia_p2p_page_table,
) -> i32 {
    world().linux.unpin_lock.assert_shared("pins");
    // SAFETY: The caller's pointer is valid.
    let table = unsafe { &mut *table };
    world().driver.get_pages_persistent(address, len, table)
}

#[no_mangle]
extern "C" fn nvpm_put_pages_persistent(address: u64, table: *mut nvidia_p2p_page_table) -> i32 {
    world().driver.put_pages_persistent(address, table)
}

#[no_mangle]
extern "C" fn nvidia_p2p_dma_map_pages(
    peer: *mut pci_dev,
    table: *mut nvidia_p2p_page_table,
    mapping: *mut *mut nvidia_p2p_dma_mapping,
) -> i32 {
    // SAFETY: The caller's pointer is valid.
    let mapping = unsafe { &mut *mapping };
    world().driver.dma_map_pages(peer as usize, table, mapping)
}

#[no_mangle]
extern "C" fn nvidia_p2p_dma_unmap_pages(
    peer: *mut pci_dev,
    table: *mut nvidia_p2p_page_table,
    mapping: *mut nvidia_p2p_dma_mapping,
) -> i32 {
    world()
        .driver
        .dma_unmap_pages(peer as usize, table, mapping)
}

#[no_mangle]
extern "C" fn nvpm_page_table_known(table: *const nvidia_p2p_page_table) -> bool {
    world().driver.read(table);
    !world().faults.unknown_table.get()
}

#[no_mangle]
extern "C" fn nvpm_page_table_coherent(table: *const nvidia_p2p_page_table) -> i32 {
    world().driver.read(table);
    match world().faults.offline.get() {
        true => -95,
        false => world().faults.coherent.get().into(),
    }
}

#[no_mangle]
extern "C" fn nvpm_page_table_uuid(table: *const nvidia_p2p_page_table) -> *const u8 {
    world().driver.uuid(table)
}

#[no_mangle]
extern "C" fn nvpm_dma_mapping_known(_mapping: *const nvidia_p2p_dma_mapping) -> bool {
    !world().faults.unknown_mapping.get()
}

// The kernel.

#[no_mangle]
static mut nvpm_peerdirect_support: u32 = 0;
#[no_mangle]
static mut nvpm_persistent_api_support: u32 = 0;
#[no_mangle]
static mut nvpm_core_flags: u32 = 1;
#[no_mangle]
static nvpm_page_size: u64 = 4096;

/// A test holds this lock while it loads the module, and longer if its messages depend on the
/// parameters. Tests run in parallel, and all of them use the same parameters.
static LOADING: Mutex<()> = Mutex::new(());

/// Sets the parameters, which the module reads while it is being loaded, and for some messages.
/// Until the result is dropped, no other test can set the parameters.
pub(crate) fn set_parameters(
    core_flags: bool,
    peerdirect: bool,
    persistent: bool,
) -> MutexGuard<'static, ()> {
    let loading = LOADING.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: All threads of a model run on one system thread. The threads of other models wait for
    // the lock.
    unsafe {
        nvpm_core_flags = core_flags.into();
        nvpm_peerdirect_support = peerdirect.into();
        nvpm_persistent_api_support = persistent.into();
    }
    loading
}

#[no_mangle]
extern "C" fn nvpm_other_serves() -> bool {
    world().faults.other_serves.get()
}

#[no_mangle]
extern "C" fn nvpm_ratelimit() -> bool {
    true
}

#[no_mangle]
extern "C" fn nvpm_try_module_get() -> bool {
    world().linux.module.get()
}

#[no_mangle]
extern "C" fn nvpm_module_put() {
    world().linux.module.put();
}

#[no_mangle]
extern "C" fn nvpm_cond_resched() {
    may_sleep("giving way");
}

#[no_mangle]
extern "C" fn nvpm_seconds() -> u32 {
    SECONDS
}

#[no_mangle]
extern "C" fn nvpm_current_process(process: *mut nvpm_process) {
    let task = task();
    // SAFETY: The caller's pointer is valid.
    unsafe {
        *process = nvpm_process {
            born: task.born.get(),
            tgid: task.process,
            uid: task.uid.get(),
        };
    }
}

#[no_mangle]
extern "C" fn nvpm_is_current(process: *const nvpm_process) -> bool {
    let task = task();
    // SAFETY: The caller's pointer is valid.
    let process = unsafe { &*process };
    process.tgid == task.process && process.born == task.born.get()
}

#[no_mangle]
extern "C" fn nvpm_current_comm(comm: *mut u8) {
    // SAFETY: The caller's array has room for a name of this length.
    unsafe { comm.copy_from_nonoverlapping(COMM.as_ptr(), COMM.len()) };
}

#[no_mangle]
extern "C" fn nvpm_current_tid() -> i32 {
    task().thread
}

#[no_mangle]
extern "C" fn nvpm_current_exiting() -> bool {
    task().exiting.get()
}

#[no_mangle]
extern "C" fn nvpm_lock(name: nvpm_lock_name) {
    world().linux.tables[name as usize].lock();
}

#[no_mangle]
extern "C" fn nvpm_unlock(name: nvpm_lock_name) {
    world().linux.tables[name as usize].unlock();
}

// nv_peer_mem_callback, which stays loaded and passes the driver's callbacks on.

#[no_mangle]
extern "C" fn nvpm_callback(number: *mut c_void) {
    let linux = &world().linux;
    linux.gate.lock(false);
    if linux.served.get() {
        linux.module.runs("the driver's callback");
        revocable::nvpm_revoke(number as u64);
        linux.module.runs("the end of the driver's callback");
    }
    linux.gate.unlock(false);
}

#[no_mangle]
extern "C" fn nvpm_callback_number() -> u64 {
    let linux = &world().linux;
    linux.last_number.set(linux.last_number.get() + 1);
    linux.last_number.get()
}

#[no_mangle]
extern "C" fn nvpm_callbacks_begin() -> i32 {
    serve(true)
}

#[no_mangle]
extern "C" fn nvpm_callbacks_end() {
    serve(false);
}

fn serve(on: bool) -> i32 {
    let linux = &world().linux;
    if on
        && world()
            .faults
            .step
            .fails("another version receives callbacks")
    {
        return -93;
    }
    assert_ne!(linux.served.get(), on, "callbacks are begun or ended twice");
    linux.gate.lock(true);
    linux.served.set(on);
    linux.gate.unlock(true);
    0
}

// The module's files. A program may read the files at any moment at which they exist.

#[no_mangle]
extern "C" fn nvpm_statistics_create(names: *const *const u8) -> i32 {
    if world()
        .faults
        .step
        .fails("there is no memory for statistics")
    {
        return -12;
    }
    let name = |at| {
        // SAFETY: The caller's array has this number of pointers, each NULL or a text.
        let name = unsafe { *names.add(at) };
        // SAFETY: The pointer is not NULL, so it points to a text.
        (!name.is_null()).then(|| unsafe { CStr::from_ptr(name.cast()) })
    };
    world().linux.files.create_statistics(array::from_fn(name));
    0
}

#[no_mangle]
extern "C" fn nvpm_statistics_remove() {
    world().linux.files.remove_statistics();
}

#[no_mangle]
extern "C" fn nvpm_lists_create() -> i32 {
    if world().faults.step.fails("there is no memory for lists") {
        return -12;
    }
    world().linux.files.create_lists();
    0
}

#[no_mangle]
extern "C" fn nvpm_lists_remove() {
    world().linux.files.remove_lists();
}

#[no_mangle]
extern "C" fn nvpm_pin_lock() {
    world().linux.unpin_lock.lock(false);
}

#[no_mangle]
extern "C" fn nvpm_pin_unlock() {
    world().linux.unpin_lock.unlock(false);
}

#[no_mangle]
extern "C" fn nvpm_unpin_lock() {
    world().linux.unpin_lock.lock(true);
}

#[no_mangle]
extern "C" fn nvpm_unpin_unlock() {
    world().linux.unpin_lock.unlock(true);
}

#[no_mangle]
extern "C" fn nvpm_phase_count() -> u32 {
    world().linux.phases.count()
}

#[no_mangle]
extern "C" fn nvpm_phase_wait(count: u32) {
    world().linux.phases.wait(count);
}

#[no_mangle]
extern "C" fn nvpm_phase_wake() {
    world().linux.phases.wake();
}

#[no_mangle]
extern "C" fn nvpm_pci_dev(device: *mut device) -> *mut pci_dev {
    if !device.is_null() && model(device).pci {
        return device.cast();
    }
    null_mut()
}

#[no_mangle]
extern "C" fn nvpm_can_invalidate(device: *mut device) -> bool {
    model(device).can_invalidate
}

#[no_mangle]
extern "C" fn nvpm_max_segment(device: *mut device) -> u32 {
    model(device).max_segment
}

#[no_mangle]
extern "C" fn nvpm_pci_address(device: *mut device, domain: *mut u32, devfn: *mut u16) {
    assert!(
        model(device).pci,
        "memory is mapped for a device that is not a PCI device"
    );
    // SAFETY: The caller's pointers are valid.
    unsafe { (*domain, *devfn) = ADDRESS };
}

fn refer(device: *mut pci_dev, by: i32) {
    let references = &model(device.cast()).references;
    references.set(references.get() + by);
}

#[no_mangle]
extern "C" fn pci_dev_get(device: *mut pci_dev) -> *mut pci_dev {
    refer(device, 1);
    device
}

#[no_mangle]
extern "C" fn pci_dev_put(device: *mut pci_dev) {
    may_sleep("putting a device");
    refer(device, -1);
}

#[no_mangle]
extern "C" fn nvpm_is_registered(device: *mut device) -> bool {
    !model(device).removed.get()
}

#[no_mangle]
extern "C" fn nvpm_dma_map(device: *mut device, phys: u64, len: usize, addr: *mut u64) -> i32 {
    match world().linux.dma.map(device as usize, phys, len as u64) {
        Some(found) => {
            // SAFETY: The caller's pointer is valid.
            unsafe { *addr = found };
            0
        }
        None => -5,
    }
}

#[no_mangle]
extern "C" fn nvpm_dma_unmap(device: *mut device, addr: u64, len: usize) {
    world().linux.dma.unmap(device as usize, addr, len as u64);
}

#[no_mangle]
extern "C" fn nvpm_iova_alloc(_: *mut device, iova: *mut nvpm_iova, phys: u64, len: u64) -> bool {
    let Some(address) = world().linux.dma.begin(len) else {
        return false;
    };
    // The kernel chooses a first bus address that has the same offset in a page as this physical
    // address.
    world().linux.dma.first_linked.set(phys);
    // SAFETY: The caller's pointer is valid.
    unsafe { (*iova).state = [address, len] };
    true
}

#[no_mangle]
extern "C" fn nvpm_iova_link(
    device: *mut device,
    iova: *mut nvpm_iova,
    phys: u64,
    linked: u64,
    len: u64,
) -> i32 {
    // SAFETY: The caller's pointer is valid.
    let address = unsafe { (*iova).state[0] } + linked;
    let turned = world().linux.turned.replace(false);
    assert!(turned, "a loop over extents lets no other thread run");
    let dma = &world().linux.dma;
    if linked == 0 {
        assert_eq!(
            phys,
            dma.first_linked.get(),
            "another address was said to come first"
        );
    }
    match dma.map_at(device as usize, address, phys, len) {
        true => 0,
        false => -5,
    }
}

#[no_mangle]
extern "C" fn nvpm_iova_sync(
    _: *mut device,
    iova: *mut nvpm_iova,
    _linked: u64,
    addr: *mut u64,
) -> i32 {
    // SAFETY: The caller's pointers are valid.
    unsafe { *addr = (*iova).state[0] };
    match world().faults.sync.get() {
        true => -12,
        false => 0,
    }
}

#[no_mangle]
extern "C" fn nvpm_iova_destroy(device: *mut device, iova: *mut nvpm_iova, linked: u64) {
    // SAFETY: The caller's pointer is valid.
    let iova = unsafe { &*iova };
    assert!(
        iova.state[0] != 0,
        "a range is undone that was not allocated"
    );
    let (device, address) = (device as usize, iova.state[0]);
    world().linux.dma.end(device, address, linked);
}

#[no_mangle]
extern "C" fn nvpm_sg_alloc(table: *mut sg_table, entries: u32) -> i32 {
    let Some(sgl) = world().linux.lists.add(entries) else {
        return -12;
    };
    // SAFETY: The caller's pointer is valid.
    unsafe {
        *table = sg_table {
            sgl,
            nents: entries,
            orig_nents: entries,
        };
    }
    0
}

#[no_mangle]
extern "C" fn nvpm_sg_next(entry: *mut scatterlist) -> *mut scatterlist {
    world().linux.lists.next(entry)
}

#[no_mangle]
extern "C" fn sg_free_table(table: *mut sg_table) {
    // SAFETY: The caller's pointer is valid.
    let table = unsafe { &*table };
    world().linux.lists.remove(table.sgl, table.orig_nents);
}

#[no_mangle]
extern "C" fn nvpm_pair_line(
    pairs: *mut c_void,
    uuid: *const u8,
    device: *mut device,
    answer: *const u8,
) {
    // SAFETY: The UUID has 16 bytes, and the answer is a text.
    let (uuid, answer) = unsafe { (*uuid.cast::<[u8; 16]>(), CStr::from_ptr(answer.cast())) };
    assert_eq!(uuid, [uuid[0]; 16], "no GPU has this UUID");
    // SAFETY: `pairs` passes a pointer to its list.
    let pairs = unsafe { &mut *pairs.cast::<Vec<PairLine>>() };
    pairs.push((uuid[0], device, answer.to_str().unwrap()));
}

/// A line of the list of pairs. It has the GPU, the device, and the word for the driver's answer.
type PairLine = (u8, *mut device, &'static str);

/// Returns the list of pairs of a GPU and a device whose map type is known.
pub(crate) fn pairs() -> Vec<PairLine> {
    let mut found: Vec<PairLine> = Vec::new();
    // SAFETY: The argument is a pointer to a list, as `nvpm_pair_line` requires.
    unsafe { crate::map_type::nvpm_pairs_each((&raw mut found).cast()) };
    found
}

/// Returns the number of pairs whose map type is known.
pub(crate) fn known_pairs() -> usize {
    pairs().len()
}

// The RDMA core.

#[no_mangle]
extern "C" fn ib_register_peer_memory_client(
    client: *const peer_memory_client,
    invalidate: *mut invalidate_peer_memory,
) -> *mut c_void {
    // SAFETY: The pointer is NULL or valid for writing.
    let invalidate = unsafe { invalidate.as_mut() };
    let revocable = invalidate.is_some();
    if let Some(invalidate) = invalidate {
        let gives = !world().faults.no_invalidate.get();
        *invalidate = gives.then_some(crate::rdma::invalidate);
    }
    world().rdma.register_client(client, revocable)
}

#[no_mangle]
extern "C" fn ib_unregister_peer_memory_client(handle: *mut c_void) {
    world().rdma.unregister_client(handle);
}
