// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! A process deregisters memory that another process has registered. The driver finds no pin of
//! this process, does nothing, and reports success. The driver will therefore still call the
//! callback.

use super::cast::*;
use crate::{
    abi, c,
    explore::{explore, Preemptions::*},
    world::{as_process, world},
};

#[test]
fn deregisters_then_the_memory_is_freed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        assert!(world().driver.is_armed());
        assert_eq!(c::counter(abi::NVPM_COUNT_ORPHANS), 1);
        while_freed(|| module.unload());
    });
}

/// The other process has its own memory at the same address. The driver finds that memory, but must
/// not unpin it.
#[test]
fn deregisters_where_it_has_memory_of_its_own() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        allocate_for(OTHER, A);
        as_process(OTHER, || deregister(&registration));
        assert_eq!(c::counter(abi::NVPM_COUNT_ORPHANS), 1);
        while_freed(|| module.unload());
    });
}

#[test]
fn deregisters_while_the_memory_is_freed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        while_freed(|| as_process(OTHER, || deregister(&registration)));
        module.unload();
    });
}

/// Any process can end a persistent pin, which has no callback.
#[test]
fn deregisters_what_is_never_revoked() {
    explore(Any, || {
        let (module, registration) = registered(Module::persistent());
        while_freed(|| as_process(OTHER, || deregister(&registration)));
        module.unload();
    });
}
