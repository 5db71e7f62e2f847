// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The driver has no memory to unpin: the pin and its callback stay until the memory is freed.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{spawn, world},
};

#[test]
fn fails_then_the_memory_is_freed() {
    explore(Any, || {
        let module = Module::revocable();
        allocate(A);
        let registration = register(page(A)).unwrap();
        world().faults.put.set(0);
        deregister(&registration);
        assert!(world().driver.is_armed());
        let freeing = spawn("free", OWNER, || free(A));
        module.unload();
        freeing.join().unwrap();
    });
}

#[test]
fn fails_while_the_memory_is_freed() {
    explore(Any, || {
        let module = Module::revocable();
        allocate(A);
        let registration = register(page(A)).unwrap();
        world().faults.put.set(0);
        let freeing = spawn("free", OWNER, || free(A));
        deregister(&registration);
        freeing.join().unwrap();
        module.unload();
    });
}
