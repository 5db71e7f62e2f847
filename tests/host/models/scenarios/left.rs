// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a registration leaves behind that ends where nothing is unpinned.

use super::cast::*;
use crate::{
    abi, c,
    compat::edquot,
    explore::{explore, Preemptions::*},
    extents::{Range, GPU_PAGE},
    peer_client::{Client, Kind, Region},
    registry::{first_orphan, ModuleRef, Owner, Registered, REGISTRY},
    revocable::Revocable,
    world::{as_process, spawn, task, world},
};

const EDQUOT: i32 = -122;

/// The process of that number, which all began at the same time.
fn process(tgid: i32) -> Owner {
    Owner::Process { born: 1, tgid }
}

/// All processes are of one user.
const USER: Owner = Owner::User(0);

/// The process has left a registration of so many pages behind, as far as anyone counts.
fn leaves(process: Owner, pages: u64) {
    for owner in [process, USER] {
        let mut first = Some(first_orphan(owner, pages));
        let registry = REGISTRY.get().expect("the module is loaded");
        registry.lock().charge(owner, pages, &mut first);
    }
}

/// Its memory is freed.
fn freed(process: Owner, pages: u64) {
    for owner in [process, USER] {
        let registry = REGISTRY.get().expect("the module is loaded");
        let last = registry.lock().discharge(owner, pages);
        drop(last);
    }
}

/// The driver has pinned memory of which the registration ends in a thread of the kernel, as where a
/// device is reset: the process has not chosen that, and may go on; its user's bound is wider.
#[test]
fn by_a_thread_of_the_kernel() {
    explore(UpTo(1), || {
        let (module, registration) = registered(Module::revocable());
        let owner = process(OWNER);
        (0..1023).for_each(|_| leaves(owner, 0));
        as_process(OTHER, || {
            task().kthread.set(true);
            deregister(&registration);
        });
        assert_eq!(left_behind(), 1);
        end(Ok(register(page(A)).expect("the process may go on")));
        let others = (process(OTHER), (16 << 20) - 1);
        leaves(others.0, others.1);
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        freed(others.0, others.1);
        (0..1023).for_each(|_| freed(owner, 0));
        free(A);
        assert_eq!(left_behind(), 0);
        module.unload();
    });
}

/// The core learns the reason from a registration that is listed as refused until it is released.
#[test]
fn is_refused_and_listed_so() {
    explore(Any, || {
        let module = Module::revocable();
        leaves(process(OWNER), 1 << 20);
        let range = Range::new(A, GPU_PAGE).unwrap();
        let module_ref = ModuleRef::get().unwrap();
        let registered = Registered::new(&range, Kind::Revocable as u8, module_ref).unwrap();
        let mut region = Revocable::acquire(range, registered).unwrap().unwrap();
        assert_eq!(region.get_pages(0), Err(edquot()));
        let states = || c::listed().iter().map(|one| one.state.into()).collect();
        let listed: Vec<abi::nvpm_region_state> = states();
        assert_eq!(listed, [abi::NVPM_REGION_REFUSED]);
        region.release();
        assert!(c::listed().is_empty());
        freed(process(OWNER), 1 << 20);
        module.unload();
    });
}

fn left_behind() -> u64 {
    c::counter("left_behind")
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
        let owner = process(OWNER);
        others.iter().for_each(|&one| leaves(owner, one));
        let last = register(page(A)).unwrap();
        as_process(OTHER, || deregister(&last));
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        allocate_for(OTHER, B);
        as_process(OTHER, || deregister(&register(page(B)).unwrap()));
        others.iter().for_each(|&one| freed(owner, one));
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

/// Each process of a user leaves less behind than it may, and a user's next one must not go on.
#[test]
fn sixteen_times_as_much_of_a_user() {
    explore(UpTo(1), || {
        let module = Module::revocable();
        allocate(A);
        let others: Vec<_> = (100..117).map(process).collect();
        let each = |one: &Owner| leaves(*one, (1 << 20) - 1);
        others.iter().take(16).for_each(each);
        end(Ok(register(page(A)).unwrap()));
        others.iter().skip(16).for_each(each);
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        others.iter().for_each(|one| freed(*one, (1 << 20) - 1));
        free(A);
        module.unload();
    });
}

/// The number of a process that has left much behind, and ended, comes again. The new one has
/// nothing to do with that, and may not unpin it.
#[test]
fn by_a_process_whose_number_comes_again() {
    explore(UpTo(1), || {
        let (module, registration) = registered(Module::revocable());
        let gone = process(OWNER);
        leaves(gone, 1 << 20);
        task().born.set(2);
        end(Ok(register(page(A)).unwrap()));
        deregister(&registration);
        assert_eq!(left_behind(), 1);
        freed(gone, 1 << 20);
        free(A);
        assert_eq!(left_behind(), 0);
        module.unload();
    });
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

/// A server that holds its memory sees the process end, and delists it, while the process closes
/// its files: the driver would find it, and then not.
#[test]
fn by_a_process_that_ends_while_it_is_delisted() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        let server = spawn("server", OTHER, || world().driver.delist(OWNER));
        task().exiting.set(true);
        deregister(&registration);
        task().exiting.set(false);
        server.join().unwrap();
        assert_eq!(left_behind(), 1);
        while_freed(|| module.unload());
    });
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
