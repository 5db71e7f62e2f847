// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The driver has no memory to unpin: the pin and its callback stay until the memory is freed. Two
//! pins end then: the registration's, and one page to see whether the driver finds the process.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::world,
};

#[test]
fn fails_then_the_memory_is_freed() {
    explore(Any, || {
        for successes in [0, 1] {
            let (module, registration) = registered(Module::revocable());
            world().faults.put.set(successes);
            deregister(&registration);
            assert!(world().driver.is_armed());
            while_freed(|| module.unload());
        }
    });
}

#[test]
fn fails_while_the_memory_is_freed() {
    for successes in [0, 1] {
        explore(UpTo(7), move || {
            let (module, registration) = registered(Module::revocable());
            world().faults.put.set(successes);
            while_freed(|| deregister(&registration));
            module.unload();
        });
    }
}

/// Without memory for the question the driver is told to unpin all the same.
#[test]
fn of_a_process_that_could_not_be_looked_for() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        world().faults.get.set(0);
        while_freed(|| deregister(&registration));
        assert!(!world().driver.is_armed());
        module.unload();
    });
}
