// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The state of one run of a scenario: the models, the tasks, and the trail of events.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
};

use loom::thread::{self, JoinHandle, ThreadId};

use crate::{
    abi, c,
    counts::Counts,
    driver::Driver,
    linux::Linux,
    rdma::{Kind, Rdma},
};

thread_local! {
    // loom runs all threads of a model on one system thread, so the threads share this variable.
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// The faults and the unusual answers of this world's models. A scenario sets them. A [`Countdown`]
/// makes one call fail.
#[derive(Default)]
pub(crate) struct Faults {
    /// Lets an allocation fail.
    pub(crate) allocation: Countdown,
    /// Lets a step of loading the module fail. Allocations do not count as steps.
    pub(crate) step: Countdown,
    /// Another module that serves GPU memory is loaded.
    pub(crate) other_serves: Cell<bool>,
    /// Lets a mapping for a device fail.
    pub(crate) mapping: Countdown,
    /// Lets a request for a revocable pin fail. The driver then reports a lack of memory.
    pub(crate) get: Countdown,
    /// Lets a request for a persistent pin fail. The driver then reports a lack of memory as EIO.
    pub(crate) persistent: Countdown,
    /// Lets a request to unpin fail. The driver then reports a lack of memory.
    pub(crate) put: Countdown,
    /// The error with which the driver answers each request to pin GPU memory. If it is 0, the
    /// driver accepts the requests.
    pub(crate) refusal: Cell<i32>,
    /// The error with which the driver answers each request for a persistent pin. If it is 0, the
    /// driver accepts the requests.
    pub(crate) no_persistent: Cell<i32>,
    /// The length of requests for which the driver has no memory.
    pub(crate) no_memory_for: Cell<u64>,
    /// The module has not asked the driver about any pair yet.
    pub(crate) unasked: Cell<bool>,
    /// The error with which the driver answers each request to map. If it is 0, the driver accepts
    /// the requests.
    pub(crate) refuses_to_map: Cell<i32>,
    /// The only GPU whose memory the driver refuses to map, or [`None`] if it refuses all GPUs.
    pub(crate) refused_gpu: Cell<Option<u8>>,
    /// The driver's bus addresses are the physical addresses plus this number.
    pub(crate) bus_offset: Cell<Option<u64>>,
    /// The kernel treats GPU memory as RAM.
    pub(crate) coherent: Cell<bool>,
    /// The kernel does not use the GPU memory as RAM yet.
    pub(crate) offline: Cell<bool>,
    /// Devices that use physical addresses reach only addresses below this address.
    pub(crate) reach: Cell<Option<u64>>,
    /// The kernel can map several pieces into one range of DMA addresses.
    pub(crate) ranges: Cell<bool>,
    /// The page size that the driver reports, as a value of `nvidia_p2p_page_size_type`. The real
    /// size is always 64 KiB.
    pub(crate) page_size: Cell<u32>,
    /// The driver maps in pages of 4 KiB for a device, even if it has pinned larger pages.
    pub(crate) small_mapped_pages: Cell<bool>,
    /// The driver's page tables have a version that the module does not know.
    pub(crate) unknown_table: Cell<bool>,
    /// The driver's mappings have a version that the module does not know.
    pub(crate) unknown_mapping: Cell<bool>,
    /// The last step of mapping pieces into a range makes the pieces visible to the device. This
    /// step fails.
    pub(crate) sync: Cell<bool>,
    /// The number of pinned pages that the driver does not report.
    pub(crate) hidden_pages: Cell<u32>,
    /// The number of mapped pages that the driver does not report.
    pub(crate) hidden_mapped_pages: Cell<u32>,
    /// The driver reports success, but stores NULL in place of the page table. Nothing is pinned.
    pub(crate) no_table: Cell<bool>,
    /// The driver's page tables have no array of pages.
    pub(crate) no_pages: Cell<bool>,
    /// The driver reports success, but stores NULL in place of the mapping. Nothing is mapped.
    pub(crate) no_mapping: Cell<bool>,
    /// The driver's mappings have no array of addresses.
    pub(crate) no_addresses: Cell<bool>,
    /// The number that the driver returns after it has unmapped memory.
    pub(crate) unmapped: Cell<i32>,
    /// The core registers a client that can be revoked, but gives the client no function that
    /// revokes registrations.
    pub(crate) no_invalidate: Cell<bool>,
    /// The number that the core returns after it has revoked a registration.
    pub(crate) invalidated: Cell<i32>,
    /// The driver gives the address of a freed page table to the next page table.
    pub(crate) reuse_tables: Cell<bool>,
}

/// Lets a number of calls succeed, and then lets one call fail.
#[derive(Default)]
pub(crate) struct Countdown(Cell<Option<u32>>);

impl Countdown {
    /// Lets the next `successes` calls succeed, and then one call fail.
    pub(crate) fn set(&self, successes: u32) {
        self.0.set(Some(successes));
    }

    /// Lets all calls succeed from now on.
    pub(crate) fn clear(&self) {
        self.0.set(None);
    }

    /// Calls `work`, and does not count the calls that `work` makes.
    pub(crate) fn without<T>(&self, work: impl FnOnce() -> T) -> T {
        let left = self.0.take();
        let result = work();
        self.0.set(left);
        result
    }

    /// Tells whether a failure is still to come.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Tells whether this call fails.
    pub(crate) fn fails(&self, what: &'static str) -> bool {
        let fails = self.0.get() == Some(0);
        self.0
            .set(self.0.get().and_then(|left| left.checked_sub(1)));
        if fails {
            note(what);
        }
        fails
    }
}

/// The state of one run. See the description of this file.
pub(crate) struct World {
    pub(crate) faults: Faults,
    pub(crate) driver: Driver,
    pub(crate) rdma: Rdma,
    pub(crate) linux: Linux,
    pub(crate) counts: Counts,
    /// The tasks of the threads. A thread may have several entries. Its last entry is its current
    /// task.
    tasks: RefCell<Vec<(ThreadId, Rc<Task>)>>,
    trail: RefCell<Vec<(&'static str, Cow<'static, str>)>>,
    watched: RefCell<Option<Vec<Watched>>>,
}

/// An event, and the state of each registration in the list at that moment.
pub(crate) type Watched = (Cow<'static, str>, Vec<abi::nvpm_region_state>);

/// A thread of the kernel.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) process: i32,
    pub(crate) thread: i32,
    /// The number of spin locks that the task holds. The task may sleep only if the number is 0.
    pub(crate) spinning: Cell<u32>,
    /// The task is running a callback of the driver. During a callback the task also holds the
    /// driver's lock.
    pub(crate) in_callback: Cell<bool>,
    /// The process of the task is about to end.
    pub(crate) exiting: Cell<bool>,
    /// The user of the task.
    pub(crate) uid: Cell<u32>,
    /// The time at which the process of the task began.
    pub(crate) born: Cell<u64>,
}

/// Returns the world of the running model.
pub(crate) fn world() -> Rc<World> {
    WORLD.with(|world| {
        let world = world.borrow();
        world.clone().expect("no scenario is running")
    })
}

/// Returns the running task.
pub(crate) fn task() -> Rc<Task> {
    let id = thread::current().id();
    let world = world();
    let tasks = world.tasks.borrow();
    let task = tasks.iter().rev().find(|(thread, _)| *thread == id);
    task.expect("each thread has a task").1.clone()
}

/// Adds an event to the trail. If a scenario watches the list of registrations, also records the
/// states in the list at this moment.
pub(crate) fn note(what: impl Into<Cow<'static, str>>) {
    let (name, what, world) = (task().name, what.into(), world());
    if let Some(watched) = world.watched.borrow_mut().as_mut() {
        let states = c::listed().into_iter().map(|one| one.state.into());
        watched.push((what.clone(), states.collect()));
    }
    world.trail.borrow_mut().push((name, what));
}

/// Returns the events while `work` runs, each with the states of all registrations.
pub(crate) fn watched(work: impl FnOnce()) -> Vec<Watched> {
    *world().watched.borrow_mut() = Some(Vec::new());
    work();
    let watched = world().watched.borrow_mut().take();
    watched.expect("it was made before")
}

/// Fails if the task must not sleep, because `what` may sleep.
pub(crate) fn may_sleep(what: &str) {
    assert_eq!(
        task().spinning.get(),
        0,
        "{what} may sleep, but a spin lock is held"
    );
}

/// Runs `scenario` in a new world, and checks that nothing is left at the end.
pub(crate) fn run(core: Kind, scenario: impl Fn()) {
    let new = Rc::new(World {
        faults: Faults {
            page_size: Cell::new(abi::NVIDIA_P2P_PAGE_SIZE_64KB),
            ..Faults::default()
        },
        driver: Driver::new(),
        rdma: Rdma::new(core),
        linux: Linux::new(),
        counts: Counts::default(),
        tasks: RefCell::default(),
        trail: RefCell::default(),
        watched: RefCell::default(),
    });
    WORLD.with(|world| *world.borrow_mut() = Some(new));
    add_task("main", 1, 1);
    scenario();
    let world = world();
    world.rdma.assert_over();
    world.driver.assert_over();
    world.linux.assert_over();
    WORLD.with(|world| world.borrow_mut().take());
}

/// The user of most tasks.
pub(crate) const USER: u32 = 1000;

fn add_task(name: &'static str, process: i32, number: i32) {
    let task = Task {
        name,
        process,
        thread: number,
        spinning: Cell::new(0),
        in_callback: Cell::new(false),
        exiting: Cell::new(false),
        uid: Cell::new(USER),
        born: Cell::new(1),
    };
    let id = thread::current().id();
    world().tasks.borrow_mut().push((id, Rc::new(task)));
}

/// Starts `work` as a thread of `process`.
pub(crate) fn spawn<T: 'static>(
    name: &'static str,
    process: i32,
    work: impl FnOnce() -> T + 'static,
) -> JoinHandle<T> {
    thread::spawn(move || {
        let number = 100 + world().tasks.borrow().len() as i32;
        add_task(name, process, number);
        work()
    })
}

/// Runs `work` in this thread as if the thread belonged to `process`.
pub(crate) fn as_process<T>(process: i32, work: impl FnOnce() -> T) -> T {
    let before = task();
    add_task("main", process, before.thread);
    let result = work();
    let id = thread::current().id();
    world().tasks.borrow_mut().push((id, before));
    result
}

/// Returns the events so far, if a model runs in this system thread.
pub(crate) fn trail() -> Option<String> {
    WORLD.with(|world| {
        let world = world.try_borrow().ok()?;
        let trail = world.as_ref()?.trail.try_borrow().ok()?;
        let lines = trail.iter().map(|(who, what)| format!("  {who}: {what}\n"));
        Some(lines.collect())
    })
}
