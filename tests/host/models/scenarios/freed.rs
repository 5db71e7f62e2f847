// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Frees memory while it is registered or deregistered.

use super::cast::*;
use crate::{
    abi, c,
    explore::{count, explore, explored, Preemptions::*},
    rdma::{Kind, Request},
    world::{spawn, world},
};

const EIO: i32 = -5;
const EINVAL: i32 = -22;
const EOPNOTSUPP: i32 = -95;

fn free_during(registration: Request, other: Option<i32>) {
    register_while_freed(Module::revocable(), registration, other);
}

#[test]
fn registration() {
    explore(UpTo(8), || free_during(page(A), None));
}

/// The driver's page table is wrong, so the module cannot use the pin. The module must unpin the
/// pages, although the callback may come at the same time.
#[test]
fn registration_of_which_the_driver_tells_nonsense() {
    explore(Any, || {
        world().faults.hidden_pages.set(1);
        free_during(two_pages(A), Some(EIO));
    });
}

#[test]
fn registration_of_two_pages() {
    explore(UpTo(7), || free_during(two_pages(A), None));
}

#[test]
fn registration_that_the_device_refuses() {
    explore(UpTo(6), || {
        let request = Request {
            device_fails: true,
            ..page(A)
        };
        free_during(request, Some(EINVAL));
    });
}

#[test]
fn registration_for_a_device_that_is_not_pci() {
    explore(Any, || {
        let request = Request {
            no_pci: true,
            ..page(A)
        };
        free_during(request, Some(EOPNOTSUPP));
    });
}

#[test]
fn registration_whose_second_page_cannot_be_mapped() {
    explore(UpTo(7), || {
        world().faults.mapping.set(1);
        free_during(two_pages(A), Some(EIO));
    });
}

/// No orphan may be left, because the driver either unpins the memory or calls back.
#[test]
fn deregistration() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        while_freed(|| deregister(&registration));
        assert_eq!(c::counter(abi::NVPM_COUNT_ORPHANS), 0);
        module.unload();
    });
}

/// If the memory is freed after the deregistration, the driver has no pin any more. The driver must
/// therefore not call the callback.
#[test]
fn deregistration_before() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        deregister(&registration);
        assert!(!world().driver.is_pinned(), "nothing is armed");
        free(A);
        module.unload();
    });
}

/// The callbacks of both registrations come one after another, while both threads are working.
#[test]
fn two_registrations() {
    explore(UpTo(2), || {
        let module = Module::revocable();
        allocate(A);
        let second = spawn("second", OWNER, || end(register(page(A))));
        while_freed(|| end(register(page(A))));
        second.join().unwrap();
        module.unload();
    });
}

/// The core breaks its contract, because it releases a registration that it has not unmapped. The
/// module must nevertheless undo the mapping before it unpins the memory.
#[test]
fn deregistration_by_a_core_that_does_not_unmap() {
    let scenario = || {
        let (module, registration) = registered(Module::revocable());
        while_freed(|| world().rdma.release_mapped(&registration));
        module.unload();
    };
    let interleavings = count(UpTo(3), Kind::G3b, scenario);
    explored("G3b", UpTo(3), interleavings);
}

/// The core breaks its contract in the same way, and the memory is freed only after the
/// registration. The pin must have ended before.
#[test]
fn deregistration_before_by_a_core_that_does_not_unmap() {
    let scenario = || {
        let (module, registration) = registered(Module::revocable());
        world().rdma.release_mapped(&registration);
        assert!(!world().driver.is_pinned(), "nothing is armed");
        free(A);
        module.unload();
    };
    let interleavings = count(Any, Kind::G3b, scenario);
    explored("G3b", Any, interleavings);
}

/// The core breaks its contract, because it unmaps a registration twice. The memory may be freed
/// before, between and after the two calls.
#[test]
fn deregistration_by_a_core_that_unmaps_twice() {
    for core in [Kind::G3a, Kind::G3b] {
        for request in [page, two_pages] {
            let interleavings = count(UpTo(4), core, move || {
                let module = Module::revocable();
                allocate(A);
                let registration = register(request(A)).unwrap();
                while_freed(|| world().rdma.deregister_unmapping_twice(&registration));
                module.unload();
            });
            explored(&format!("{core:?}"), UpTo(4), interleavings);
        }
    }
}
