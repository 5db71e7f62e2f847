// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! All that there is in one run of a scenario: the models, the tasks, and the trail of what
//! happened.

use std::{
    borrow::Cow,
    cell::{Cell, RefCell},
    rc::Rc,
};

use loom::thread::{self, JoinHandle, ThreadId};

use crate::{
    abi,
    driver::Driver,
    linux::Linux,
    rdma::{Kind, Rdma},
};

thread_local! {
    // loom runs the threads of a model on one thread of the system, so this is theirs together.
    static WORLD: RefCell<Option<Rc<World>>> = const { RefCell::new(None) };
}

/// What goes wrong in this world beside the order of things; a scenario sets it.
#[derive(Default)]
pub(crate) struct Faults {
    /// As many allocations from now on succeed, then one fails.
    pub(crate) allocation: Countdown,
    /// As many steps of loading succeed that are no allocations, then one fails.
    pub(crate) step: Countdown,
    /// nvidia_peermem is loaded.
    pub(crate) peermem: Cell<bool>,
    /// As many mappings for a device succeed, then one fails.
    pub(crate) mapping: Countdown,
    /// As many requests to pin succeed, then the driver has no memory for one.
    pub(crate) get: Countdown,
    /// As many requests to pin until told to unpin succeed, then the driver has no memory for one,
    /// and calls that EIO.
    pub(crate) persistent: Countdown,
    /// As many requests to unpin succeed, then the driver has no memory for one.
    pub(crate) put: Countdown,
    /// The driver's answer to requests to pin GPU memory, if it is an error.
    pub(crate) refusal: Cell<i32>,
    /// The driver's answer to requests to pin until it is told to unpin, if it is an error.
    pub(crate) no_persistent: Cell<i32>,
    /// The driver has not been asked about any pair yet.
    pub(crate) unasked: Cell<bool>,
    /// The driver's answer to requests to map, if it is an error.
    pub(crate) refuses_to_map: Cell<i32>,
    /// The only GPU that this answer is about, if it is not about all.
    pub(crate) refused_gpu: Cell<Option<u8>>,
    /// The driver gives physical addresses with this added.
    pub(crate) bus_offset: Cell<Option<u64>>,
    /// GPU memory is RAM to the kernel.
    pub(crate) coherent: Cell<bool>,
    /// It will be, when the kernel uses it.
    pub(crate) offline: Cell<bool>,
    /// Devices that use physical addresses reach none from this one on.
    pub(crate) reach: Cell<Option<u64>>,
    /// Many pieces can share a range of addresses.
    pub(crate) ranges: Cell<bool>,
    /// The size of pages that the driver claims, by its name for sizes. They are of 64 KiB.
    pub(crate) page_size: Cell<u32>,
    /// The driver maps in pages of 4 KiB for a device, also where it has pinned larger ones.
    pub(crate) small_mapped_pages: Cell<bool>,
    /// The driver's page tables are of a version that nobody knows.
    pub(crate) unknown_table: Cell<bool>,
    /// The same of its mappings.
    pub(crate) unknown_mapping: Cell<bool>,
    /// What is linked in a range cannot be made visible to the device.
    pub(crate) sync: Cell<bool>,
    /// As many pages less than there are claims the driver.
    pub(crate) hidden_pages: Cell<u32>,
    /// The driver uses the address of a freed page table again at once.
    pub(crate) reuse_tables: Cell<bool>,
}

/// Lets one of many fail.
#[derive(Default)]
pub(crate) struct Countdown(Cell<Option<u32>>);

impl Countdown {
    /// As many succeed from now on, then one fails.
    pub(crate) fn set(&self, successes: u32) {
        self.0.set(Some(successes));
    }

    /// All succeed from now on.
    pub(crate) fn clear(&self) {
        self.0.set(None);
    }

    /// Does something that does not count.
    pub(crate) fn without<T>(&self, work: impl FnOnce() -> T) -> T {
        let left = self.0.take();
        let result = work();
        self.0.set(left);
        result
    }

    /// Whether the one to fail is still to come.
    pub(crate) fn is_set(&self) -> bool {
        self.0.get().is_some()
    }

    /// Whether this one fails.
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

/// See the module's description.
pub(crate) struct World {
    pub(crate) faults: Faults,
    pub(crate) driver: Driver,
    pub(crate) rdma: Rdma,
    pub(crate) linux: Linux,
    /// The last entry of a thread is what it is now.
    tasks: RefCell<Vec<(ThreadId, Rc<Task>)>>,
    trail: RefCell<Vec<(&'static str, Cow<'static, str>)>>,
}

/// A thread of the kernel.
pub(crate) struct Task {
    pub(crate) name: &'static str,
    pub(crate) process: i32,
    pub(crate) thread: i32,
    /// Spin locks that it holds: with one it must not sleep.
    pub(crate) spinning: Cell<u32>,
    /// It is in a callback of the driver, and so holds the driver's lock.
    pub(crate) in_callback: Cell<bool>,
    /// It is about to end.
    pub(crate) exiting: Cell<bool>,
    /// Its user.
    pub(crate) uid: Cell<u32>,
    /// When its process began.
    pub(crate) born: Cell<u64>,
}

/// The world of the model that runs.
pub(crate) fn world() -> Rc<World> {
    WORLD.with(|world| {
        let world = world.borrow();
        world.clone().expect("no scenario is running")
    })
}

/// The task that runs.
pub(crate) fn task() -> Rc<Task> {
    let id = thread::current().id();
    let world = world();
    let tasks = world.tasks.borrow();
    let task = tasks.iter().rev().find(|(thread, _)| *thread == id);
    task.expect("it has begun").1.clone()
}

/// Adds to the trail.
pub(crate) fn note(what: impl Into<Cow<'static, str>>) {
    let name = task().name;
    world().trail.borrow_mut().push((name, what.into()));
}

/// Fails if the task must not sleep, for `what` may.
pub(crate) fn may_sleep(what: &str) {
    assert_eq!(
        task().spinning.get(),
        0,
        "{what} may sleep, but a spin lock is held"
    );
}

/// Runs `scenario` in a new world; nothing may be left of it at the end.
pub(crate) fn run(core: Kind, scenario: impl Fn()) {
    let new = Rc::new(World {
        faults: Faults {
            page_size: Cell::new(abi::NVIDIA_P2P_PAGE_SIZE_64KB),
            ..Faults::default()
        },
        driver: Driver::new(),
        rdma: Rdma::new(core),
        linux: Linux::new(),
        tasks: RefCell::default(),
        trail: RefCell::default(),
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

/// Runs `work` in this thread as if it were one of `process`.
pub(crate) fn as_process<T>(process: i32, work: impl FnOnce() -> T) -> T {
    let before = task();
    add_task("main", process, before.thread);
    let result = work();
    let id = thread::current().id();
    world().tasks.borrow_mut().push((id, before));
    result
}

/// What happened so far in the model that runs on this thread of the system, if one does.
pub(crate) fn trail() -> Option<String> {
    WORLD.with(|world| {
        let world = world.try_borrow().ok()?;
        let trail = world.as_ref()?.trail.try_borrow().ok()?;
        let lines = trail.iter().map(|(who, what)| format!("  {who}: {what}\n"));
        Some(lines.collect())
    })
}
