// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The driver identifies a pin by the address of its page table. In these scenarios a new pin gets
//! the address of an old pin's table while a thread is about to end the old pin. The thread must
//! not end the new pin instead. The new memory may also have the virtual address of the old memory,
//! so that the driver finds the process.

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

/// The new pin is persistent, so an object of the driver itself owns the new pin.
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

/// The new pin is revocable. The driver must call the callback for the new pin also.
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

/// The module pins a page to ask the driver about a pair. The new pin is the pin of this page.
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
