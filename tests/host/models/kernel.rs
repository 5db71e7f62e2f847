// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What the module uses of the kernel: memory, its own reference count, the table of ids, the
//! gate, and the DMA layer with scatterlists.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    ffi::c_void,
    rc::Rc,
};

use loom::sync::{atomic::AtomicUsize, Condvar, Mutex};

use crate::{
    abi,
    world::{may_sleep, note, world},
};

/// See the module's description.
pub(crate) struct Kernel {
    pub(crate) module: Module,
    pub(crate) ids: Ids,
    pub(crate) gate: Gate,
    pub(crate) dma: Dma,
    pub(crate) lists: Lists,
    figures: Cell<[u64; 8]>,
    live: Cell<u32>,
    atomics: RefCell<HashMap<usize, Rc<AtomicUsize>>>,
}

impl Kernel {
    pub(crate) fn new() -> Self {
        Self {
            module: Module::new(),
            ids: Ids::new(),
            gate: Gate::new(),
            dma: Dma::new(),
            lists: Lists::new(),
            figures: Cell::default(),
            live: Cell::new(0),
            atomics: RefCell::default(),
        }
    }

    /// Whether there is memory for one more object.
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

    /// One of the figures in sysfs changes. No thread acts on one, so their order is not explored.
    pub(crate) fn count(&self, figure: abi::nvpm_figure, by: u64) {
        let mut figures = self.figures.get();
        figures[figure] = figures[figure].wrapping_add(by);
        self.figures.set(figures);
    }

    /// The module's memory is there, its statics are as they begin.
    pub(crate) fn load_module(&self) {
        *self.module.state.lock().unwrap() = ModuleState::default();
        self.atomics.borrow_mut().clear();
    }

    /// What stands for the static at `address` in this world.
    pub(crate) fn atomic(&self, address: usize, first: usize) -> Rc<AtomicUsize> {
        let mut atomics = self.atomics.borrow_mut();
        let atomic = atomics
            .entry(address)
            .or_insert_with(|| Rc::new(AtomicUsize::new(first)));
        atomic.clone()
    }

    /// Nothing is left.
    pub(crate) fn assert_over(&self) {
        assert_eq!(
            self.module.state.lock().unwrap().references,
            0,
            "module references are left"
        );
        assert!(self.ids.objects.lock().unwrap().is_empty(), "ids are left");
        assert!(
            self.dma.mappings.lock().unwrap().is_empty(),
            "mappings for a device are left"
        );
        assert_eq!(self.live.get(), 0, "memory is left");
        let figures = self.figures.get();
        for gauge in [abi::NVPM_REGIONS, abi::NVPM_BYTES] {
            assert_eq!(figures[gauge], 0, "a region that is gone is counted still");
        }
    }
}

/// The module's own life: how many need it, and whether its code is still there.
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

    /// Waits until nobody needs the module; from here on nobody gets a reference.
    pub(crate) fn begin_to_go(&self) {
        let mut state = self.state.lock().unwrap();
        while state.references > 0 {
            state = self.unused.wait(state).unwrap();
        }
        state.going = true;
    }

    /// The module's memory is given back.
    pub(crate) fn end_to_go(&self) {
        note("the module is gone");
        self.state.lock().unwrap().gone = true;
    }

    /// Something of the module runs, be it its last instruction.
    pub(crate) fn runs(&self, what: &str) {
        let gone = self.state.lock().unwrap().gone;
        assert!(!gone, "{what} runs in a module that is gone");
    }
}

/// Objects under numbers.
pub(crate) struct Ids {
    objects: Mutex<BTreeMap<u64, *const c_void>>,
    last: Cell<u64>,
}

impl Ids {
    fn new() -> Self {
        Self {
            objects: Mutex::new(BTreeMap::new()),
            last: Cell::new(0),
        }
    }

    pub(crate) fn add(&self, object: *const c_void) -> u64 {
        may_sleep("adding an id");
        // The kernel's table takes memory for the entry and gives it back with the entry.
        if !world().kernel.allocate() {
            return 0;
        }
        world().kernel.deallocate();
        let id = self.last.get() + 1;
        self.last.set(id);
        self.objects.lock().unwrap().insert(id, object);
        id
    }

    pub(crate) fn take(&self, id: u64) -> *mut c_void {
        let object = self.objects.lock().unwrap().remove(&id);
        object.map_or(std::ptr::null_mut(), <*const c_void>::cast_mut)
    }

    pub(crate) fn has(&self, id: u64) -> bool {
        self.objects.lock().unwrap().contains_key(&id)
    }
}

/// A lock for sharers or one alone, in which one who waits to be alone holds up new sharers.
pub(crate) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    sharers: u32,
    alone: bool,
    wanting: u32,
}

impl Gate {
    fn new() -> Self {
        Self {
            state: Mutex::new(GateState::default()),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn enter(&self, exclusive: bool) {
        may_sleep("entering the gate");
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
        }
    }

    pub(crate) fn leave(&self, exclusive: bool) {
        let mut state = self.state.lock().unwrap();
        if exclusive {
            state.alone = false;
        } else {
            state.sharers -= 1;
        }
        self.changed.notify_all();
    }
}

/// The DMA layer.
pub(crate) struct Dma {
    mappings: Mutex<Vec<Mapping>>,
    last: Cell<u64>,
}

/// Physical addresses that a device reaches.
#[derive(Clone, Copy, Debug)]
struct Mapping {
    device: usize,
    address: u64,
    physical: u64,
    len: u64,
    stage: Stage,
}

/// What the RDMA core knows of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing yet.
    Made,
    /// It has the addresses, the device does not use them.
    Given,
    /// The device may use it at any moment.
    Used,
}

impl Dma {
    fn new() -> Self {
        Self {
            mappings: Mutex::new(Vec::new()),
            // Where the addresses begin that devices see: not where physical ones do.
            last: Cell::new(1 << 40),
        }
    }

    /// The bus address of physical memory, unless there is none to be had.
    pub(crate) fn map(&self, device: usize, physical: u64, len: u64) -> Option<u64> {
        let mut mappings = self.mappings.lock().unwrap();
        if world().faults.mapping.fails("the device gets no address") {
            return None;
        }
        let address = self.last.get();
        // A page between any two, so that none is a neighbour of another.
        self.last.set(address + len + 4096);
        mappings.push(Mapping {
            device,
            address,
            physical,
            len,
            stage: Stage::Made,
        });
        Some(address)
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

    /// What the core does with the addresses of `table` from here on. Returns whether they are all
    /// there.
    pub(crate) fn set_use(&self, table: &abi::sg_table, stage: Stage) -> bool {
        let mut mappings = self.mappings.lock().unwrap();
        let mut all = true;
        for (address, len) in abi::entries(table) {
            let mapping = mappings
                .iter_mut()
                .find(|one| one.address <= address && address + len <= one.address + one.len);
            let Some(mapping) = mapping else {
                all = false;
                continue;
            };
            assert!(
                stage != Stage::Used || world().driver.pinned(mapping.physical, mapping.len),
                "the device uses memory that is not pinned"
            );
            mapping.stage = stage;
        }
        all
    }

    /// Fails if anything is mapped for a device.
    pub(crate) fn assert_none(&self, device: usize) {
        let mappings = self.mappings.lock().unwrap();
        let left = mappings.iter().any(|one| one.device == device);
        assert!(!left, "a mapping outlives the release of its registration");
    }

    /// Fails if the core has an address of physical memory that is about to become another's.
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

/// Scatterlists. They stay in memory until the end, so that a use after free is seen.
pub(crate) struct Lists(Mutex<Vec<(Box<[abi::scatterlist]>, bool)>>);

impl Lists {
    fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(crate) fn add(&self, count: u32) -> Option<*mut abi::scatterlist> {
        if !world().kernel.allocate() {
            return None;
        }
        let mut list = vec![abi::scatterlist::default(); count as usize].into_boxed_slice();
        let first = list.as_mut_ptr();
        self.0.lock().unwrap().push((list, true));
        Some(first)
    }

    pub(crate) fn remove(&self, first: *const abi::scatterlist) {
        self.set(first, false);
        world().kernel.deallocate();
    }

    /// Somebody reads a list.
    pub(crate) fn read(&self, first: *const abi::scatterlist) {
        self.set(first, true);
    }

    fn set(&self, first: *const abi::scatterlist, alive: bool) {
        let mut lists = self.0.lock().unwrap();
        let found = lists.iter_mut().find(|(list, _)| list.as_ptr() == first);
        let (_, was_alive) = found.expect("this is no scatterlist");
        assert!(*was_alive, "a scatterlist is used that was freed");
        *was_alive = alive;
    }
}
