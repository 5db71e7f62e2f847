// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the persistent clients, whose pins last until deregistration, even if the memory is freed
//! before.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    rdma::Request,
    world::world,
};

/// Frees the memory during a registration. The registration either fails, or keeps the memory
/// pinned.
fn free_during(registration: Request, other: Option<i32>) {
    register_while_freed(Module::persistent(), registration, other);
}

#[test]
fn memory_is_freed_during_registration() {
    explore(Any, || free_during(page(A), None));
}

#[test]
fn memory_is_freed_during_a_registration_that_fails() {
    explore(Any, || {
        let request = Request {
            device_fails: true,
            ..page(A)
        };
        free_during(request, Some(-22));
    });
    explore(Any, || {
        world().faults.mapping.set(1);
        free_during(two_pages(A), Some(-5));
    });
}

/// If the driver refuses persistent pins, the revocable client claims the memory, and the
/// registration is revoked when the memory is freed.
#[test]
fn revocable_instead() {
    for errno in [-524, -5] {
        explore(UpTo(6), move || instead(errno));
    }
}

/// If the driver has too little memory for the revocable pin also, the program gets the error of this
/// pin.
#[test]
fn without_memory_for_a_revocable_pin_instead() {
    explore(UpTo(1), || {
        world().faults.no_persistent.set(-524);
        world().faults.get.set(0);
        let module = Module::persistent();
        allocate(A);
        assert_eq!(register(page(A)).err(), Some(-12));
        free(A);
        module.unload();
    });
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

/// One thread holds the mapping lock of a registration and takes the driver's lock. Another thread
/// holds the driver's lock and takes the mapping lock of a second registration. The threads must
/// not deadlock.
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

/// The core breaks its contract, because it releases a registration that it has not unmapped. The
/// mapping, which the module or the driver has made, must be undone before the memory is unpinned.
#[test]
fn that_the_core_does_not_unmap() {
    for bus_offset in [None, Some(1 << 45)] {
        explore(UpTo(1), move || {
            world().faults.bus_offset.set(bus_offset);
            world().faults.unasked.set(true);
            let module = Module::persistent();
            allocate(A);
            let direct = Request {
                direct: true,
                ..page(A)
            };
            let registration = register(direct).unwrap();
            assert_eq!(world().driver.maps(), bus_offset.is_some());
            world().rdma.release_mapped(&registration);
            free(A);
            module.unload();
        });
    }
}

/// The core breaks its contract, because it unmaps a registration twice. The module must
/// nevertheless keep the scatterlist, which the core may still read.
#[test]
fn that_the_core_unmaps_twice() {
    explore(Any, || {
        let (module, registration) = registered(Module::persistent());
        world().rdma.deregister_unmapping_twice(&registration);
        free(A);
        module.unload();
    });
}
