// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The driver cannot unpin, because it lacks memory. The pin then stays until the memory is freed,
//! and at that time the driver calls back.

use super::cast::*;
use crate::{
    abi, c,
    explore::{explore, Preemptions::*},
    world::world,
};

#[test]
fn fails_then_the_memory_is_freed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        world().faults.put.set(0);
        deregister(&registration);
        assert!(world().driver.is_armed());
        while_freed(|| module.unload());
    });
}

#[test]
fn fails_while_the_memory_is_freed() {
    explore(UpTo(7), || {
        let (module, registration) = registered(Module::revocable());
        world().faults.put.set(0);
        while_freed(|| deregister(&registration));
        assert_eq!(c::counter(abi::NVPM_COUNT_ORPHANS), 0);
        module.unload();
    });
}
