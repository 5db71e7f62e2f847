// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Lets each allocation of the module fail.

use std::sync::{
    atomic::{AtomicBool, Ordering::Relaxed},
    Arc,
};

use super::cast::*;
use crate::{
    explore::{count, explored, Preemptions, Preemptions::*},
    rdma::KINDS,
    world::world,
};

const ENOMEM: i32 = -12;

/// Explores `scenario` several times. The first time its first allocation fails, the second time
/// its second allocation, and so on, until no allocation fails. The scenario gets a function. It
/// calls this function to begin the count of allocations. The scenario returns whether an
/// allocation has failed.
fn at_each_allocation(
    preemptions: Preemptions,
    scenario: impl Fn(&dyn Fn()) -> bool + Copy + Send + Sync + 'static,
) {
    for core in KINDS {
        let mut total = 0;
        for successes in 0.. {
            let failed = Arc::new(AtomicBool::new(false));
            let seen = failed.clone();
            total += count(preemptions, core, move || {
                let begin = || world().faults.allocation.set(successes);
                if scenario(&begin) {
                    seen.store(true, Relaxed);
                }
            });
            if !failed.load(Relaxed) {
                assert!(successes > 0, "nothing was allocated");
                explored(
                    &format!("{core:?}, {successes} allocations"),
                    preemptions,
                    total,
                );
                break;
            }
        }
    }
}

/// Registers memory and deregisters it. If the registration fails, the user must receive ENOMEM.
fn alone(module: Module, begin: &dyn Fn()) -> bool {
    allocate(A);
    begin();
    let registered = register(two_pages(A));
    let failed = !world().faults.allocation.is_set();
    assert_eq!(registered.as_ref().err(), failed.then_some(&ENOMEM));
    end(registered);
    module.unload();
    failed
}

#[test]
fn revocable() {
    at_each_allocation(Any, |begin| alone(Module::revocable(), begin));
}

#[test]
fn in_a_range() {
    at_each_allocation(Any, |begin| {
        world().faults.ranges.set(true);
        alone(Module::revocable(), begin)
    });
}

#[test]
fn persistent() {
    at_each_allocation(Any, |begin| alone(Module::persistent(), begin));
}

#[test]
fn while_the_memory_is_freed() {
    at_each_allocation(UpTo(4), |begin| {
        let module = Module::revocable();
        begin();
        register_while_freed(module, page(A), Some(ENOMEM));
        !world().faults.allocation.is_set()
    });
}
