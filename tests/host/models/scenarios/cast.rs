// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Functions that most scenarios use to set up their state and to end.

use std::{rc::Rc, sync::MutexGuard};

use kernel::{prelude::*, Module as _};

use crate::{
    c,
    extents::GPU_PAGE,
    module::NvPeerMem,
    rdma::{Kind, Registration, Request},
    world::{spawn, world},
};

/// The module while it is loaded.
pub(crate) struct Module(NvPeerMem);

impl Module {
    /// Loads the module with persistent_api_support=0, so that the core asks the revocable client
    /// first.
    pub(crate) fn revocable() -> Self {
        Self::load(false).expect("the core takes it")
    }

    /// Loads the module with persistent_api_support=1, so that the core asks a persistent client
    /// first.
    pub(crate) fn persistent() -> Self {
        Self::load(true).expect("the core takes it")
    }

    /// Loads the module so that `steps` steps of loading succeed and the next step fails. Returns
    /// the error.
    pub(crate) fn refused(persistent: bool, steps: u32) -> Option<i32> {
        world().faults.step.set(steps);
        Self::not_loaded(persistent)
    }

    /// Tries to load the module although something prevents it. Returns the error. If loading
    /// succeeds nevertheless, returns [`None`].
    pub(crate) fn not_loaded(persistent: bool) -> Option<i32> {
        Self::try_load(persistent).map(Self::unload).err()
    }

    /// Loads the module. If loading fails, checks that nothing of the module is left, and returns
    /// the error.
    pub(crate) fn try_load(persistent: bool) -> Result<Self, i32> {
        Self::load(persistent).map_err(|error| {
            world().linux.module.end_to_go();
            error.to_errno()
        })
    }

    fn load(persistent: bool) -> Result<Self> {
        let _parameters = Self::parameters(persistent);
        Self::load_with_parameters()
    }

    /// Sets the module's parameters. Until the result is dropped, no other test can change them.
    /// For the oldest core the module is compiled with this core's header, which has no flags, or
    /// is told by a parameter not to use them.
    pub(crate) fn parameters(persistent: bool) -> MutexGuard<'static, ()> {
        let is_oldest = world().rdma.kind == Kind::G2;
        c::set_parameters(
            !is_oldest || persistent,
            is_oldest && persistent,
            persistent,
        )
    }

    /// Loads the module. The caller has set the parameters.
    pub(crate) fn load_with_parameters() -> Result<Self> {
        world().linux.load_module();
        NvPeerMem::init(&ThisModule).map(Self)
    }

    /// Waits until the module has no references, and unloads the module.
    pub(crate) fn unload(self) {
        world().linux.module.begin_to_go();
        drop(self.0);
        world().linux.module.end_to_go();
    }
}

/// The process of most scenarios.
pub(crate) const OWNER: i32 = 1;
/// Another process.
pub(crate) const OTHER: i32 = 2;

/// The addresses of memory.
pub(crate) const A: u64 = 0x10_0000;
pub(crate) const B: u64 = 0x20_0000;

/// Allocates two pages at `address`. The second page does not follow the first page on the bus.
pub(crate) fn allocate(address: u64) {
    allocate_for(OWNER, address);
}

/// Allocates two pages at `address` for this process.
pub(crate) fn allocate_for(process: i32, address: u64) {
    world().driver.allocate(process, address);
}

pub(crate) fn free(address: u64) {
    world().driver.free(address);
}

/// Returns a request for the first page at `address`.
pub(crate) fn page(address: u64) -> Request {
    Request {
        address,
        len: GPU_PAGE,
        cannot_be_revoked: false,
        device_fails: false,
        no_pci: false,
        never_complete: false,
        direct: false,
        short_entries: false,
        device: None,
    }
}

/// Returns a request for parts of both pages at `address`.
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

/// Deregisters the memory if its registration succeeded.
pub(crate) fn end(registered: Result<Rc<Registration>, i32>) {
    if let Ok(registration) = registered {
        deregister(&registration);
    }
}

/// Returns `module` with a registration of the first page at `A`.
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

const EFAULT: i32 = -14;
const EINVAL: i32 = -22;

/// Registers while another thread frees the memory. If the registration succeeds, deregisters the
/// memory. Then unloads the module. If the registration fails, the user must receive the error that
/// says that the memory was freed, or `other`, the error that the scenario itself causes.
pub(crate) fn register_while_freed(module: Module, request: Request, other: Option<i32>) {
    let registered = registered_while_freed(&request);
    if let Err(error) = registered {
        // The oldest core (G2) notices the revocation itself, and answers EINVAL.
        let of_core = world().rdma.kind == Kind::G2 && error == EINVAL;
        let is_expected = error == EFAULT || Some(error) == other || of_core;
        assert!(is_expected, "the user receives error {error}");
    }
    end(registered);
    module.unload();
}

/// Registers memory while another thread frees the memory. Returns the result of the registration.
pub(crate) fn registered_while_freed(request: &Request) -> Result<Rc<Registration>, i32> {
    allocate(A);
    while_freed(|| register(*request))
}

/// Loads the module while another thread registers memory. `steps` steps of loading succeed, and
/// the next step fails with `error`. Checks that neither the loading nor the registration succeeds.
pub(crate) fn refused_while_somebody_registers(steps: u32, error: i32) {
    allocate(A);
    let registering = spawn("reg", OWNER, || register(page(A)).err());
    assert_eq!(Module::refused(false, steps), Some(error));
    let refused = registering.join().unwrap();
    assert!(
        refused.is_some(),
        "a registration succeeded with a module whose loading failed"
    );
    free(A);
}
