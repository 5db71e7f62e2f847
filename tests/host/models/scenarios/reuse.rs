// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A new pin gets the page table's address of an old one, which somebody is about to unpin: the
//! driver knows pins by that address.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{spawn, world},
};

#[test]
fn by_a_new_registration() {
    explore(UpTo(3), || {
        let module = Module::revocable();
        allocate(A);
        allocate(B);
        world().faults.reuse_tables.set(true);
        let old = register(page(A)).unwrap();
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

/// The same, but the callback for the new one has to come.
#[test]
fn by_a_registration_that_is_revoked_too() {
    explore(UpTo(3), || {
        let module = Module::revocable();
        allocate(A);
        allocate(B);
        world().faults.reuse_tables.set(true);
        let old = register(page(A)).unwrap();
        let deregistering = spawn("old", OWNER, move || deregister(&old));
        let registering = spawn("new", OWNER, || register(page(B)));
        free(A);
        free(B);
        deregistering.join().unwrap();
        if let Ok(new) = registering.join().unwrap() {
            deregister(&new);
        }
        module.unload();
    });
}
