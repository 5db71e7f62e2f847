// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What most scenarios begin and end with.

use std::rc::Rc;

use crate::{
    abi, c,
    extents::GPU_PAGE,
    global::Installed,
    map_type::Pairs,
    peer_client::{self, Client},
    persistent::{CatchAll, Persistent},
    rdma::{Kind, Registration, Request},
    registry::Registry,
    revocable::Revocable,
    world::{spawn, world},
};

/// The module as `main.rs` loads it, and lets it go: first the callbacks, then its clients.
pub(crate) struct Module {
    callbacks: Callbacks,
    clients: Vec<peer_client::ClientRegistration>,
    tables: (Installed<Pairs>, Installed<Registry>),
}

/// The module that stays passes callbacks on.
struct Callbacks;

impl Callbacks {
    fn new() -> Self {
        // SAFETY: Once in each life of the module.
        assert_eq!(unsafe { abi::nvpm_callbacks_begin() }, 0);
        Self
    }
}

impl Drop for Callbacks {
    fn drop(&mut self) {
        // SAFETY: `new` has begun it.
        unsafe { abi::nvpm_callbacks_end() };
    }
}

impl Module {
    /// Loaded with persistent_api_support=0: the revocable client is asked first.
    pub(crate) fn revocable() -> Self {
        Self::load(&[
            (register_client::<Revocable>, "nv_mem"),
            (register_client::<CatchAll>, "nv_mem_nc"),
        ])
        .expect("the core takes it")
    }

    /// Loaded with persistent_api_support=1.
    pub(crate) fn persistent() -> Self {
        Self::load(&[
            (register_client::<Persistent>, "nv_mem"),
            (register_client::<Revocable>, "nv_mem_revocable"),
            (register_client::<CatchAll>, "nv_mem_fixed"),
        ])
        .expect("the core takes it")
    }

    /// The core does not take the second client: the module is not loaded.
    pub(crate) fn refused() {
        world().faults.client.set(1);
        let module = Self::load(&[
            (register_client::<Revocable>, "nv_mem"),
            (register_client::<CatchAll>, "nv_mem_nc"),
        ]);
        assert!(module.is_none());
        world().linux.module.end_to_go();
    }

    fn load(clients: &[(RegisterClient, &str)]) -> Option<Self> {
        world().linux.load_module();
        c::set_peerdirect_support(world().rdma.kind == Kind::G2);
        let tables = (Pairs::install().ok()?, Registry::install().ok()?);
        let callbacks = Callbacks::new();
        let clients = clients.iter().map(|(register, name)| register(name));
        let clients = clients.collect::<Option<_>>()?;
        peer_client::open();
        Some(Self {
            callbacks,
            clients,
            tables,
        })
    }

    /// rmmod, when nobody needs the module.
    pub(crate) fn unload(self) {
        world().linux.module.begin_to_go();
        drop(self);
        world().linux.module.end_to_go();
    }
}

type RegisterClient = fn(&str) -> Option<peer_client::ClientRegistration>;

fn register_client<C: Client>(name: &str) -> Option<peer_client::ClientRegistration> {
    peer_client::ClientRegistration::new::<C>(name).ok()
}

/// The process that most things happen in.
pub(crate) const OWNER: i32 = 1;
/// Another one.
pub(crate) const OTHER: i32 = 2;

/// Where memory is.
pub(crate) const A: u64 = 0x10_0000;
pub(crate) const B: u64 = 0x20_0000;

/// Memory of two pages at `address`, which are not neighbours on the bus.
pub(crate) fn allocate(address: u64) {
    allocate_for(OWNER, address);
}

/// The same of that process.
pub(crate) fn allocate_for(process: i32, address: u64) {
    world().driver.allocate(process, address);
}

pub(crate) fn free(address: u64) {
    world().driver.free(address);
}

/// The first page at `address`.
pub(crate) fn page(address: u64) -> Request {
    Request {
        address,
        len: GPU_PAGE,
        cannot_be_revoked: false,
        device_fails: false,
        no_pci: false,
        never_complete: false,
        direct: false,
        device: None,
    }
}

/// Both pages at `address`, but neither whole.
pub(crate) fn two_pages(address: u64) -> Request {
    Request {
        address: address + 5,
        len: 2 * GPU_PAGE - 10,
        ..page(address)
    }
}

pub(crate) fn register(request: Request) -> Result<Rc<Registration>, i32> {
    world().rdma.register(request)
}

pub(crate) fn deregister(registration: &Registration) {
    world().rdma.deregister(registration);
}

/// Deregisters what could be registered.
pub(crate) fn end(registered: Result<Rc<Registration>, i32>) {
    if let Ok(registration) = registered {
        deregister(&registration);
    }
}

/// `module` with the first page at `A` registered.
pub(crate) fn registered(module: Module) -> (Module, Rc<Registration>) {
    allocate(A);
    (module, register(page(A)).unwrap())
}

/// Does `work` while another thread frees the memory at `A`.
pub(crate) fn while_freed<T>(work: impl FnOnce() -> T) -> T {
    let freeing = spawn("free", OWNER, || free(A));
    let result = work();
    freeing.join().unwrap();
    result
}

/// Registers while another thread frees the memory; then deregisters what could be registered.
pub(crate) fn register_while_freed(module: Module, request: Request) {
    end(registered_while_freed(&request));
    module.unload();
}

/// What comes of a registration while another thread frees the memory.
pub(crate) fn registered_while_freed(request: &Request) -> Result<Rc<Registration>, i32> {
    allocate(A);
    while_freed(|| register(*request))
}
