// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A model of the NVIDIA driver's contract.
//!
//! The driver has one lock, the API lock. A thread of the driver holds it during each half of a
//! request to pin, and during unpinning and mapping. It also holds the lock while it ends an
//! allocation and calls the callbacks. No thread may take the lock twice. The driver identifies a
//! pin by its process and by the address of its page table.
//!
//! The guests have another double of the driver, `tests/doubles/driver`, with NVIDIA's own code. loom
//! cannot switch threads inside that code, because it is C, and guests see only few of the orders
//! in which threads may run. This model has only the locks, the steps and the failures that
//! scenarios use.

use std::{
    cell::{Cell, RefCell},
    ffi::c_void,
    ops::RangeInclusive,
};

use loom::sync::{Mutex, MutexGuard};

use crate::{
    abi::{
        nvidia_p2p_dma_mapping, nvidia_p2p_page, nvidia_p2p_page_table, NVIDIA_P2P_PAGE_SIZE_4KB,
    },
    extents::GPU_PAGE,
    world::{may_sleep, note, task, world},
};

/// The module's function that the driver calls when an allocation ends.
pub(crate) type FreeCallback = unsafe extern "C" fn(*mut c_void);

const ENOMEM: i32 = -12;
const EIO: i32 = -5;
const EINVAL: i32 = -22;

/// The model of the driver. See the description of this file.
pub(crate) struct Driver {
    api: Mutex<()>,
    // The API lock guards the following two fields.
    allocations: RefCell<Vec<Allocation>>,
    pins: RefCell<Vec<Pin>>,
    // The model keeps page tables and mappings until the end of the run, so that it notices a use
    // after free.
    #[expect(clippy::vec_box, reason = "others know their addresses")]
    tables: Mutex<Vec<Box<Table>>>,
    #[expect(clippy::vec_box, reason = "others know their addresses")]
    mappings: RefCell<Vec<Box<Mapping>>>,
    /// The place of the next pinned page.
    place: Cell<u64>,
    mapped: Cell<u32>,
    longest: Cell<u64>,
}

/// The process that was the first to open the GPU.
const FIRST_PROCESS: i32 = 1;

/// The GPU that has the memory of most scenarios. Each byte of the GPU's UUID has this value.
pub(crate) const FIRST_GPU: u8 = 7;

/// GPU memory, and the driver's object that owns the memory. The object lists the process that may
/// pin the memory.
struct Allocation {
    process: Option<i32>,
    gpu: u8,
    address: u64,
    pages: u64,
    freed: bool,
}

struct Pin {
    allocation: usize,
    /// The physical addresses of the pin's pages. Two pins of the same memory get different
    /// addresses. With equal addresses, one pin could hide that the other pin was lost.
    physical: Vec<u64>,
    table: *mut nvidia_p2p_page_table,
    address: u64,
    /// The function that the driver calls when the memory is freed. A pin without such a function
    /// is persistent, so it outlives the memory.
    callback: Option<(FreeCallback, *mut c_void)>,
    /// The driver has failed to end this persistent pin, so the memory stays pinned for ever.
    lost: Cell<bool>,
    /// The driver has reported success to a caller whose request to end this pin it has ignored.
    ignored: Cell<bool>,
    /// The driver has begun to call the pin's callback.
    called: Cell<bool>,
    /// The module was unloaded after it had made this pin.
    of_earlier_load: Cell<bool>,
}

/// A page table of the driver. The C structure is the first field, so that a pointer to the
/// structure is also a pointer to the `Table`.
#[repr(C)]
struct Table {
    c: nvidia_p2p_page_table,
    pages: Vec<nvidia_p2p_page>,
    pointers: Vec<*mut nvidia_p2p_page>,
    uuid: [u8; 16],
    alive: bool,
}

#[repr(C)]
struct Mapping {
    c: nvidia_p2p_dma_mapping,
    /// The bus address of each GPU page.
    addresses: Vec<u64>,
    /// The addresses in the driver's structure. The array has one address for each GPU page, or for
    /// each smaller page.
    shown: Vec<u64>,
    table: *mut nvidia_p2p_page_table,
    device: usize,
    alive: bool,
}

impl Driver {
    pub(crate) fn new() -> Self {
        Self {
            api: Mutex::new(()),
            allocations: RefCell::default(),
            pins: RefCell::default(),
            tables: Mutex::new(Vec::new()),
            mappings: RefCell::default(),
            place: Cell::new(1 << 50),
            mapped: Cell::new(0),
            longest: Cell::new(0),
        }
    }

    /// Takes the API lock.
    fn enter(&self, what: &str) -> MutexGuard<'_, ()> {
        may_sleep(what);
        assert!(
            !task().in_callback.get(),
            "{what} takes the driver's lock in the driver's callback, which holds it"
        );
        self.api.lock().unwrap()
    }

    /// Allocates two pages of memory for an application.
    pub(crate) fn allocate(&self, process: i32, address: u64) {
        self.allocate_on(FIRST_GPU, process, address);
    }

    pub(crate) fn allocate_on(&self, gpu: u8, process: i32, address: u64) {
        self.allocate_pages(gpu, process, address, 2);
    }

    pub(crate) fn allocate_pages(&self, gpu: u8, process: i32, address: u64, pages: u64) {
        let _api = self.enter("allocating GPU memory");
        self.allocations.borrow_mut().push(Allocation {
            process: Some(process),
            gpu,
            address,
            pages,
            freed: false,
        });
    }

    /// Frees an application's memory, and calls the callbacks of its revocable pins, one after
    /// another.
    pub(crate) fn free(&self, address: u64) {
        let _api = self.enter("freeing GPU memory");
        note("frees GPU memory");
        let allocation = {
            let mut allocations = self.allocations.borrow_mut();
            let there = |one: &Allocation| one.address == address && !one.freed;
            let own = |one: &Allocation| there(one) && one.process == Some(task().process);
            let at = allocations.iter().position(own);
            let at = at.or_else(|| allocations.iter().position(there));
            let at = at.expect("the memory is there");
            allocations[at].freed = true;
            at
        };
        while let Some((callback, data)) = self.call_begins(allocation) {
            self.call(callback, data);
            let mut pins = self.pins.borrow_mut();
            let at = pins
                .iter()
                .position(|pin| pin.callback.is_some_and(|(_, other)| other == data))
                .expect("the driver's lock is held");
            let pin = pins.remove(at);
            drop(pins);
            self.end(&pin);
        }
    }

    /// Returns the callback of a pin of the allocation, if there is still one.
    fn call_begins(&self, allocation: usize) -> Option<(FreeCallback, *mut c_void)> {
        let pins = self.pins.borrow();
        let mut of_it = pins.iter().filter(|pin| pin.allocation == allocation);
        let pin = of_it.find(|pin| pin.callback.is_some())?;
        pin.called.set(true);
        pin.callback
    }

    fn call(&self, callback: FreeCallback, data: *mut c_void) {
        let task = task();
        task.in_callback.set(true);
        note("callback begins");
        // SAFETY: The module passed this function together with this argument.
        unsafe { callback(data) };
        note("callback has returned");
        task.in_callback.set(false);
    }

    /// Ends a pin, and also its page table and all mappings that were made from the table.
    fn end(&self, pin: &Pin) {
        let world = world();
        for physical in &pin.physical {
            world.linux.dma.assert_unused(*physical, GPU_PAGE);
        }
        let of_it = |one: &Mapping| one.alive && one.table == pin.table;
        let left = self.mappings.borrow().iter().any(|one| of_it(one));
        assert!(!left, "unpinned while mapped by the driver");
        let mut tables = self.tables.lock().unwrap();
        let table = find(&mut tables, pin.table);
        table.alive = false;
        // The arrays of the table are freed at once, so that tools such as valgrind notice a later
        // use.
        table.pages = Vec::new();
        table.pointers = Vec::new();
        table.c.pages = std::ptr::null_mut();
        table.c.entries = u32::MAX;
        table.c.version = u32::MAX;
    }

    /// Does the first half of pinning. Returns the allocation that the calling process may pin at
    /// this range, or the driver's error.
    fn look_up(&self, address: u64, len: u64) -> Result<usize, i32> {
        // The real driver allocates memory for each page before it looks for the allocation.
        self.longest.set(self.longest.get().max(len));
        if len == world().faults.no_memory_for.get() {
            return Err(ENOMEM);
        }
        let process = Some(task().process);
        let allocations = self.allocations.borrow();
        let found = allocations.iter().position(|one| {
            let end = one.address + one.pages * GPU_PAGE;
            one.process == process && !one.freed && one.address <= address && address + len <= end
        });
        let at = found.ok_or(EINVAL)?;
        match world().faults.refusal.get() {
            0 => Ok(at),
            errno => Err(errno),
        }
    }

    /// Pins memory until it is freed or unpinned.
    pub(crate) fn get_pages(
        &self,
        address: u64,
        len: u64,
        out: &mut *mut nvidia_p2p_page_table,
        callback: (FreeCallback, *mut c_void),
    ) -> i32 {
        // If the call fails, this value stays in the pointer. A caller that follows the pointer
        // then crashes.
        *out = std::ptr::dangling_mut();
        if address % GPU_PAGE != 0 || len % GPU_PAGE != 0 {
            return EINVAL;
        }
        if world().faults.get.fails("the driver cannot pin") {
            return ENOMEM;
        }
        let looked_up = {
            let _api = self.enter("pinning");
            self.look_up(address, len)
        };
        let allocation = match looked_up {
            Ok(found) => found,
            Err(errno) => return errno,
        };
        // Another thread may free the memory between the first half and this half.
        let _api = self.enter("arming a callback");
        if self.allocations.borrow()[allocation].freed {
            return EINVAL;
        }
        if world().faults.no_table.get() {
            *out = std::ptr::null_mut();
            return 0;
        }
        *out = self.pin(allocation, address, len, Some(callback));
        note("pinned, callback armed");
        0
    }

    /// Pins memory until it is unpinned.
    pub(crate) fn get_pages_persistent(
        &self,
        address: u64,
        len: u64,
        out: &mut *mut nvidia_p2p_page_table,
    ) -> i32 {
        *out = std::ptr::dangling_mut();
        let on_gpu = {
            let _api = self.enter("finding the GPU");
            self.look_up(address, len)
        };
        if let Err(errno) = on_gpu {
            return errno;
        }
        // Another thread may free the memory between the first half and this half.
        let _api = self.enter("pinning");
        match self.look_up(address, len) {
            Err(errno) => errno,
            Ok(_) if world().faults.no_persistent.get() != 0 => world().faults.no_persistent.get(),
            Ok(_)
                if world()
                    .faults
                    .persistent
                    .fails("the driver cannot pin persistently") =>
            {
                EIO
            }
            Ok(_) if world().faults.no_table.get() => {
                *out = std::ptr::null_mut();
                0
            }
            Ok(allocation) => {
                *out = self.pin(allocation, address, len, None);
                note("pinned until put");
                0
            }
        }
    }

    fn pin(
        &self,
        allocation: usize,
        address: u64,
        len: u64,
        callback: Option<(FreeCallback, *mut c_void)>,
    ) -> *mut nvidia_p2p_page_table {
        // No page follows another page directly on the bus.
        let pages = len / GPU_PAGE;
        let physical: Vec<u64> = (0..pages).map(|page| self.next_place(page)).collect();
        self.place.set(self.next_place(pages));
        let gpu = self.allocations.borrow()[allocation].gpu;
        let table = self.new_table(&physical, gpu);
        self.pins.borrow_mut().push(Pin {
            allocation,
            physical,
            table,
            address,
            callback,
            lost: Cell::new(false),
            ignored: Cell::new(false),
            called: Cell::new(false),
            of_earlier_load: Cell::new(false),
        });
        table
    }

    fn new_table(&self, physical: &[u64], gpu: u8) -> *mut nvidia_p2p_page_table {
        let pages = physical.iter().map(|&physical_address| nvidia_p2p_page {
            physical_address,
            ..Default::default()
        });
        let mut tables = self.tables.lock().unwrap();
        let free = tables.iter().position(|table| !table.alive);
        let at = match free {
            Some(at) if world().faults.reuse_tables.get() => at,
            _ => {
                tables.push(Box::new(Table {
                    c: nvidia_p2p_page_table::default(),
                    pages: Vec::new(),
                    pointers: Vec::new(),
                    uuid: [0; 16],
                    alive: false,
                }));
                tables.len() - 1
            }
        };
        let table = &mut tables[at];
        table.pages = pages.collect();
        table.pointers = table.pages.iter_mut().map(std::ptr::from_mut).collect();
        table.uuid = [gpu; 16];
        table.alive = true;
        table.c = nvidia_p2p_page_table {
            version: 0x0002_0000,
            page_size: world().faults.page_size.get(),
            pages: match world().faults.no_pages.get() {
                true => std::ptr::null_mut(),
                false => table.pointers.as_mut_ptr(),
            },
            entries: physical.len() as u32 - world().faults.hidden_pages.get(),
            ..Default::default()
        };
        &mut table.c
    }

    /// Unpins memory. If the object that owns the pin does not list the calling process, the pin
    /// stays, but the driver reports success nevertheless.
    pub(crate) fn put_pages(&self, address: u64, table: *mut nvidia_p2p_page_table) -> i32 {
        self.put(address, table, |pin| {
            let lists = match pin.callback {
                Some(_) => self.allocations.borrow()[pin.allocation].process,
                // An object of the driver owns a persistent pin. The object lists the first process
                // that opened the GPU.
                None => Some(FIRST_PROCESS),
            };
            lists == Some(task().process)
        })
    }

    pub(crate) fn put_pages_persistent(
        &self,
        address: u64,
        table: *mut nvidia_p2p_page_table,
    ) -> i32 {
        self.put(address, table, |pin| pin.callback.is_none())
    }

    fn put(
        &self,
        address: u64,
        table: *mut nvidia_p2p_page_table,
        mine: impl Fn(&Pin) -> bool,
    ) -> i32 {
        may_sleep("unpinning");
        if world().faults.put.fails("the driver cannot unpin") {
            let pins = self.pins.borrow();
            let one = pins.iter().find(|pin| pin.table == table && mine(pin));
            one.inspect(|pin| pin.lost.set(pin.callback.is_none()));
            return ENOMEM;
        }
        let _api = self.enter("unpinning");
        let mut pins = self.pins.borrow_mut();
        let at = pins.iter().position(|pin| pin.table == table && mine(pin));
        let pin = at.map(|at| pins.remove(at));
        drop(pins);
        match &pin {
            Some(pin) => {
                note("unpinned");
                self.end(pin);
                assert_eq!(address, pin.address, "unpinned where it is not pinned");
            }
            None => {
                note("finds no pin to undo");
                let pins = self.pins.borrow();
                let one = pins.iter().find(|pin| pin.table == table);
                one.inspect(|pin| pin.ignored.set(true));
            }
        }
        0
    }

    /// Fails if a page table that the module reads has been freed.
    pub(crate) fn read(&self, table: *const nvidia_p2p_page_table) {
        let mut tables = self.tables.lock().unwrap();
        let table = find(&mut tables, table.cast_mut());
        assert!(
            table.alive,
            "a page table is read that the driver has freed"
        );
    }

    /// Maps the pages of a pin for a device.
    pub(crate) fn dma_map_pages(
        &self,
        device: usize,
        table: *mut nvidia_p2p_page_table,
        out: &mut *mut nvidia_p2p_dma_mapping,
    ) -> i32 {
        // The driver reads the table before it takes any lock.
        self.read(table);
        let _api = self.enter("mapping");
        *out = std::ptr::null_mut();
        self.read(table);
        // SAFETY: The table is alive, and is part of a `Table` of this model.
        let pinned = unsafe { &*table.cast::<Table>() };
        let faults = &world().faults;
        let refused = faults.refused_gpu.get();
        let is_refused = refused.is_none_or(|gpu| pinned.uuid == [gpu; 16]);
        if is_refused && faults.refuses_to_map.get() != 0 {
            return faults.refuses_to_map.get();
        }
        if faults.no_mapping.get() {
            return 0;
        }
        let mut addresses = Vec::new();
        for page in &pinned.pages {
            let (physical, dma) = (page.physical_address, &world().linux.dma);
            let address = match faults.bus_offset.get() {
                Some(offset) => {
                    let address = physical + offset;
                    dma.map_at(device, address, physical, GPU_PAGE)
                        .then_some(address)
                }
                None => dma.map(device, physical, GPU_PAGE),
            };
            addresses.push(address.expect("no scenario lets the driver's own mapping fail"));
        }
        let (page, page_size) = match faults.small_mapped_pages.get() {
            true => (4 << 10, NVIDIA_P2P_PAGE_SIZE_4KB),
            false => (GPU_PAGE, faults.page_size.get()),
        };
        let small = |&start: &u64| (start..start + GPU_PAGE).step_by(page as usize);
        let mut mapping = Box::new(Mapping {
            c: nvidia_p2p_dma_mapping::default(),
            shown: addresses.iter().flat_map(small).collect(),
            addresses,
            table,
            device,
            alive: true,
        });
        mapping.c = nvidia_p2p_dma_mapping {
            version: 0x0002_0003,
            page_size_type: page_size,
            entries: mapping.shown.len() as u32 - faults.hidden_mapped_pages.get(),
            dma_addresses: match faults.no_addresses.get() {
                true => std::ptr::null_mut(),
                false => mapping.shown.as_mut_ptr(),
            },
            ..Default::default()
        };
        *out = &mut mapping.c;
        self.mapped.set(self.mapped.get() + 1);
        self.mappings.borrow_mut().push(mapping);
        0
    }

    /// Undoes a mapping. Does not take the API lock, so that unmapping never waits for a callback.
    pub(crate) fn dma_unmap_pages(
        &self,
        device: usize,
        table: *mut nvidia_p2p_page_table,
        mapping: *mut nvidia_p2p_dma_mapping,
    ) -> i32 {
        self.read(table);
        let mut mappings = self.mappings.borrow_mut();
        let found = mappings
            .iter_mut()
            .find(|one| std::ptr::eq(&one.c, mapping) && one.alive)
            .expect("the module undoes a mapping that the driver has not made");
        assert!(
            found.table == table && found.device == device,
            "a mapping is undone with another pin or device than it was made with"
        );
        found.alive = false;
        let addresses = std::mem::take(&mut found.addresses);
        drop(mappings);
        unmap_all(device, &addresses);
        world().faults.unmapped.get()
    }

    /// Returns the physical address of a page of the next pin.
    pub(crate) fn next_place(&self, page: u64) -> u64 {
        self.place.get() + 3 * GPU_PAGE * page
    }

    /// Tells whether physical memory is pinned.
    pub(crate) fn pinned(&self, physical: u64, len: u64) -> bool {
        let pins = self.pins.borrow();
        let covers = |pin: &Pin, at| {
            let mut pages = pin.physical.iter();
            pages.any(|&start| (start..start + GPU_PAGE).contains(&at))
        };
        let mut places = (physical..physical + len).step_by(GPU_PAGE as usize);
        places.all(|at| pins.iter().any(|pin| covers(pin, at)))
    }

    /// Tells whether a mapping by the driver exists.
    pub(crate) fn maps(&self) -> bool {
        self.mappings.borrow().iter().any(|one| one.alive)
    }

    /// Tells whether a mapping by the driver exists for this device.
    pub(crate) fn maps_for(&self, device: usize) -> bool {
        let mappings = self.mappings.borrow();
        mappings.iter().any(|one| one.alive && one.device == device)
    }

    /// Returns the length of the longest request to pin.
    pub(crate) fn longest(&self) -> u64 {
        self.longest.get()
    }

    /// Returns how often the driver has mapped the pages of a pin.
    pub(crate) fn mapped(&self) -> u32 {
        self.mapped.get()
    }

    /// An object of another process owns the memory at `address`. This function removes the calling
    /// process from that object. The pins of the object stay, and no process can undo them.
    pub(crate) fn delist(&self, address: u64) {
        let _api = self.enter("ending a client of the driver");
        note("delists the process");
        let mut allocations = self.allocations.borrow_mut();
        let there = |one: &&mut Allocation| one.address == address && !one.freed;
        let object = allocations.iter_mut().find(there);
        object.expect("the memory is there").process = None;
    }

    /// Returns the UUID of the GPU whose memory a page table describes.
    pub(crate) fn uuid(&self, table: *const nvidia_p2p_page_table) -> *const u8 {
        let mut tables = self.tables.lock().unwrap();
        let table = find(&mut tables, table.cast_mut());
        assert!(
            table.alive,
            "a page table is read that the driver has freed"
        );
        table.uuid.as_ptr()
    }

    /// Tells whether there is a revocable pin whose callback the driver has not called yet.
    pub(crate) fn is_armed(&self) -> bool {
        self.pins.borrow().iter().any(|pin| pin.callback.is_some())
    }

    /// Returns the number of orphans of this load of the module, if the module has no registration.
    /// The smallest number is right if all callbacks that run now have ended, and the largest
    /// number is right before. A pin is no orphan if the driver has told the module that the pin
    /// has ended.
    pub(crate) fn orphans(&self) -> RangeInclusive<u64> {
        let pins = self.pins.borrow();
        let is_orphan =
            |pin: &&Pin| pin.callback.is_some() && !pin.ignored.get() && !pin.of_earlier_load.get();
        let orphans = || pins.iter().filter(is_orphan);
        let waiting = orphans().filter(|pin| !pin.called.get()).count() as u64;
        waiting..=orphans().count() as u64
    }

    /// Records that the module is unloaded, so that it has no orphan any more.
    pub(crate) fn forget_loads(&self) {
        for pin in self.pins.borrow().iter() {
            pin.of_earlier_load.set(true);
        }
    }

    /// Tells whether any memory is pinned.
    pub(crate) fn is_pinned(&self) -> bool {
        !self.pins.borrow().is_empty()
    }

    /// Tells whether any memory was ever pinned.
    pub(crate) fn has_pinned(&self) -> bool {
        !self.tables.lock().unwrap().is_empty()
    }

    /// Checks that nothing is left.
    pub(crate) fn assert_over(&self) {
        let pins = self.pins.borrow();
        assert!(pins.iter().all(|pin| pin.lost.get()), "pins are left");
        let mappings = self.mappings.borrow();
        assert!(
            mappings.iter().all(|one| !one.alive),
            "mappings of the driver are left"
        );
    }
}

fn find(tables: &mut [Box<Table>], table: *mut nvidia_p2p_page_table) -> &mut Table {
    let found = tables.iter_mut().find(|one| std::ptr::eq(&one.c, table));
    found.expect("this is no page table of the driver")
}

fn unmap_all(device: usize, addresses: &[u64]) {
    for address in addresses {
        world().linux.dma.unmap(device, *address, GPU_PAGE);
    }
}
