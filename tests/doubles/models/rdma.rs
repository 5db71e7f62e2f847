// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A model of the RDMA core's contract, for each of the three kinds of cores that support peer
//! memory.
//!
//! The guests have another double of the core's part for peer memory, `tests/doubles/core`, inside the
//! kernel's own RDMA core. loom cannot switch threads inside that code, because it is C, and guests
//! see only few of the orders in which threads may run. This model has only the locks that the core
//! takes, and the steps by which the core registers and deregisters memory.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    ffi::c_void,
    rc::Rc,
};

use loom::sync::{Condvar, Mutex};

use crate::{
    abi::{self, device, nvpm_client, peer_memory_client, sg_table},
    c::{entries, Device},
    driver::FIRST_GPU,
    linux::{self, Stage},
    map_type::{self, MapType},
    page_table::Gpu,
    world::{may_sleep, note, task, world},
};

const EFAULT: i32 = -14;
const EINVAL: i32 = -22;
/// The ticket of a registration that cannot be invalidated.
const NO_TICKET: u64 = u32::MAX as u64;

/// The kinds of cores. They differ in their use of locks and in the steps of an invalidation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// MLNX_OFED 4.0 to 5.0. The core holds no lock during a registration. During an invalidation,
    /// the core deregisters completely before the client's call to invalidate returns.
    G2,
    /// MLNX_OFED 5.1 to 5.4-2. The core holds the mapping lock during registration and
    /// deregistration. During an invalidation, the core calls `dma_unmap` and `put_pages` before
    /// the client's call to invalidate returns.
    G3a,
    /// Later cores. The core holds the mapping lock during registration. After an invalidation, the
    /// core calls only `release`.
    #[default]
    G3b,
}

pub(crate) const KINDS: [Kind; 3] = [Kind::G2, Kind::G3a, Kind::G3b];

/// The model of the core. See the description of this file.
pub(crate) struct Rdma {
    pub(crate) kind: Kind,
    /// The list of clients. The core holds the list's lock while it calls `acquire`.
    clients: Mutex<Vec<Rc<Client>>>,
    /// The registrations that can be invalidated. The key is the ticket, the core's number for a
    /// registration. The first ticket is 0.
    tickets: Mutex<BTreeMap<u64, Rc<Registration>>>,
    next_ticket: Cell<u64>,
    #[expect(clippy::vec_box, reason = "others know their addresses")]
    devices: RefCell<Vec<Box<Device>>>,
}

/// The core's record of a client.
pub(crate) struct Client {
    calls: *const peer_memory_client,
    revocable: bool,
    /// G2: the client's lock.
    lock: Mutex<()>,
    ticket_gone: Condvar,
    registrations: Mutex<u32>,
    unused: Condvar,
    freed: Mutex<bool>,
}

/// A registration of memory that a client has acquired.
pub(crate) struct Registration {
    client: Rc<Client>,
    context: *mut c_void,
    device: *mut device,
    ticket: u64,
    table: Cell<sg_table>,
    /// G3: the mapping lock.
    state: Mutex<State>,
    deregistered: Condvar,
    released: Cell<bool>,
}

#[derive(Default)]
struct State {
    /// Only in G3: the device can reach the memory.
    mapped: bool,
    /// Only in G2: the registration is complete.
    active: bool,
    /// Only in G2: an invalidation came before the registration was complete.
    invalidated: bool,
    /// Only in G2: a thread is deregistering, or has deregistered.
    claimed: bool,
    over: bool,
}

/// A request of an application. It also says in which ways the core and the device must fail in
/// this scenario.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    pub(crate) address: u64,
    pub(crate) len: u64,
    /// The core asks only clients that never revoke memory, as it does for the memory of a queue.
    pub(crate) cannot_be_revoked: bool,
    /// The device's driver fails after all memory is mapped.
    pub(crate) device_fails: bool,
    /// The device is not on a PCI bus.
    pub(crate) no_pci: bool,
    /// The device's driver never reports that a registration is complete.
    pub(crate) never_complete: bool,
    /// The device uses physical addresses.
    pub(crate) direct: bool,
    /// The longest entry that the device accepts is half of the GPU's page.
    pub(crate) short_entries: bool,
    /// The device, or [`None`] for a new device.
    pub(crate) device: Option<*mut device>,
}

impl Client {
    fn calls(&self) -> &peer_memory_client {
        // SAFETY: The module keeps the structure valid until the client is unregistered.
        unsafe { &*self.calls }
    }

    fn acquire(&self, request: Request) -> Option<*mut c_void> {
        let acquire = self.calls().acquire.expect("a client has acquire");
        let mut context = std::ptr::null_mut();
        let (address, len) = (request.address as usize, request.len as usize);
        let none = std::ptr::null_mut();
        // SAFETY: The arguments follow the contract of `acquire`.
        let mine = unsafe { acquire(address, len, none, none.cast(), &mut context) };
        world().linux.module.runs("the end of acquire");
        assert!(matches!(mine, 0 | 1), "acquire returns {mine}");
        (mine > 0).then_some(context)
    }
}

impl Registration {
    pub(crate) fn device(&self) -> *mut device {
        self.device
    }

    fn model(&self) -> &Device {
        // SAFETY: Devices exist until the end of the world.
        unsafe { &*self.device.cast() }
    }

    pub(crate) fn remove_device(&self) {
        remove_device(self.device);
    }

    /// Returns the number of references to the device.
    pub(crate) fn device_references(&self) -> i32 {
        self.model().references.get()
    }

    /// Changes the number of registrations for the device.
    fn count(&self, change: i32) {
        let count = &self.model().registrations;
        count.set(count.get().wrapping_add_signed(change));
    }

    /// Returns how many entries the scatterlist has.
    pub(crate) fn entries(&self) -> usize {
        entries(&self.table.get()).len()
    }

    /// Returns the address of the first entry.
    pub(crate) fn bus_address(&self) -> u64 {
        entries(&self.table.get())[0].0
    }

    /// Tells whether each entry begins where the entry before it ends.
    pub(crate) fn is_contiguous(&self) -> bool {
        let entries = entries(&self.table.get());
        entries
            .windows(2)
            .all(|two| two[0].0 + two[0].1 == two[1].0)
    }

    fn get_pages(&self, request: Request) -> Result<(), i32> {
        let get_pages = self
            .client
            .calls()
            .get_pages
            .expect("a client has get_pages");
        let (address, len) = (request.address as usize, request.len as usize);
        note("get_pages");
        let table = std::ptr::null_mut();
        // SAFETY: The arguments follow the contract of `get_pages`.
        check(unsafe { get_pages(address, len, 1, 1, table, self.context, self.ticket) })
            .inspect_err(|&errno| world().counts.failed(errno))
    }

    fn dma_map(&self) -> Result<(), i32> {
        let dma_map = self.client.calls().dma_map.expect("a client has dma_map");
        let mut count = 0;
        note("dma_map");
        // SAFETY: The arguments follow the contract of `dma_map`.
        let ret = unsafe {
            dma_map(
                self.table.as_ptr(),
                self.context,
                self.device,
                0,
                &mut count,
            )
        };
        let table = self.table.get();
        if ret != 0 {
            assert_eq!(
                table.nents, 0,
                "dma_map failed, but has touched the core's table"
            );
            assert!(
                !self.is_mapped_by_driver(),
                "mapped by the driver after a failed dma_map"
            );
            world().counts.failed(ret);
            return Err(ret);
        }
        world().counts.add(abi::NVPM_COUNT_REGISTRATIONS);
        assert_eq!(
            count as u32, table.nents,
            "dma_map returned another number of entries than the table has"
        );
        let dma = &world().linux.dma;
        let all = dma.set_use(&table, Stage::Given);
        assert!(
            all || world().rdma.kind == Kind::G2,
            "a mapping is gone before the core has unmapped"
        );
        // SAFETY: The argument follows the contract of `get_page_size`.
        let page = unsafe {
            self.client
                .calls()
                .get_page_size
                .expect("a client has get_page_size")(self.context)
        };
        assert_eq!(page, 4096);
        Ok(())
    }

    /// Pins and maps the memory. If mapping fails, unpins the memory and returns the error.
    fn map(&self, request: Request) -> Result<(), i32> {
        self.get_pages(request)?;
        self.dma_map().inspect_err(|_| self.put_pages())
    }

    fn unmap(&self) {
        self.dma_unmap();
        self.put_pages();
    }

    fn dma_unmap(&self) {
        note("dma_unmap");
        let dma_unmap = self
            .client
            .calls()
            .dma_unmap
            .expect("a client has dma_unmap");
        // SAFETY: The arguments follow the contract of `dma_unmap`.
        let result = unsafe { dma_unmap(self.table.as_ptr(), self.context, self.device) };
        assert_eq!(result, 0, "dma_unmap returns an error");
        assert!(
            !self.is_mapped_by_driver(),
            "mapped by the driver after dma_unmap"
        );
        // The mapping of a revocable registration may still exist, because another thread may be
        // revoking the registration.
        if !self.client.revocable {
            world().linux.dma.assert_none(self.device as usize);
        }
    }

    /// Tells whether the driver maps memory for the device, which has no other registration.
    fn is_mapped_by_driver(&self) -> bool {
        let others = self.model().registrations.get() > 1;
        !others && world().driver.maps_for(self.device as usize)
    }

    fn put_pages(&self) {
        note("put_pages");
        let put_pages = self
            .client
            .calls()
            .put_pages
            .expect("a client has put_pages");
        // SAFETY: The arguments follow the contract of `put_pages`.
        unsafe { put_pages(self.table.as_ptr(), self.context) };
    }

    fn release(&self) {
        note("release");
        // Each core may read its table until now, even after `dma_unmap`, and a callback may come in
        // between. Only one core does so here, because each reading lets loom explore many more
        // interleavings.
        if self.client.revocable && world().rdma.kind == Kind::G3b {
            entries(&self.table.get());
        }
        let release = self.client.calls().release.expect("a client has release");
        // SAFETY: The argument follows the contract of `release`, which is called once.
        unsafe { release(self.context) };
        note("release has returned");
        world().linux.module.runs("the end of release");
        world().linux.dma.assert_none(self.device as usize);
        self.count(-1);
        self.released.set(true);
        let mut registrations = self.client.registrations.lock().unwrap();
        *registrations -= 1;
        self.client.unused.notify_all();
    }

    /// Lets the device use the memory.
    fn switch_on(&self) {
        note("the device is on");
        let all = world().linux.dma.set_use(&self.table.get(), Stage::Used);
        assert!(all, "the device uses addresses that are not mapped");
    }

    /// Stops the device from using the memory. The memory may be unmapped already.
    fn switch_off(&self) {
        note("the device is off");
        world().linux.dma.set_use(&self.table.get(), Stage::Given);
    }
}

impl Rdma {
    pub(crate) fn new(kind: Kind) -> Self {
        Self {
            kind,
            clients: Mutex::new(Vec::new()),
            tickets: Mutex::new(BTreeMap::new()),
            next_ticket: Cell::new(0),
            devices: RefCell::default(),
        }
    }

    pub(crate) fn register_client(
        &self,
        calls: *const peer_memory_client,
        revocable: bool,
    ) -> *mut c_void {
        if world().faults.step.fails("the core refuses a client") {
            return std::ptr::null_mut();
        }
        linux::assert_registry("a client is registered");
        assert!(
            !revocable || world().linux.served.get(),
            "memory can be freed before the callback can come"
        );
        self.assert_described(calls);
        let client = Rc::new(Client {
            calls,
            revocable,
            lock: Mutex::new(()),
            ticket_gone: Condvar::new(),
            registrations: Mutex::new(0),
            unused: Condvar::new(),
            freed: Mutex::new(false),
        });
        let handle = Rc::as_ptr(&client);
        self.clients.lock().unwrap().push(client);
        handle.cast_mut().cast()
    }

    /// Fails if the client's structure does not have the size that this core expects.
    fn assert_described(&self, calls: *const peer_memory_client) {
        // SAFETY: The module gives the core a structure of this type, which begins with the client.
        let client = unsafe { &*calls.cast::<nvpm_client>() };
        // MLNX_OFED 4.1 to 5.0 reads pointers to functions from the fields after the client.
        let extended = self.kind != Kind::G2;
        let size = if extended {
            size_of::<nvpm_client>()
        } else {
            0
        };
        assert_eq!((client.ex_size, client.flags), (size, extended.into()));
        let version = client.client.version;
        assert_eq!(
            version[15],
            extended.into(),
            "the flag in the version says wrongly whether the structure is larger"
        );
        let text = version[..14].iter().map(|&byte| byte as char);
        assert_eq!(text.collect::<String>(), env!("NVPM_VERSION")[..14]);
        assert_eq!(version[14], 0, "the version has no end");
    }

    /// Returns the clients' names, in the order in which the core asks them.
    pub(crate) fn names(&self) -> Vec<String> {
        let clients = self.clients.lock().unwrap();
        let name = |client: &Rc<Client>| {
            // SAFETY: A registered client stays at its address.
            let name = unsafe { (*client.calls).name };
            let text = name.into_iter().take_while(|&byte| byte != 0);
            text.map(char::from).collect()
        };
        clients.iter().map(name).collect()
    }

    /// Waits until no registration of the client exists, and removes the client.
    pub(crate) fn unregister_client(&self, handle: *mut c_void) {
        may_sleep("unregistering");
        linux::assert_registry("a client is still registered");
        let client = {
            let mut clients = self.clients.lock().unwrap();
            let at = clients
                .iter()
                .position(|one| Rc::as_ptr(one).cast() == handle.cast_const());
            clients.remove(at.expect("the client is registered"))
        };
        let mut registrations = client.registrations.lock().unwrap();
        while *registrations > 0 {
            registrations = client.unused.wait(registrations).unwrap();
        }
        drop(registrations);
        *client.freed.lock().unwrap() = true;
    }

    /// Registers memory for an application.
    pub(crate) fn register(&self, request: Request) -> Result<Rc<Registration>, i32> {
        let (client, context) = self.acquire(request).ok_or(EFAULT)?;
        let device = match request.device {
            Some(device) => device,
            None => self.new_device(request),
        };
        let ticket = match client.revocable {
            true => self.next_ticket.replace(self.next_ticket.get() + 1),
            false => NO_TICKET,
        };
        let registration = Rc::new(Registration {
            client,
            context,
            device,
            ticket,
            table: Cell::new(sg_table::default()),
            state: Mutex::new(State::default()),
            deregistered: Condvar::new(),
            released: Cell::new(false),
        });
        registration.count(1);
        let outcome = match self.kind {
            Kind::G2 => self.register_unlocked(&registration, request),
            Kind::G3a | Kind::G3b => self.register_locked(&registration, request),
        };
        outcome.map(|()| registration)
    }

    pub(crate) fn new_device(&self, request: Request) -> *mut device {
        let mut device = Box::new(Device {
            pci: !request.no_pci,
            can_invalidate: !request.never_complete,
            direct: request.direct,
            registrations: Cell::new(0),
            max_segment: match request.short_entries {
                true => 1 << 15,
                false => 1 << 16,
            },
            references: Cell::new(0),
            removed: Cell::new(false),
        });
        let pointer = (&raw mut *device).cast();
        self.devices.borrow_mut().push(device);
        if !request.no_pci && !world().faults.unasked.get() {
            // The module remembers an answer about the pair, as if it had asked the driver before.
            world().faults.allocation.without(|| {
                // SAFETY: Devices exist until the end of the world.
                let device = unsafe { crate::device::Device::from_raw(pointer) }
                    .expect("it is a PCI device");
                map_type::remember(Gpu([FIRST_GPU; 16]), device, Ok(MapType::Ours));
            });
        }
        pointer
    }

    fn acquire(&self, request: Request) -> Option<(Rc<Client>, *mut c_void)> {
        let clients = self.clients.lock().unwrap();
        for client in clients.iter() {
            if client.revocable && request.cannot_be_revoked {
                continue;
            }
            if let Some(context) = client.acquire(request) {
                note("acquired");
                *client.registrations.lock().unwrap() += 1;
                return Some((client.clone(), context));
            }
        }
        note("no client acquires the memory");
        None
    }

    fn add_ticket(&self, registration: &Rc<Registration>) {
        if registration.client.revocable {
            let mut tickets = self.tickets.lock().unwrap();
            tickets.insert(registration.ticket, registration.clone());
        }
    }

    fn drop_ticket(&self, registration: &Registration) {
        if registration.client.revocable {
            self.tickets.lock().unwrap().remove(&registration.ticket);
        }
    }

    fn find_ticket(&self, ticket: u64) -> Option<Rc<Registration>> {
        let found = self.tickets.lock().unwrap().get(&ticket).cloned()?;
        assert_ne!(
            found.table.get().nents,
            0,
            "the core is told of a registration whose dma_map has not succeeded"
        );
        Some(found)
    }

    /// Deregisters memory, at the request of an application or because the application ends.
    pub(crate) fn deregister(&self, registration: &Registration) {
        note("deregisters");
        match self.kind {
            Kind::G2 => self.deregister_unlocked(registration),
            Kind::G3a | Kind::G3b => self.deregister_locked(registration),
        }
    }

    fn invalidate(&self, ticket: u64) {
        may_sleep("invalidating");
        assert!(task().in_callback.get());
        note("invalidates");
        world().counts.add(abi::NVPM_COUNT_REVOCATIONS);
        match self.kind {
            Kind::G2 => self.invalidate_all(ticket),
            Kind::G3a | Kind::G3b => self.invalidate_locked(ticket),
        }
        note("has invalidated");
    }

    /// Checks that nothing is left.
    pub(crate) fn assert_over(&self) {
        for device in self.devices.borrow().iter() {
            assert_eq!(
                device.references.get(),
                0,
                "references to a device are left"
            );
        }
        assert!(
            self.tickets.lock().unwrap().is_empty(),
            "registrations are left"
        );
        assert!(self.names().is_empty(), "clients are left");
    }
}

/// In G3, the core makes these calls with its mapping lock held.
impl Rdma {
    /// Returns the lock if the core is G3a, because G3a keeps the lock while it calls `dma_unmap`.
    /// Later cores release the lock before that call.
    fn lock_for_unmapping<T>(&self, lock: T) -> Option<T> {
        (self.kind == Kind::G3a).then_some(lock)
    }

    fn register_locked(&self, new: &Rc<Registration>, request: Request) -> Result<(), i32> {
        let mut state = new.state.lock().unwrap();
        self.add_ticket(new);
        if let Err(errno) = new.map(request) {
            self.drop_ticket(new);
            drop(state);
            new.release();
            return Err(errno);
        }
        if request.device_fails {
            note("the device fails");
            let state = self.lock_for_unmapping(state);
            new.unmap();
            drop(state);
            self.drop_ticket(new);
            new.release();
            return Err(EINVAL);
        }
        state.mapped = true;
        new.switch_on();
        Ok(())
    }

    fn deregister_locked(&self, old: &Registration) {
        old.switch_off();
        let mut state = old.state.lock().unwrap();
        let mapped = std::mem::take(&mut state.mapped);
        let state = self.lock_for_unmapping(state);
        if mapped {
            old.unmap();
        }
        drop(state);
        self.drop_ticket(old);
        old.release();
    }

    /// Calls `release` without calling `dma_unmap` before, which real cores never do.
    pub(crate) fn release_mapped(&self, old: &Registration) {
        old.switch_off();
        self.drop_ticket(old);
        old.release();
    }

    /// Calls `dma_unmap` twice, which real cores never do, and then reads the table.
    pub(crate) fn deregister_unmapping_twice(&self, old: &Registration) {
        old.switch_off();
        old.unmap();
        old.unmap();
        entries(&old.table.get());
        self.drop_ticket(old);
        old.release();
    }

    fn invalidate_locked(&self, ticket: u64) {
        let Some(registration) = self.find_ticket(ticket) else {
            return;
        };
        let mut state = registration.state.lock().unwrap();
        let still_there = || {
            let released = registration.released.get();
            assert!(
                !released,
                "the core uses a registration that the client let it release"
            );
        };
        still_there();
        if state.mapped {
            registration.switch_off();
        }
        still_there();
        if std::mem::take(&mut state.mapped) {
            if self.kind == Kind::G3a {
                registration.unmap();
            } else {
                // The core does not use the table again, because the table belongs to the client.
                registration.table.set(sg_table::default());
            }
        }
        still_there();
    }
}

/// In G2, the core registers and invalidates with the client's lock.
impl Rdma {
    fn register_unlocked(&self, new: &Rc<Registration>, request: Request) -> Result<(), i32> {
        self.add_ticket(new);
        if let Err(errno) = new.map(request) {
            self.drop_ticket(new);
            new.release();
            return Err(errno);
        }
        if !request.device_fails && self.activate(new) {
            return Ok(());
        }
        note("is not activated");
        self.drop_ticket(new);
        new.unmap();
        new.release();
        Err(EINVAL)
    }

    fn activate(&self, new: &Registration) -> bool {
        let _client = new.client.lock.lock().unwrap();
        let mut state = new.state.lock().unwrap();
        if !state.invalidated {
            state.active = true;
            drop(state);
            new.switch_on();
            return true;
        }
        false
    }

    fn deregister_unlocked(&self, old: &Registration) {
        {
            let mut state = old.state.lock().unwrap();
            if state.claimed {
                // The thread that invalidates the registration also deregisters it, so this thread
                // waits until the other thread has deregistered it.
                while !state.over {
                    state = old.deregistered.wait(state).unwrap();
                }
                return;
            }
            state.claimed = true;
        }
        old.switch_off();
        {
            let _client = old.client.lock.lock().unwrap();
            self.drop_ticket(old);
            old.client.ticket_gone.notify_all();
        }
        old.unmap();
        old.release();
    }

    fn invalidate_all(&self, ticket: u64) {
        let client = {
            let tickets = self.tickets.lock().unwrap();
            match tickets.get(&ticket) {
                Some(found) => found.client.clone(),
                None => return,
            }
        };
        let mut lock = client.lock.lock().unwrap();
        let Some(registration) = self.find_ticket(ticket) else {
            return;
        };
        let claimed = {
            let mut state = registration.state.lock().unwrap();
            if !state.active {
                state.invalidated = true;
                return;
            }
            std::mem::replace(&mut state.claimed, true)
        };
        if claimed {
            // Another thread is deregistering, so this thread waits until the other thread has
            // dropped the ticket.
            while self.find_ticket(ticket).is_some() {
                lock = client.ticket_gone.wait(lock).unwrap();
            }
            return;
        }
        registration.switch_off();
        self.drop_ticket(&registration);
        registration.unmap();
        registration.release();
        registration.state.lock().unwrap().over = true;
        registration.deregistered.notify_all();
        // The lock is part of the core's record of the client. The core must therefore not have
        // freed the record before this point.
        let freed = *client.freed.lock().unwrap();
        assert!(!freed, "the core unlocks a client that it has freed");
        drop(lock);
    }
}

/// Invalidates a registration. The core gives this function to revocable clients.
pub(crate) extern "C" fn invalidate(_handle: *mut c_void, ticket: u64) -> i32 {
    world().rdma.invalidate(ticket);
    world().faults.invalidated.get()
}

pub(crate) fn remove_device(device: *mut device) {
    // SAFETY: Devices exist until the end of the world.
    unsafe { (*device.cast::<Device>()).removed.set(true) };
}

fn check(ret: i32) -> Result<(), i32> {
    match ret {
        0 => Ok(()),
        errno => Err(errno),
    }
}
