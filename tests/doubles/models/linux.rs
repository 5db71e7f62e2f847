// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The parts of the kernel that the module uses. These are memory, the module's reference count,
//! the unpin lock, the queue of threads that wait for a change of a phase, and the DMA layer with
//! scatterlists.
//!
//! The guests run the kernel itself. In the models, loom must decide which thread takes a lock and
//! when a thread is woken, so the locks and the queue are made of loom's types.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ffi::CStr,
    rc::Rc,
};

use loom::sync::{atomic::AtomicUsize, Condvar, Mutex, MutexGuard};

use crate::{
    abi, c, registry,
    world::{may_sleep, note, task, world},
};

/// The model of the kernel. See the description of this file.
pub(crate) struct Linux {
    pub(crate) module: Module,
    pub(crate) unpin_lock: Rwsem,
    /// The state of `nv_peer_mem_callback`. `gate` is its lock, `served` says whether it passes
    /// callbacks on, and the next field is the last number of a registration.
    pub(crate) gate: Rwsem,
    pub(crate) served: Cell<bool>,
    pub(crate) last_number: Cell<u64>,
    /// The locks of the module's tables. The first lock protects the registry, and the second lock
    /// protects the pairs.
    pub(crate) tables: [SpinLock; 2],
    pub(crate) phases: Phases,
    pub(crate) dma: Dma,
    pub(crate) lists: Lists,
    pub(crate) files: Files,
    /// Whether a loop has counted a step since it has most recently linked an extent.
    pub(crate) turned: Cell<bool>,
    live: Cell<u32>,
    atomics: RefCell<BTreeMap<usize, Rc<AtomicUsize>>>,
    counts: RefCell<BTreeMap<usize, u64>>,
}

impl Linux {
    pub(crate) fn new() -> Self {
        Self {
            module: Module::new(),
            unpin_lock: Rwsem::new(),
            gate: Rwsem::new(),
            served: Cell::new(false),
            last_number: Cell::new(0),
            // The order in which threads take the lock of the pairs does not matter. Threads that
            // ask about a pair at the same time all ask the driver, and receive the same answer.
            tables: [SpinLock::new(true), SpinLock::new(false)],
            phases: Phases::new(),
            dma: Dma::new(),
            lists: Lists::new(),
            files: Files::default(),
            turned: Cell::new(false),
            live: Cell::new(0),
            atomics: RefCell::default(),
            counts: RefCell::default(),
        }
    }

    /// Counts a new object, and returns true. Returns false if the allocation fails.
    pub(crate) fn allocate(&self) -> bool {
        if world().faults.allocation.fails("is out of memory") {
            return false;
        }
        self.live.set(self.live.get() + 1);
        true
    }

    pub(crate) fn deallocate(&self) {
        self.live.set(self.live.get() - 1);
    }

    /// Loads the module's code, so all statics of the module have their initial values again.
    pub(crate) fn load_module(&self) {
        *self.module.state.lock().unwrap() = ModuleState::default();
        self.atomics.borrow_mut().clear();
    }

    /// Returns this world's value of the static at `address`. If the static has no value yet, gives
    /// it the value `first`.
    pub(crate) fn atomic(&self, address: usize, first: usize) -> Rc<AtomicUsize> {
        let mut atomics = self.atomics.borrow_mut();
        let atomic = atomics
            .entry(address)
            .or_insert_with(|| Rc::new(AtomicUsize::new(first)));
        atomic.clone()
    }

    /// Changes the count at `address`. Returns the count before.
    pub(crate) fn count(&self, address: usize, change: impl Fn(u64) -> u64) -> u64 {
        let mut counts = self.counts.borrow_mut();
        let count = counts.entry(address).or_default();
        std::mem::replace(count, change(*count))
    }

    /// Checks that nothing is left.
    pub(crate) fn assert_over(&self) {
        assert_eq!(
            self.module.state.lock().unwrap().references,
            0,
            "module references are left"
        );
        assert!(
            self.dma.mappings.lock().unwrap().is_empty(),
            "mappings for a device are left"
        );
        assert_eq!(self.live.get(), 0, "memory is left");
        assert_eq!(self.files.names.get(), None, "files are left");
        assert!(!self.served.get(), "callbacks are passed on for ever");
    }
}

/// Fails if the module's table of registrations does not exist.
pub(crate) fn assert_registry(who: &str) {
    let there = registry::REGISTRY.with(|_| ()).is_some();
    assert!(there, "{who} without the registry");
}

/// The module's files in sysfs and in proc, and the names of the clients, which both kinds of files
/// show.
#[derive(Default)]
pub(crate) struct Files {
    names: Cell<Option<[Option<&'static CStr>; 3]>>,
    lists: Cell<bool>,
}

impl Files {
    /// Returns the names of the clients that the files show, while the files exist.
    pub(crate) fn names(&self) -> Option<[Option<&'static CStr>; 3]> {
        self.names.get()
    }

    pub(crate) fn create_statistics(&self, names: [Option<&'static CStr>; 3]) {
        assert_eq!(self.names.replace(Some(names)), None, "created twice");
        assert_registry("statistics are read");
    }

    pub(crate) fn remove_statistics(&self) {
        may_sleep("removing statistics");
        assert_registry("statistics are read");
        assert!(!self.lists.get(), "lists are read without names");
        assert!(self.names.take().is_some(), "removed, but not created");
    }

    pub(crate) fn create_lists(&self) {
        assert!(self.names.get().is_some(), "lists are read without names");
        assert_registry("lists are read");
        assert!(!self.lists.replace(true), "created twice");
    }

    pub(crate) fn remove_lists(&self) {
        may_sleep("removing lists");
        assert_registry("lists are read");
        assert!(self.lists.replace(false), "removed, but not created");
    }
}

/// The module's life. Counts references to the module, and records whether the module's code still
/// exists.
pub(crate) struct Module {
    state: Mutex<ModuleState>,
    unused: Condvar,
}

#[derive(Default)]
struct ModuleState {
    references: u32,
    going: bool,
    gone: bool,
}

impl Module {
    fn new() -> Self {
        Self {
            state: Mutex::new(ModuleState::default()),
            unused: Condvar::new(),
        }
    }

    pub(crate) fn get(&self) -> bool {
        let mut state = self.state.lock().unwrap();
        state.references += u32::from(!state.going);
        !state.going
    }

    pub(crate) fn put(&self) {
        let mut state = self.state.lock().unwrap();
        assert!(
            state.references > 0,
            "one module reference too many is given back"
        );
        state.references -= 1;
        if state.references == 0 {
            self.unused.notify_all();
        }
    }

    /// Waits until the module has no references. After this call no thread can get a reference.
    pub(crate) fn begin_to_go(&self) {
        let mut state = self.state.lock().unwrap();
        while state.references > 0 {
            state = self.unused.wait(state).unwrap();
        }
        state.going = true;
        world().counts.assert_orphans();
    }

    /// Frees the module's memory.
    pub(crate) fn end_to_go(&self) {
        world().counts.assert_over();
        world().driver.forget_loads();
        note("the module is gone");
        self.state.lock().unwrap().gone = true;
        world().linux.counts.borrow_mut().clear();
    }

    /// Checks that the module's code still exists, even for its last instruction.
    pub(crate) fn runs(&self, what: &str) {
        let gone = self.state.lock().unwrap().gone;
        assert!(!gone, "{what} runs in a module that is gone");
    }
}

/// The queue of threads that wait for a change of a registration's phase.
pub(crate) struct Phases {
    wakes: Mutex<u32>,
    woken: Condvar,
}

impl Phases {
    fn new() -> Self {
        Self {
            wakes: Mutex::new(0),
            woken: Condvar::new(),
        }
    }

    pub(crate) fn count(&self) -> u32 {
        *self.wakes.lock().unwrap()
    }

    pub(crate) fn wait(&self, count: u32) {
        may_sleep("waiting for a phase");
        let mut wakes = self.wakes.lock().unwrap();
        while *wakes == count {
            wakes = self.woken.wait(wakes).unwrap();
        }
    }

    pub(crate) fn wake(&self) {
        *self.wakes.lock().unwrap() += 1;
        self.woken.notify_all();
    }
}

/// A reader-writer lock. While a writer waits, new readers also wait.
pub(crate) struct Rwsem {
    state: Mutex<RwsemState>,
    changed: Condvar,
    /// A copy of the number of readers. If a thread reads this copy, loom does not switch threads,
    /// as it would at an access to `state`.
    sharers: Cell<u32>,
}

#[derive(Default)]
struct RwsemState {
    sharers: u32,
    alone: bool,
    wanting: u32,
}

impl Rwsem {
    fn new() -> Self {
        Self {
            state: Mutex::new(RwsemState::default()),
            changed: Condvar::new(),
            sharers: Cell::new(0),
        }
    }

    /// Fails unless the lock is held shared.
    pub(crate) fn assert_shared(&self, what: &str) {
        assert!(
            self.sharers.get() > 0,
            "{what} without the unpin lock, or alone"
        );
    }

    pub(crate) fn lock(&self, exclusive: bool) {
        may_sleep("taking a semaphore");
        let mut state = self.state.lock().unwrap();
        if exclusive {
            state.wanting += 1;
            while state.alone || state.sharers > 0 {
                state = self.changed.wait(state).unwrap();
            }
            state.wanting -= 1;
            state.alone = true;
        } else {
            while state.alone || state.wanting > 0 {
                state = self.changed.wait(state).unwrap();
            }
            state.sharers += 1;
            self.sharers.set(state.sharers);
        }
    }

    pub(crate) fn unlock(&self, exclusive: bool) {
        let mut state = self.state.lock().unwrap();
        if exclusive {
            state.alone = false;
        } else {
            state.sharers -= 1;
            self.sharers.set(state.sharers);
        }
        self.changed.notify_all();
    }
}

/// A lock for one thread at a time, whose holder must not sleep.
pub(crate) struct SpinLock {
    lock: Mutex<()>,
    /// Whether loom explores the order in which threads take the lock.
    explored: bool,
    held: RefCell<Option<MutexGuard<'static, ()>>>,
    locked: Cell<bool>,
}

impl SpinLock {
    fn new(explored: bool) -> Self {
        Self {
            lock: Mutex::new(()),
            explored,
            held: RefCell::new(None),
            locked: Cell::new(false),
        }
    }

    pub(crate) fn lock(&self) {
        if self.explored {
            let guard = self.lock.lock().unwrap();
            // SAFETY: The guard does not outlive the lock, because `unlock` drops the guard. A
            // caller that does not unlock fails below.
            let guard = unsafe {
                std::mem::transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard)
            };
            *self.held.borrow_mut() = Some(guard);
        }
        assert!(!self.locked.replace(true), "a spin lock is taken twice");
        let task = task();
        task.spinning.set(task.spinning.get() + 1);
    }

    pub(crate) fn unlock(&self) {
        assert!(
            self.locked.replace(false),
            "a spin lock is released that is not held"
        );
        let task = task();
        task.spinning.set(task.spinning.get() - 1);
        let held = self.held.borrow_mut().take();
        drop(held);
    }
}

/// The DMA layer.
pub(crate) struct Dma {
    mappings: Mutex<Vec<Mapping>>,
    last: Cell<u64>,
    /// The physical address for which the module most recently allocated a range of bus addresses.
    /// The first memory that is linked into this range must have this address.
    pub(crate) first_linked: Cell<u64>,
}

/// Physical memory that a device can reach.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    device: usize,
    address: u64,
    physical: u64,
    len: u64,
    stage: Stage,
}

/// The use of a mapping by the RDMA core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The core does not have the addresses yet.
    Made,
    /// The core has the addresses, but the device does not use them.
    Given,
    /// The device may use the mapping at any moment.
    Used,
}

impl Dma {
    fn new() -> Self {
        Self {
            mappings: Mutex::new(Vec::new()),
            // DMA addresses begin at a high address, so that they differ from all physical
            // addresses.
            last: Cell::new(1 << 40),
            first_linked: Cell::new(0),
        }
    }

    /// Maps physical memory, and returns the bus address. Returns [`None`] if mapping fails.
    pub(crate) fn map(&self, device: usize, physical: u64, len: u64) -> Option<u64> {
        let address = if model(device).direct {
            let reach = world().faults.reach.get();
            if reach.is_some_and(|end| physical + len > end) {
                return None;
            }
            physical
        } else {
            self.free(len)
        };
        self.map_at(device, address, physical, len)
            .then_some(address)
    }

    /// Returns the first of `len` free DMA addresses, aligned to the length, as an IOMMU does.
    /// Leaves a page free after each range, so that no range follows another range directly.
    fn free(&self, len: u64) -> u64 {
        let start = self
            .last
            .get()
            .next_multiple_of(len.max(4096).next_power_of_two());
        self.last.set(start + len + 4096);
        start
    }

    /// Allocates a range of DMA addresses into which several pieces can be mapped, and returns its
    /// first address. Returns [`None`] if the kernel of this world does not support such ranges.
    pub(crate) fn begin(&self, len: u64) -> Option<u64> {
        world().faults.ranges.get().then(|| self.free(len))
    }

    /// Frees a range of DMA addresses into which pieces can be mapped, and undoes the mappings in
    /// the range.
    pub(crate) fn end(&self, device: usize, address: u64, len: u64) {
        let mut mappings = self.mappings.lock().unwrap();
        let inside =
            |one: &Mapping| one.device == device && (address..address + len).contains(&one.address);
        for one in mappings.iter().filter(|one| inside(one)) {
            assert_ne!(
                one.stage,
                Stage::Used,
                "unmapped while the device may use it"
            );
        }
        let linked: u64 = mappings
            .iter()
            .filter(|one| inside(one))
            .map(|one| one.len)
            .sum();
        assert_eq!(linked, len, "bytes are undone that are not linked");
        mappings.retain(|one| !inside(one));
    }

    /// Maps physical memory to this address, unless mapping fails.
    pub(crate) fn map_at(&self, device: usize, address: u64, physical: u64, len: u64) -> bool {
        let mut mappings = self.mappings.lock().unwrap();
        if world().faults.mapping.fails("the device gets no address") {
            return false;
        }
        mappings.push(Mapping {
            device,
            address,
            physical,
            len,
            stage: Stage::Made,
        });
        true
    }

    pub(crate) fn unmap(&self, device: usize, address: u64, len: u64) {
        let mut mappings = self.mappings.lock().unwrap();
        let at = mappings
            .iter()
            .position(|one| (one.device, one.address, one.len) == (device, address, len))
            .expect("what is unmapped was not mapped");
        let in_use = mappings[at].stage == Stage::Used;
        assert!(!in_use, "unmapped while the device may use it");
        mappings.remove(at);
    }

    /// Records how the core uses the addresses of `table` from now on. Returns whether all of these
    /// addresses are mapped.
    pub(crate) fn set_use(&self, table: &abi::sg_table, stage: Stage) -> bool {
        let mut mappings = self.mappings.lock().unwrap();
        let mut all = true;
        for (address, len) in c::entries(table) {
            let mut found = 0;
            for mapping in mappings.iter_mut() {
                // An entry may be a part of one mapping, or may cover several mappings.
                let first = address.max(mapping.address);
                let last = (address + len).min(mapping.address + mapping.len);
                if first >= last {
                    continue;
                }
                found += last - first;
                assert!(
                    stage != Stage::Used || world().driver.pinned(mapping.physical, mapping.len),
                    "the device uses memory that is not pinned"
                );
                mapping.stage = stage;
            }
            all &= found == len;
        }
        all
    }

    /// Fails if memory is still mapped for a device when the device's last registration ends.
    pub(crate) fn assert_none(&self, device: usize) {
        let mappings = self.mappings.lock().unwrap();
        let left = mappings.iter().any(|one| one.device == device);
        assert!(
            !left || model(device).registrations.get() > 1,
            "a mapping outlives the release of its registration"
        );
    }

    /// Fails if the core has an address of this physical memory, which is about to get another
    /// owner.
    pub(crate) fn assert_unused(&self, physical: u64, len: u64) {
        for one in self.mappings.lock().unwrap().iter() {
            let touches = one.physical < physical + len && physical < one.physical + one.len;
            assert!(
                !touches || one.stage == Stage::Made,
                "unpinned while it is mapped for a device: {:?}",
                one.stage
            );
        }
    }
}

fn model<'a>(device: usize) -> &'a c::Device {
    // SAFETY: Devices exist until the end of the world.
    unsafe { &*(device as *const c::Device) }
}

/// Scatterlists. The model keeps the lists until the end of the run, so that it notices a use after
/// free.
pub(crate) struct Lists(Mutex<Vec<List>>);

/// The entries of a scatterlist, and whether the list has not been freed yet.
type List = (Box<[abi::scatterlist]>, bool);

impl Lists {
    fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn add(&self, count: u32) -> Option<*mut abi::scatterlist> {
        may_sleep("allocating a scatterlist");
        if !world().linux.allocate() {
            return None;
        }
        let mut list = vec![abi::scatterlist::default(); count as usize].into_boxed_slice();
        let first = list.as_mut_ptr();
        self.0.lock().unwrap().push((list, true));
        Some(first)
    }

    /// Frees a list. The kernel frees as many entries as the caller says, so none may be left.
    pub(crate) fn remove(&self, first: *const abi::scatterlist, count: u32) {
        self.with(first, |list| {
            assert_eq!(
                count as usize,
                list.0.len(),
                "entries of a scatterlist are left"
            );
            list.1 = false;
        });
        world().linux.deallocate();
    }

    /// Returns the entry after `entry`, whose list must be alive.
    pub(crate) fn next(&self, entry: *mut abi::scatterlist) -> *mut abi::scatterlist {
        let end = self.with(entry, |list| list.0.as_ptr_range().end);
        match entry.wrapping_add(1) {
            next if next.cast_const() < end => next,
            _ => std::ptr::null_mut(),
        }
    }

    /// Fails if a list that the core reads has been freed.
    pub(crate) fn read(&self, first: *const abi::scatterlist) {
        self.with(first, |_| ());
    }

    /// Calls `access` with the list that has the entry. Fails if the list has been freed.
    fn with<T>(&self, entry: *const abi::scatterlist, access: impl FnOnce(&mut List) -> T) -> T {
        let mut lists = self.0.lock().unwrap();
        let list = lists
            .iter_mut()
            .find(|(list, _)| list.as_ptr_range().contains(&entry))
            .expect("the entry belongs to no scatterlist");
        assert!(list.1, "a scatterlist is used that was freed");
        access(list)
    }
}
