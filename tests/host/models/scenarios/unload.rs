// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The module goes while there is work in flight: nothing of it may run afterwards, be it the last
//! instruction of a function that has returned its last reference to the module.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{spawn, world},
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

/// What waits for the last callback asks the driver, which may have no memory at first.
#[test]
fn when_the_driver_has_no_memory() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        world().faults.put.set(0);
        deregister(&registration);
        world().faults.get.set(0);
        while_freed(|| module.unload());
    });
}

/// The module is not loaded after all, when the core may have asked its first client already.
#[test]
fn instead_of_being_loaded() {
    explore(Any, || {
        allocate(A);
        let registering = spawn("reg", OWNER, || register(page(A)).err());
        Module::refused();
        let error = registering.join().unwrap();
        assert!(
            error.is_some(),
            "registered with a module that is not there"
        );
        free(A);
    });
}
