// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Gives a new pin the page table's address of an old pin, which a thread is about to undo: the
//! driver identifies pins by this address. The new memory may also be at the old address, so that
//! the driver finds the process there.

use std::rc::Rc;

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    rdma::{Registration, Request},
    world::{spawn, world},
};

/// Returns a registration at `A`, with other memory at `B` to register.
fn pinned() -> (Module, Rc<Registration>) {
    world().faults.reuse_tables.set(true);
    allocate(B);
    registered(Module::revocable())
}

#[test]
fn by_a_new_registration() {
    explore(UpTo(3), || {
        let (module, old) = pinned();
        let deregistering = spawn("old", OWNER, move || deregister(&old));
        let registering = spawn("new", OWNER, || register(page(B)).unwrap());
        free(A);
        deregistering.join().unwrap();
        let new = registering.join().unwrap();
        assert!(
            world().driver.is_armed(),
            "the new pin went with the old one"
        );
        deregister(&new);
        module.unload();
    });
}

#[test]
fn by_a_new_registration_in_the_same_place() {
    explore(UpTo(3), || {
        world().faults.reuse_tables.set(true);
        let (module, old) = registered(Module::revocable());
        let deregistering = spawn("old", OWNER, move || deregister(&old));
        free(A);
        allocate(A);
        let new = register(page(A)).unwrap();
        deregistering.join().unwrap();
        assert!(
            world().driver.is_armed(),
            "the new pin went with the old one"
        );
        free(A);
        deregister(&new);
        module.unload();
    });
}

/// The new pin lasts until it is deregistered: the driver's own object owns the pin.
#[test]
fn by_a_persistent_registration() {
    explore(UpTo(3), || {
        let (module, old) = pinned();
        let deregistering = spawn("old", OWNER, move || deregister(&old));
        let registering = spawn("new", OWNER, || {
            let queue = Request {
                cannot_be_revoked: true,
                ..page(B)
            };
            register(queue).unwrap()
        });
        free(A);
        deregistering.join().unwrap();
        let new = registering.join().unwrap();
        assert!(
            world().driver.is_pinned(),
            "the new pin went with the old one"
        );
        deregister(&new);
        free(B);
        module.unload();
    });
}

/// The callback for the new pin must come also.
#[test]
fn by_a_registration_that_is_revoked_too() {
    explore(UpTo(3), || {
        let (module, old) = pinned();
        let deregistering = spawn("old", OWNER, move || deregister(&old));
        let registering = spawn("new", OWNER, || register(page(B)));
        free(A);
        free(B);
        deregistering.join().unwrap();
        end(registering.join().unwrap());
        module.unload();
    });
}

/// The new pin is the page with which the module asks the driver about a pair.
#[test]
fn by_a_question() {
    explore(UpTo(3), || {
        world().faults.reuse_tables.set(true);
        allocate(B);
        allocate(A);
        let module = Module::revocable();
        let on = |device, address| Request {
            device: Some(device),
            ..page(address)
        };
        let known = world().rdma.new_device(page(A));
        let old = register(on(known, A)).unwrap();
        world().faults.unasked.set(true);
        let unknown = world().rdma.new_device(page(B));
        let deregistering = spawn("old", OWNER, move || deregister(&old));
        let freeing = spawn("free", OWNER, || free(A));
        let new = register(on(unknown, B)).unwrap();
        freeing.join().unwrap();
        deregistering.join().unwrap();
        deregister(&new);
        free(B);
        module.unload();
    });
}
