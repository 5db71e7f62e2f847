// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What most scenarios begin and end with.

use std::rc::Rc;

use crate::{
    client::{Persistent, Region, Revocable},
    extents::GPU_PAGE,
    p2p,
    peer::{Core, Registration as Client},
    rdma::{Kind, Registration, Request},
    world::world,
};

/// The module as `main.rs` loads it: first its clients go, then the last callback.
pub(crate) struct Module {
    clients: Vec<Box<dyn std::any::Any>>,
}

impl Module {
    /// Loaded with persistent_api_support=0: the revocable client is asked first.
    pub(crate) fn revocable() -> Self {
        Self::load(|| vec![revocable("nv_mem"), persistent("nv_mem_nc")])
    }

    /// Loaded with persistent_api_support=1.
    pub(crate) fn persistent() -> Self {
        Self::load(|| vec![persistent("nv_mem"), revocable("nv_mem_revocable")])
    }

    fn load(clients: fn() -> Vec<Box<dyn std::any::Any>>) -> Self {
        world().kernel.module.begin();
        Self { clients: clients() }
    }

    /// rmmod, when nobody needs the module.
    pub(crate) fn unload(mut self) {
        world().kernel.module.begin_to_go();
        for client in self.clients.drain(..) {
            drop(client);
        }
        p2p::drain::<Region>();
        world().kernel.module.end_to_go();
    }
}

fn core() -> Core {
    match world().rdma.kind {
        Kind::G2 => Core::Legacy,
        Kind::G3a | Kind::G3b => Core::Current,
    }
}

fn revocable(name: &str) -> Box<dyn std::any::Any> {
    Box::new(
        Client::<Revocable>::new(name, core())
            .map_err(|_| ())
            .expect("registers"),
    )
}

fn persistent(name: &str) -> Box<dyn std::any::Any> {
    Box::new(
        Client::<Persistent>::new(name, core())
            .map_err(|_| ())
            .expect("registers"),
    )
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
    world().driver.allocate(OWNER, address, 2);
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
