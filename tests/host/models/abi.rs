// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The C side: the same names as in the module's bindings, with models behind them.
#![allow(
    clippy::missing_safety_doc,
    missing_docs,
    non_camel_case_types,
    unreachable_pub
)]

use std::{ffi::c_void, ptr::null_mut};

use crate::{
    ffi::{c_char, c_int, c_ulong},
    world::{may_sleep, task, world},
};

/// A device, which is a PCI device or is not.
pub struct device {
    pub pci: bool,
    pub revocable: bool,
    pub direct: bool,
    /// More than one registration is for it.
    pub shared: bool,
    pub max_segment: u32,
}
pub struct pci_dev {
    _opaque: [u8; 0],
}
pub struct nvpm_gpu {
    _opaque: [u8; 0],
}
/// What is told of a registration.
#[derive(Default)]
pub struct nvpm_region {
    pub address: u64,
    pub len: u64,
    pub process: nvpm_process,
    /// In the list; 0 if it is not there.
    pub number: usize,
}

/// An entry of a scatterlist.
#[derive(Clone, Copy, Default)]
pub struct scatterlist {
    pub dma_address: u64,
    pub dma_length: u32,
    pub length: u32,
    pub page_link: u64,
}

#[derive(Clone, Copy)]
pub struct sg_table {
    pub sgl: *mut scatterlist,
    pub nents: u32,
    pub orig_nents: u32,
}

impl Default for sg_table {
    fn default() -> Self {
        Self {
            sgl: null_mut(),
            nents: 0,
            orig_nents: 0,
        }
    }
}

/// A scatterlist that is being made.
pub struct nvpm_sg_list {
    pub table: sg_table,
    pub next: *mut scatterlist,
    pub room: u32,
    pub first: u32,
}

impl Default for nvpm_sg_list {
    fn default() -> Self {
        Self {
            table: sg_table::default(),
            next: null_mut(),
            room: 0,
            first: 0,
        }
    }
}

/// Addresses and lengths of a table's entries.
pub fn entries(table: &sg_table) -> Vec<(u64, u64)> {
    assert_eq!(
        table.orig_nents, 0,
        "who looks for pages finds entries without"
    );
    if table.nents == 0 {
        return Vec::new();
    }
    world().kernel.lists.read(table.sgl);
    (0..table.nents as usize)
        // SAFETY: The list is alive, as just checked, and has so many entries.
        .map(|at| unsafe { *table.sgl.add(at) })
        .map(|entry| {
            assert_eq!(entry.dma_length, entry.length);
            (entry.dma_address, entry.length.into())
        })
        .collect()
}

pub const NVIDIA_P2P_PAGE_SIZE_4KB: u32 = 0;
pub const NVIDIA_P2P_PAGE_SIZE_64KB: u32 = 1;
pub const NVIDIA_P2P_PAGE_SIZE_128KB: u32 = 2;

#[repr(C)]
pub struct nvidia_p2p_page {
    pub physical_address: u64,
}

#[repr(C)]
pub struct nvidia_p2p_page_table {
    pub version: u32,
    pub page_size: u32,
    pub pages: *mut *mut nvidia_p2p_page,
    pub entries: u32,
}

impl Default for nvidia_p2p_page_table {
    fn default() -> Self {
        Self {
            version: 0,
            page_size: 0,
            pages: null_mut(),
            entries: 0,
        }
    }
}

#[repr(C)]
pub struct nvidia_p2p_dma_mapping {
    pub version: u32,
    pub page_size_type: u32,
    pub entries: u32,
    pub dma_addresses: *mut u64,
}

impl Default for nvidia_p2p_dma_mapping {
    fn default() -> Self {
        Self {
            version: 0,
            page_size_type: 0,
            entries: 0,
            dma_addresses: null_mut(),
        }
    }
}

pub type FreeCallback = unsafe extern "C" fn(*mut c_void);
pub type invalidate_peer_memory = Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>;

type Acquire =
    unsafe extern "C" fn(c_ulong, usize, *mut c_void, *mut c_char, *mut *mut c_void) -> c_int;
type GetPages =
    unsafe extern "C" fn(c_ulong, usize, c_int, c_int, *mut sg_table, *mut c_void, u64) -> c_int;
type DmaMap =
    unsafe extern "C" fn(*mut sg_table, *mut c_void, *mut device, c_int, *mut c_int) -> c_int;

#[repr(C)]
pub struct peer_memory_client {
    pub name: [c_char; 64],
    pub version: [c_char; 16],
    pub acquire: Option<Acquire>,
    pub get_pages: Option<GetPages>,
    pub dma_map: Option<DmaMap>,
    pub dma_unmap: Option<unsafe extern "C" fn(*mut sg_table, *mut c_void, *mut device) -> c_int>,
    pub put_pages: Option<unsafe extern "C" fn(*mut sg_table, *mut c_void)>,
    pub get_page_size: Option<unsafe extern "C" fn(*mut c_void) -> c_ulong>,
    pub release: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Default for peer_memory_client {
    fn default() -> Self {
        Self {
            name: [0; 64],
            version: [0; 16],
            acquire: None,
            get_pages: None,
            dma_map: None,
            dma_unmap: None,
            put_pages: None,
            get_page_size: None,
            release: None,
        }
    }
}

#[repr(C)]
#[derive(Default)]
pub struct nvpm_client {
    pub client: peer_memory_client,
    pub ex_size: usize,
    pub flags: u32,
}

pub unsafe fn nvpm_client_extend(client: *mut nvpm_client) {
    // SAFETY: The caller's pointer is valid.
    let client = unsafe { &mut *client };
    client.ex_size = size_of::<nvpm_client>();
    client.flags = 1;
    client.client.version[15] = 1;
}

// The driver.

pub unsafe fn nvidia_p2p_get_pages(
    _token: u64,
    _space: u32,
    address: u64,
    len: u64,
    table: *mut *mut nvidia_p2p_page_table,
    callback: Option<FreeCallback>,
    data: *mut c_void,
) -> c_int {
    let callback = callback.expect("a pin without callback is another call");
    // SAFETY: The caller's pointer is valid.
    let table = unsafe { &mut *table };
    world()
        .driver
        .get_pages(address, len, table, (callback, data))
}

pub unsafe fn nvidia_p2p_put_pages(
    _token: u64,
    _space: u32,
    _address: u64,
    table: *mut nvidia_p2p_page_table,
) -> c_int {
    world().driver.put_pages(table)
}

pub unsafe fn nvpm_has_persistent() -> bool {
    !world().faults.old_driver.get()
}

pub unsafe fn nvpm_get_pages_persistent(
    address: u64,
    len: u64,
    table: *mut *mut nvidia_p2p_page_table,
) -> c_int {
    // SAFETY: The caller's pointer is valid.
    let table = unsafe { &mut *table };
    world().driver.get_pages_persistent(address, len, table)
}

pub unsafe fn nvpm_put_pages_persistent(_address: u64, table: *mut nvidia_p2p_page_table) -> c_int {
    world().driver.put_pages_persistent(table)
}

pub unsafe fn nvidia_p2p_dma_map_pages(
    peer: *mut pci_dev,
    table: *mut nvidia_p2p_page_table,
    mapping: *mut *mut nvidia_p2p_dma_mapping,
) -> c_int {
    // SAFETY: The caller's pointer is valid.
    let mapping = unsafe { &mut *mapping };
    world().driver.dma_map_pages(peer as usize, table, mapping)
}

pub unsafe fn nvidia_p2p_dma_unmap_pages(
    peer: *mut pci_dev,
    table: *mut nvidia_p2p_page_table,
    mapping: *mut nvidia_p2p_dma_mapping,
) -> c_int {
    world()
        .driver
        .dma_unmap_pages(peer as usize, table, mapping)
}

pub unsafe fn nvpm_page_table_known(table: *const nvidia_p2p_page_table) -> bool {
    world().driver.read(table);
    true
}

pub unsafe fn nvpm_page_table_coherent(table: *const nvidia_p2p_page_table) -> c_int {
    world().driver.read(table);
    match world().faults.offline.get() {
        true => -95,
        false => world().faults.coherent.get().into(),
    }
}

pub unsafe fn nvpm_page_table_gpu(table: *const nvidia_p2p_page_table) -> *const u8 {
    world().driver.read(table);
    world().driver.uuid().as_ptr()
}

pub unsafe fn nvpm_dma_mapping_known(_mapping: *const nvidia_p2p_dma_mapping) -> bool {
    true
}

// The kernel.

pub unsafe fn nvpm_module_get() -> bool {
    world().kernel.module.get()
}

pub unsafe fn nvpm_module_put() {
    world().kernel.module.put();
}

pub unsafe fn nvpm_ids_add(object: *const c_void) -> u64 {
    world().kernel.ids.add(object)
}

pub unsafe fn nvpm_ids_take(id: u64) -> *mut c_void {
    world().kernel.ids.take(id)
}

pub unsafe fn nvpm_ids_has(id: u64) -> bool {
    world().kernel.ids.has(id)
}

pub type nvpm_figure = usize;
pub const NVPM_REGIONS: nvpm_figure = 0;
pub const NVPM_BYTES: nvpm_figure = 1;
pub const NVPM_REGISTRATIONS: nvpm_figure = 2;
pub const NVPM_REVOCATIONS: nvpm_figure = 3;
pub const NVPM_FAILED_NO_MEMORY: nvpm_figure = 4;
pub const NVPM_FAILED_NOT_SUPPORTED: nvpm_figure = 5;
pub const NVPM_FAILED_FREED: nvpm_figure = 6;
pub const NVPM_FAILED_DRIVER: nvpm_figure = 7;
pub const NVPM_FAILED_LEFT_BEHIND: nvpm_figure = 8;
pub const NVPM_LEFT_BEHIND: nvpm_figure = 9;

pub type nvpm_verdict = u32;
pub const NVPM_OURS: nvpm_verdict = 1;
pub const NVPM_DRIVERS: nvpm_verdict = 2;
pub const NVPM_UNASKED: nvpm_verdict = 3;
pub const NVPM_REFUSED: nvpm_verdict = 4;

pub unsafe fn nvpm_gpu(uuid: *const u8) -> *mut nvpm_gpu {
    world().kernel.pairs.gpu(uuid).cast()
}

pub unsafe fn nvpm_pair_verdict(gpu: *const nvpm_gpu, device: *mut device) -> i32 {
    world().kernel.pairs.verdict(gpu as usize, device as usize)
}

pub unsafe fn nvpm_pair_add(gpu: *mut nvpm_gpu, device: *mut device, verdict: i32) -> bool {
    world()
        .kernel
        .pairs
        .add(gpu as usize, device as usize, verdict)
}

pub unsafe fn nvpm_pairs_forget() {
    world().kernel.pairs.forget();
}

pub type nvpm_client_kind = u32;
pub const NVPM_PERSISTENT: nvpm_client_kind = 0;
pub const NVPM_REVOCABLE: nvpm_client_kind = 1;
pub const NVPM_LAST: nvpm_client_kind = 2;

pub type nvpm_region_state = u32;
pub const NVPM_REGION_PINNING: nvpm_region_state = 0;
pub const NVPM_REGION_REFUSED: nvpm_region_state = 1;
pub const NVPM_REGION_PINNED: nvpm_region_state = 2;
pub const NVPM_REGION_MAPPED: nvpm_region_state = 3;
pub const NVPM_REGION_UNMAPPED: nvpm_region_state = 4;
pub const NVPM_REGION_REVOKED: nvpm_region_state = 5;
pub const NVPM_REGION_LEFT: nvpm_region_state = 6;

pub unsafe fn nvpm_region_begin(region: *mut nvpm_region, client: nvpm_client_kind) {
    let number = world().kernel.listed.begin(client, region as usize);
    // SAFETY: The caller's pointer is valid.
    unsafe {
        (*region).number = number;
        nvpm_process(&mut (*region).process);
    }
}

pub unsafe fn nvpm_region_is(region: *mut nvpm_region, state: nvpm_region_state) {
    // SAFETY: The caller's pointer is valid.
    let number = unsafe { (*region).number };
    let listed = &world().kernel.listed;
    listed.is(number, state, region as usize);
}

pub unsafe fn nvpm_region_mapped(region: *mut nvpm_region, device: *mut device) {
    // SAFETY: A pointer to a device.
    assert!(
        unsafe { (*device).pci },
        "listed with what is no PCI device"
    );
    // SAFETY: The caller's pointer is valid.
    unsafe { nvpm_region_is(region, NVPM_REGION_MAPPED) };
}

pub unsafe fn nvpm_region_end(region: *mut nvpm_region) {
    // SAFETY: The caller's pointer is valid.
    let number = unsafe { (*region).number };
    if number != 0 {
        world().kernel.listed.end(number, region as usize);
    }
}

/// A process: all of them are of one user.
#[derive(Clone, Copy, Default)]
pub struct nvpm_process {
    pub born: u64,
    pub number: i32,
    pub user: u32,
}
pub struct nvpm_left {
    process: nvpm_process,
    pages: u64,
}

pub unsafe fn nvpm_process(process: *mut nvpm_process) {
    // SAFETY: The caller's pointer is valid.
    unsafe {
        *process = nvpm_process {
            born: task().born.get(),
            number: task().process,
            user: 0,
        }
    };
}

pub unsafe fn nvpm_process_leaves(process: *const nvpm_process, pages: u64) -> *mut nvpm_left {
    may_sleep("remembering a process");
    // SAFETY: The caller's pointer is valid.
    let process = unsafe { *process };
    world().kernel.processes.leaves(&process, pages);
    world().kernel.count(NVPM_LEFT_BEHIND, 1);
    Box::into_raw(Box::new(nvpm_left { process, pages }))
}

pub unsafe fn nvpm_left_freed(left: *mut nvpm_left) {
    // SAFETY: From the above.
    let left = unsafe { Box::from_raw(left) };
    world().kernel.processes.freed(&left.process, left.pages);
    world().kernel.count(NVPM_LEFT_BEHIND, u64::MAX);
}

pub unsafe fn nvpm_process_full(
    process: *const nvpm_process,
    registrations: u32,
    pages: u64,
) -> bool {
    // SAFETY: The caller's pointer is valid.
    let left = world().kernel.processes.left(unsafe { &*process });
    left.0 >= registrations || left.1 >= pages
}

pub unsafe fn nvpm_user_full(_: *const nvpm_process, registrations: u32, pages: u64) -> bool {
    let left = world().kernel.processes.all();
    left.0 >= registrations || left.1 >= pages
}

pub unsafe fn nvpm_gate_enter(exclusive: bool) {
    world().kernel.gate.enter(exclusive);
}

pub unsafe fn nvpm_gate_leave(exclusive: bool) {
    world().kernel.gate.leave(exclusive);
}

pub unsafe fn nvpm_pci_dev(device: *mut device) -> *mut pci_dev {
    // SAFETY: A pointer to a device, or NULL.
    match unsafe { device.as_ref() } {
        Some(found) if found.pci => device.cast(),
        _ => null_mut(),
    }
}

pub unsafe fn nvpm_revocable(device: *mut device) -> bool {
    // SAFETY: A pointer to a device.
    unsafe { (*device).revocable }
}

pub unsafe fn nvpm_max_segment(device: *mut device) -> u32 {
    // SAFETY: A pointer to a device.
    unsafe { (*device).max_segment }
}

/// A range that many pieces share.
#[derive(Default)]
pub struct nvpm_range {
    pub address: u64,
    pub linked: u64,
}

pub unsafe fn nvpm_range_begin(
    _device: *mut device,
    range: *mut nvpm_range,
    _physical: u64,
    len: u64,
) -> bool {
    let Some(address) = world().kernel.dma.begin(len) else {
        return false;
    };
    // SAFETY: The caller's pointer is valid.
    unsafe { *range = nvpm_range { address, linked: 0 } };
    true
}

pub unsafe fn nvpm_range_add(
    device: *mut device,
    range: *mut nvpm_range,
    physical: u64,
    len: u64,
) -> c_int {
    // SAFETY: The caller's pointer is valid.
    let range = unsafe { &mut *range };
    let address = range.address + range.linked;
    if !world()
        .kernel
        .dma
        .map_at(device as usize, address, physical, len)
    {
        return -5;
    }
    range.linked += len;
    0
}

pub unsafe fn nvpm_range_end(
    _device: *mut device,
    range: *mut nvpm_range,
    address: *mut u64,
) -> c_int {
    // SAFETY: The caller's pointers are valid.
    unsafe { *address = (*range).address };
    0
}

pub unsafe fn nvpm_range_undo(device: *mut device, range: *mut nvpm_range) {
    // SAFETY: The caller's pointer is valid.
    let range = unsafe { &*range };
    assert!(range.address != 0, "a range is undone that was not taken");
    world()
        .kernel
        .dma
        .end(device as usize, range.address, range.linked);
}

pub unsafe fn nvpm_dma_map(
    device: *mut device,
    physical: u64,
    len: usize,
    address: *mut u64,
) -> c_int {
    match world()
        .kernel
        .dma
        .map(device as usize, physical, len as u64)
    {
        Some(found) => {
            // SAFETY: The caller's pointer is valid.
            unsafe { *address = found };
            0
        }
        None => -5,
    }
}

pub unsafe fn nvpm_dma_unmap(device: *mut device, address: u64, len: usize) {
    world()
        .kernel
        .dma
        .unmap(device as usize, address, len as u64);
}

/// Entries of the one array that a list has here.
const LIST_ROOM: u32 = 16;

pub unsafe fn nvpm_sg_grow(list: *mut nvpm_sg_list, _more: bool) -> c_int {
    may_sleep("allocating a scatterlist");
    // SAFETY: The caller's pointer is valid.
    let list = unsafe { &mut *list };
    assert!(list.table.sgl.is_null(), "no list is that long here");
    let Some(sgl) = world().kernel.lists.add(LIST_ROOM) else {
        return -12;
    };
    list.table.sgl = sgl;
    list.next = sgl;
    list.room = LIST_ROOM;
    list.first = LIST_ROOM;
    0
}

pub unsafe fn nvpm_sg_finish(_list: *mut nvpm_sg_list) {}

/// The entries of a list that is alive.
unsafe fn entries_of<'a>(sgl: *mut scatterlist, entries: u32) -> &'a mut [scatterlist] {
    world().kernel.lists.read(sgl);
    // SAFETY: By this function's requirement; so many were made.
    unsafe { std::slice::from_raw_parts_mut(sgl, entries as usize) }
}

pub unsafe fn nvpm_sg_map(device: *mut device, sgl: *mut scatterlist, entries: u32) -> c_int {
    // SAFETY: As the caller has it.
    for (at, entry) in unsafe { entries_of(sgl, entries) }.iter_mut().enumerate() {
        let (physical, len) = (entry.dma_address, entry.dma_length.into());
        let Some(address) = world().kernel.dma.map(device as usize, physical, len) else {
            // SAFETY: As above; these are mapped.
            unsafe { nvpm_sg_unmap(device, sgl, at as u32) };
            return -5;
        };
        entry.dma_address = address;
    }
    0
}

pub unsafe fn nvpm_sg_unmap(device: *mut device, sgl: *mut scatterlist, entries: u32) {
    // SAFETY: As the caller has it.
    for entry in unsafe { entries_of(sgl, entries) } {
        let dma = &world().kernel.dma;
        dma.unmap(device as usize, entry.dma_address, entry.dma_length.into());
    }
}

pub unsafe fn nvpm_sg_free(sgl: *mut scatterlist, first: u32) {
    if !sgl.is_null() {
        assert_eq!(first, LIST_ROOM);
        world().kernel.lists.remove(sgl);
    }
}

// The RDMA core.

pub unsafe fn ib_register_peer_memory_client(
    client: *const peer_memory_client,
    invalidate: *mut invalidate_peer_memory,
) -> *mut c_void {
    // SAFETY: NULL or valid for writing.
    let invalidate = unsafe { invalidate.as_mut() };
    let revocable = invalidate.is_some();
    if let Some(invalidate) = invalidate {
        *invalidate = Some(crate::rdma::invalidate);
    }
    world().rdma.register_client(client, revocable)
}

pub unsafe fn ib_unregister_peer_memory_client(handle: *mut c_void) {
    world().rdma.unregister_client(handle);
}
