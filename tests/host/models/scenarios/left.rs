// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a registration leaves behind that ends where nothing is unpinned.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    world::{as_process, task, world},
};

const EDQUOT: i32 = -122;

fn left_behind() -> u32 {
    world().kernel.processes.left(OWNER).0
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

/// Too much are two registrations of a page each, beside others of so many pages each.
fn is_bounded(others: &'static [u64]) {
    explore(UpTo(1), || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        let processes = &world().kernel.processes;
        others.iter().for_each(|&one| processes.leaves(OWNER, one));
        let last = register(page(A)).unwrap();
        as_process(OTHER, || deregister(&last));
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        allocate_for(OTHER, B);
        as_process(OTHER, || deregister(&register(page(B)).unwrap()));
        others.iter().for_each(|&one| processes.freed(OWNER, one));
        free(A);
        free(B);
        assert_eq!(left_behind(), 0);
        module.unload();
    });
}

#[test]
fn a_thousand_registrations_at_most() {
    is_bounded(&[0; 1022]);
}

#[test]
fn sixty_four_gigabytes_at_most() {
    is_bounded(&[(1 << 20) - 2]);
}

/// The memory is another process's, whose objects listed this one and do so no more: the driver
/// finds nothing to unpin, says so to nobody, and calls back later.
fn delisted(exiting: bool) {
    let (module, registration) = registered(Module::revocable());
    world().driver.delist(OWNER);
    task().exiting.set(exiting);
    deregister(&registration);
    task().exiting.set(false);
    assert_eq!(left_behind(), 1);
    // The module must not go before the callback has come.
    while_freed(|| module.unload());
}

#[test]
fn by_a_process_that_ends_and_is_not_listed() {
    explore(Any, || delisted(true));
}

#[test]
fn by_a_process_that_lives_and_is_not_listed() {
    explore(Any, || delisted(false));
}

/// Then nobody has left anything behind: the driver has unpinned, or calls back.
#[test]
fn nothing_while_the_memory_is_freed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        while_freed(|| deregister(&registration));
        assert_eq!(left_behind(), 0);
        module.unload();
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
