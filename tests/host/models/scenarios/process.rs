// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Another process deregisters than the one that registered: the driver finds nothing to unpin
//! there, does nothing and reports success. Its callback stays armed.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{as_process, spawn, world},
};

#[test]
fn deregisters_then_the_memory_is_freed() {
    explore(Any, || {
        let module = Module::revocable();
        allocate(A);
        let registration = register(page(A)).unwrap();
        as_process(OTHER, || deregister(&registration));
        assert!(world().driver.is_armed());
        let freeing = spawn("free", OWNER, || free(A));
        // The module must not go before the callback has come.
        module.unload();
        freeing.join().unwrap();
    });
}

#[test]
fn deregisters_while_the_memory_is_freed() {
    explore(Any, || {
        let module = Module::revocable();
        allocate(A);
        let registration = register(page(A)).unwrap();
        let freeing = spawn("free", OWNER, || free(A));
        as_process(OTHER, || deregister(&registration));
        freeing.join().unwrap();
        module.unload();
    });
}

/// A pin without callback is undone from any process.
#[test]
fn deregisters_what_is_never_revoked() {
    explore(Any, || {
        let module = Module::persistent();
        allocate(A);
        let registration = register(page(A)).unwrap();
        let freeing = spawn("free", OWNER, || free(A));
        as_process(OTHER, || deregister(&registration));
        freeing.join().unwrap();
        module.unload();
    });
}
