// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Unloads the module while work is in progress: afterwards no code of the module may run, not even
//! the last instruction of a function that has returned the last reference to the module.

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

/// An application may register shortly before the module goes, or too late.
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

/// Freeing the contents of the module's tables may sleep.
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

/// Loading fails at a moment when the core may already have asked the first client.
#[test]
fn instead_of_being_loaded() {
    explore(Any, || {
        // The callbacks and one client exist by then.
        refused_while_somebody_registers(2, -22);
    });
}

/// The registrations of the first load have ended, and their memory stays pinned. When this memory
/// is freed, the module is loaded again and has a registration of its own.
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

/// The memory of the first load is freed at any moment.
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

/// A callback without work runs while the module goes, and while the module is loaded again.
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

/// The oldest core deregisters inside the module's call, and releases its own lock afterwards.
#[test]
fn in_the_cores_answer_to_a_callback() {
    let scenario = || {
        let (module, _registration) = registered(Module::revocable());
        while_freed(|| module.unload());
    };
    let interleavings = count(UpTo(5), Kind::G2, scenario);
    explored("G2", UpTo(5), interleavings);
}
