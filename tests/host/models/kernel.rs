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
    pub(crate) pairs: Pairs,
    pub(crate) processes: Processes,
    pub(crate) listed: Listed,
    figures: Cell<[u64; 10]>,
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
            pairs: Pairs::default(),
            processes: Processes::default(),
            listed: Listed::default(),
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
        self.listed.assert_empty();
        assert!(
            self.dma.mappings.lock().unwrap().is_empty(),
            "mappings for a device are left"
        );
        assert_eq!(self.live.get(), 0, "memory is left");
        let figures = self.figures.get();
        assert!(self.pairs.0.borrow().is_empty(), "verdicts are left");
        assert!(self.processes.0.borrow().is_empty(), "processes are left");
        for gauge in [abi::NVPM_REGIONS, abi::NVPM_BYTES, abi::NVPM_LEFT_BEHIND] {
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

/// Verdicts on pairs of a GPU and a device. No order of look-ups matters, so it is not explored.
#[derive(Default)]
pub(crate) struct Pairs(RefCell<BTreeMap<(usize, usize), i32>>);

impl Pairs {
    /// The one GPU that there is.
    pub(crate) fn gpu(&self, uuid: *const u8) -> *mut u8 {
        may_sleep("remembering a GPU");
        uuid.cast_mut()
    }

    pub(crate) fn verdict(&self, gpu: usize, device: usize) -> i32 {
        match self.0.borrow().get(&(gpu, device)) {
            Some(&verdict) => verdict,
            None if world().faults.unasked.get() => 0,
            None => abi::NVPM_OURS as i32,
        }
    }

    pub(crate) fn add(&self, gpu: usize, device: usize, verdict: i32) -> bool {
        may_sleep("remembering a verdict");
        if !world().kernel.allocate() {
            return false;
        }
        if self.0.borrow_mut().insert((gpu, device), verdict).is_some() {
            world().kernel.deallocate();
        }
        true
    }

    pub(crate) fn forget(&self) {
        let mut pairs = self.0.borrow_mut();
        pairs.keys().for_each(|_| world().kernel.deallocate());
        pairs.clear();
    }

    /// How many are known.
    pub(crate) fn known(&self) -> usize {
        self.0.borrow().len()
    }
}

/// What processes have left behind, by their number and birth: registrations, and pages of them.
#[derive(Default)]
pub(crate) struct Processes(RefCell<BTreeMap<(i32, u64), (u32, u64)>>);

impl Processes {
    pub(crate) fn leaves(&self, process: &abi::nvpm_process, pages: u64) {
        let mut processes = self.0.borrow_mut();
        let left = processes.entry((process.number, process.born)).or_default();
        left.0 += 1;
        left.1 += pages;
    }

    pub(crate) fn freed(&self, process: &abi::nvpm_process, pages: u64) {
        let key = (process.number, process.born);
        let mut processes = self.0.borrow_mut();
        let left = processes.get_mut(&key).expect("the process is known");
        left.0 -= 1;
        left.1 -= pages;
        if left.0 == 0 {
            assert_eq!(left.1, 0, "pages without registrations");
            processes.remove(&key);
        }
    }

    /// Registrations and pages that it has left behind.
    pub(crate) fn left(&self, process: &abi::nvpm_process) -> (u32, u64) {
        let processes = self.0.borrow();
        let left = processes.get(&(process.number, process.born));
        left.copied().unwrap_or_default()
    }

    /// The same of all processes.
    pub(crate) fn all(&self) -> (u32, u64) {
        let processes = self.0.borrow();
        let add = |sum: (u32, u64), one: &(u32, u64)| (sum.0 + one.0, sum.1 + one.1);
        processes.values().fold((0, 0), add)
    }
}

/// What is told of registrations: under a number the client, the state, and where it stands. Nobody
/// acts on it, so its order is not explored.
#[derive(Default)]
pub(crate) struct Listed {
    all: RefCell<BTreeMap<usize, (u32, abi::nvpm_region_state, usize)>>,
    last: Cell<usize>,
}

impl Listed {
    pub(crate) fn begin(&self, client: u32, place: usize) -> usize {
        let number = self.last.get() + 1;
        self.last.set(number);
        let new = (client, abi::NVPM_REGION_PINNING, place);
        self.all.borrow_mut().insert(number, new);
        number
    }

    pub(crate) fn is(&self, number: usize, state: abi::nvpm_region_state, place: usize) {
        let mut all = self.all.borrow_mut();
        let one = all.get_mut(&number).expect("it is in the list");
        assert_eq!(one.2, place, "what is in the list has moved");
        one.1 = state;
    }

    pub(crate) fn end(&self, number: usize, place: usize) {
        let gone = self.all.borrow_mut().remove(&number);
        let gone = gone.expect("it is in the list");
        assert_eq!(gone.2, place, "what is in the list has moved");
    }

    /// Clients and states, oldest first.
    pub(crate) fn all(&self) -> Vec<(u32, abi::nvpm_region_state)> {
        let all = self.all.borrow();
        all.values().map(|one| (one.0, one.1)).collect()
    }

    pub(crate) fn assert_empty(&self) {
        assert!(self.all().is_empty(), "a region that is gone is listed");
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
        let address = if is_direct(device) {
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

    /// Room for so many bytes: a page between any two, so that none is a neighbour of another.
    fn free(&self, len: u64) -> u64 {
        self.last.replace(self.last.get() + len + 4096)
    }

    /// Room that pieces will share, in a world that has such a thing.
    pub(crate) fn begin(&self, len: u64) -> Option<u64> {
        world().faults.ranges.get().then(|| self.free(len))
    }

    /// Gives up room that pieces share, and what is in it.
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
        mappings.retain(|one| !inside(one));
    }

    /// Maps it to that address, unless it cannot be had.
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

    /// What the core does with the addresses of `table` from here on. Returns whether they are all
    /// there.
    pub(crate) fn set_use(&self, table: &abi::sg_table, stage: Stage) -> bool {
        let mut mappings = self.mappings.lock().unwrap();
        let mut all = true;
        for (address, len) in abi::entries(table) {
            let mut found = 0;
            for mapping in mappings.iter_mut() {
                // An entry is part of a mapping, or has many in it.
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

fn is_direct(device: usize) -> bool {
    // SAFETY: Devices stay until the end.
    unsafe { (*(device as *const abi::device)).direct }
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
