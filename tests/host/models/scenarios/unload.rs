// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Unloads the module while other threads use it. After the module is unloaded, no code of the
//! module may run, not even the last instruction of a function that has given the last reference
//! back.

use super::cast::*;
use crate::{
    abi, c,
    explore::{count, explore, explored, Preemptions::*},
    rdma::Kind,
    world::{as_process, spawn, world},
};

#[test]
fn during_deregistration() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        let deregistering = spawn("dereg", OWNER, move || deregister(&registration));
        module.unload();
        deregistering.join().unwrap();
        free(A);
    });
}

#[test]
fn during_deregistration_and_a_callback() {
    explore(UpTo(4), || {
        let (module, registration) = registered(Module::revocable());
        let deregistering = spawn("dereg", OWNER, move || deregister(&registration));
        while_freed(|| module.unload());
        deregistering.join().unwrap();
    });
}

/// An application begins a registration before the module is unloaded, or while it is being
/// unloaded.
#[test]
fn during_registration() {
    explore(Any, || {
        let module = Module::revocable();
        allocate(A);
        let registering = spawn("reg", OWNER, || end(register(page(A))));
        module.unload();
        registering.join().unwrap();
        free(A);
    });
}

/// The module remembers a pair when it is unloaded. Freeing the entry of the pair may sleep, so the
/// module must hold no lock at that time.
#[test]
fn with_a_pair_that_is_known() {
    explore(Any, || {
        world().faults.unasked.set(true);
        let (module, registration) = registered(Module::persistent());
        deregister(&registration);
        free(A);
        module.unload();
    });
}

/// Loading fails after the first client is registered. At that time, the core may already have
/// called this client.
#[test]
fn instead_of_being_loaded() {
    explore(Any, || {
        // Two steps succeed, which are the connection to `nv_peer_mem_callback` and the
        // registration of one client.
        refused_while_somebody_registers(2, -22);
    });
}

/// The registrations of the first load become orphans. Their memory is freed when the module has
/// been unloaded and loaded again, and has a new registration.
#[test]
fn and_is_loaded_again_with_orphans() {
    explore(UpTo(3), || {
        let (module, first) = registered(Module::revocable());
        as_process(OTHER, || deregister(&first));
        module.unload();
        let module = Module::revocable();
        allocate(B);
        let second = register(page(B)).unwrap();
        while_freed(|| ());
        assert_eq!(
            c::counter(abi::NVPM_COUNT_REVOCATIONS),
            0,
            "of the memory of the first"
        );
        deregister(&second);
        free(B);
        module.unload();
    });
}

/// The memory of an orphan of the first load is freed at any moment of unloading and loading again.
#[test]
fn and_is_loaded_again_while_the_memory_of_an_orphan_is_freed() {
    explore(UpTo(3), || {
        let (module, first) = registered(Module::revocable());
        as_process(OTHER, || deregister(&first));
        while_freed(|| {
            module.unload();
            let module = Module::revocable();
            allocate(B);
            end(register(page(B)));
            module.unload();
        });
        free(B);
    });
}

/// A callback that finds no record runs while the module is unloaded and loaded again.
#[test]
fn during_the_callback_of_a_process_that_was_not_listed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        world().driver.delist(A);
        deregister(&registration);
        while_freed(|| {
            module.unload();
            Module::revocable().unload();
        });
    });
}

/// The oldest core deregisters during the module's call to invalidate, and releases its own lock
/// after the deregistration. The core must not free the client before it has released the lock.
#[test]
fn in_the_cores_answer_to_a_callback() {
    let scenario = || {
        let (module, _registration) = registered(Module::revocable());
        while_freed(|| module.unload());
    };
    let interleavings = count(UpTo(5), Kind::G2, scenario);
    explored("G2", UpTo(5), interleavings);
}
