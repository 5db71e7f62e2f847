// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module goes while there is work in flight: nothing of it may run afterwards, be it the last
//! instruction of a function that has returned its last reference to the module.

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

/// An application may be late with its request, and too late.
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

/// What is in its tables may sleep when it goes.
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

/// The module is not loaded after all, when the core may have asked its first client already.
#[test]
fn instead_of_being_loaded() {
    explore(Any, || {
        // The callbacks and one client are there.
        refused_while_somebody_registers(2, -22);
    });
}

/// Registrations of the first load have ended, and stay pinned. The module is loaded again and has one of
/// its own when their memory is freed.
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

/// The same, but the memory is freed at any moment.
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

/// A callback that has nothing to do is inside when the module goes, and when it is there again.
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

/// The oldest core deregisters inside of our call, and has its own lock to release after that.
#[test]
fn in_the_cores_answer_to_a_callback() {
    let scenario = || {
        let (module, _registration) = registered(Module::revocable());
        while_freed(|| module.unload());
    };
    let interleavings = count(UpTo(5), Kind::G2, scenario);
    explored("G2", UpTo(5), interleavings);
}
