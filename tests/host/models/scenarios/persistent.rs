// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The client whose pins stay until deregistration, whatever becomes of the memory.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    rdma::Request,
    world::world,
};

/// Either there was no memory to register, or it stays.
fn free_during(registration: Request) {
    register_while_freed(Module::persistent(), registration);
}

#[test]
fn memory_is_freed_during_registration() {
    explore(Any, || free_during(page(A)));
}

#[test]
fn memory_is_freed_during_a_registration_that_fails() {
    explore(Any, || {
        free_during(Request {
            device_fails: true,
            ..page(A)
        });
    });
    explore(Any, || {
        world().faults.mapping.set(1);
        free_during(two_pages(A));
    });
}

/// Where the driver has no such pins the other client serves, and is revoked.
#[test]
fn revocable_instead() {
    for errno in [-524, -5] {
        explore(UpTo(6), move || instead(errno));
    }
}

fn instead(errno: i32) {
    world().faults.no_persistent.set(errno);
    let module = Module::persistent();
    allocate(A);
    let registration = register(page(A)).expect("the revocable client serves it");
    assert!(world().driver.is_armed());
    while_freed(|| deregister(&registration));
    module.unload();
}

/// The driver's lock is taken under the core's lock of one registration, and the core's lock of
/// another under the driver's.
#[test]
fn beside_a_revocable_registration_of_the_same_memory() {
    explore(UpTo(4), || {
        let (module, revocable) = registered(Module::revocable());
        while_freed(|| {
            let queue = register(Request {
                cannot_be_revoked: true,
                ..page(A)
            });
            deregister(&revocable);
            end(queue);
        });
        module.unload();
    });
}
