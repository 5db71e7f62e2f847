// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the client whose pins stay until deregistration, even if the memory is freed.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    rdma::Request,
    world::world,
};

/// Frees the memory during a registration. The registration fails, or its memory stays.
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

/// If the driver has no persistent pins, the other client serves, and its registration is revoked.
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

/// A thread takes the driver's lock under the core's lock of a registration, while another takes
/// the core's lock of a second registration under the driver's lock.
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
