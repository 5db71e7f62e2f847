// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a registration leaves behind that ends where nothing is unpinned.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{as_process, task, world},
};

const EDQUOT: i32 = -122;

fn left_behind() -> i64 {
    world().kernel.processes.left(OWNER as usize).0
}

#[test]
fn is_counted_until_the_memory_is_freed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        assert_eq!(left_behind(), 1);
        while_freed(|| module.unload());
        assert_eq!(left_behind(), 0);
    });
}

/// So many registrations that one more is too many, or so many pages.
fn is_bounded(registrations: i64, pages: i64) {
    explore(UpTo(1), move || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        let processes = &world().kernel.processes;
        let owner = OWNER as usize;
        // As if there were so many more, but one.
        processes.leave(owner, registrations - 2, pages - 2);
        let last = register(page(A)).unwrap();
        as_process(OTHER, || deregister(&last));
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        allocate_for(OTHER, B);
        as_process(OTHER, || deregister(&register(page(B)).unwrap()));
        processes.leave(owner, 2 - registrations, 2 - pages);
        free(A);
        free(B);
        assert_eq!(left_behind(), 0);
        module.unload();
    });
}

#[test]
fn a_thousand_registrations_at_most() {
    is_bounded(1024, 2);
}

#[test]
fn sixty_four_gigabytes_at_most() {
    is_bounded(2, 1 << 20);
}

/// A process that ends may have lost its own objects of the driver, while another's hold the memory
/// still: the driver finds nothing to unpin, says so to nobody, and calls back later.
#[test]
fn unregistered() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        world().driver.unregister(OWNER);
        task().exiting.set(true);
        deregister(&registration);
        task().exiting.set(false);
        // The module must not go before the callback has come.
        while_freed(|| module.unload());
    });
}

/// As it mostly is: the driver's objects of the process end after its registrations.
#[test]
fn by_a_process_that_ends() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        task().exiting.set(true);
        while_freed(|| deregister(&registration));
        task().exiting.set(false);
        module.unload();
    });
}
