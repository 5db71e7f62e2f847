// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests registrations that become orphans, because they end in a process that cannot unpin their
//! pages.

use super::cast::*;
use crate::{
    abi, c,
    explore::{explore, Preemptions::*},
    orphans::Users,
    registry::REGISTRY,
    world::{as_process, spawn, task, world, USER},
};

const EDQUOT: i32 = -122;
const EFAULT: i32 = -14;

/// The limits of a user. ORPHANS limits the number of orphans, and PAGES the number of all their
/// pages.
const ORPHANS: u32 = 16_384;
const PAGES: u32 = 1 << 26;

/// Changes the user's counts as if the user had `orphans` orphans. The first of these orphans has
/// `pages` pages.
fn leaves(user: u32, orphans: u32, pages: u32) {
    let mut node = Some(Users::new_node(user).unwrap());
    REGISTRY.with(|registry| {
        for at in 0..orphans {
            assert_eq!(registry.users.add(user, &mut node), Some(true));
            registry.users.orphan(user, if at == 0 { pages } else { 0 });
        }
    });
}

/// Undoes the change of [`leaves`], as if the orphans' memory had been freed. Fails if the user has
/// an entry after that, which nobody would remove.
fn freed(user: u32, orphans: u32, pages: u32) {
    let last = REGISTRY.with(|registry| {
        let mut last = None;
        for at in 0..orphans {
            registry.users.freed(user, if at == 0 { pages } else { 0 });
            last = registry.users.remove(user);
        }
        last
    });
    assert!(last.flatten().is_some(), "the user has registrations left");
}

fn counted() -> u64 {
    c::counter(abi::NVPM_COUNT_ORPHANS)
}

#[test]
fn is_counted_until_the_memory_is_freed() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        assert_eq!(counted(), 1);
        while_freed(|| ());
        assert_eq!(counted(), 0);
        module.unload();
    });
}

#[test]
fn or_until_the_module_goes() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        while_freed(|| module.unload());
    });
}

/// Makes an orphan: registers the page at `address`, and lets another process deregister the page.
fn leave(address: u64) {
    let registration = register(page(address)).unwrap();
    as_process(OTHER, || deregister(&registration));
}

/// Checks that a user with these counts can get two more orphans of one page each, and then reaches
/// the limit.
fn is_bounded(orphans: u32, pages: u32) {
    explore(UpTo(1), move || {
        let module = Module::revocable();
        leaves(USER, orphans, pages);
        allocate(A);
        leave(A);
        leave(A);
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        assert_eq!(c::counter(abi::NVPM_COUNT_FAILED_ORPHANS), 1);
        // The module does not claim memory that is not the GPU's, even if the user has too many
        // orphans.
        assert_eq!(register(page(B)).err(), Some(EFAULT));
        // An orphan does not count any more after its memory is freed.
        free(A);
        allocate(B);
        leave(B);
        leave(B);
        assert_eq!(register(page(B)).err(), Some(EDQUOT));
        free(B);
        freed(USER, orphans, pages);
        assert_eq!(counted(), 0);
        module.unload();
    });
}

#[test]
fn sixteen_thousand_registrations_at_most() {
    is_bounded(ORPHANS - 2, 0);
}

#[test]
fn four_terabytes_at_most() {
    is_bounded(1, PAGES - 2);
}

/// An orphan counts with all its pages, and none of them counts after the memory is freed.
#[test]
fn counts_with_all_its_pages() {
    explore(UpTo(1), || {
        let module = Module::revocable();
        leaves(USER, 1, PAGES - 2);
        allocate(A);
        let registration = register(two_pages(A)).unwrap();
        as_process(OTHER, || deregister(&registration));
        assert_eq!(counted(), 1);
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        free(A);
        assert_eq!(counted(), 0);
        allocate(B);
        leave(B);
        leave(B);
        assert_eq!(register(page(B)).err(), Some(EDQUOT));
        free(B);
        freed(USER, 1, PAGES - 2);
        module.unload();
    });
}

/// A user's orphans do not count for other users. Root may have any number of orphans, because root
/// is the same user in many containers.
#[test]
fn by_another_user_and_by_root() {
    explore(UpTo(1), || {
        let module = Module::revocable();
        leaves(USER, ORPHANS, 0);
        leaves(0, ORPHANS, 0);
        leaves(1, ORPHANS, 0);
        allocate(A);
        let full = Some(EDQUOT);
        for (user, result) in [(USER, full), (USER + 1, None), (0, None), (1, full)] {
            task().uid.set(user);
            let registered = register(page(A));
            assert_eq!(registered.as_ref().err(), result.as_ref());
            end(registered);
        }
        freed(USER, ORPHANS, 0);
        freed(0, ORPHANS, 0);
        freed(1, ORPHANS, 0);
        free(A);
        module.unload();
    });
}

/// An orphan counts for the user who has registered the memory, and not for the user of the process
/// that deregisters it.
#[test]
fn counts_for_the_user_who_has_registered() {
    explore(UpTo(1), || {
        let module = Module::revocable();
        leaves(USER, ORPHANS - 1, 0);
        allocate(A);
        let registration = register(page(A)).unwrap();
        as_process(OTHER, || {
            task().uid.set(USER + 1);
            deregister(&registration);
        });
        assert_eq!(register(page(A)).err(), Some(EDQUOT));
        free(A);
        allocate(B);
        end(Ok(register(page(B)).unwrap()));
        free(B);
        freed(USER, ORPHANS - 1, 0);
        module.unload();
    });
}

#[test]
fn leaves_no_entry_of_its_user() {
    explore(UpTo(1), || {
        let module = Module::revocable();
        allocate(A);
        leave(A);
        end(Ok(register(page(A)).unwrap()));
        free(A);
        assert_no_entry();
        module.unload();
    });
}

/// Fails if the user still has an entry.
fn assert_no_entry() {
    let entry = REGISTRY.with(|registry| registry.users.add(USER, &mut None));
    assert_eq!(
        entry,
        Some(None),
        "the entry of a user without registrations stays"
    );
}

/// Two threads of a user make the user's first registration at the same time, and both look for the
/// user's entry, which the other thread may have made or removed.
#[test]
fn leaves_no_entry_while_others_come_and_go() {
    explore(UpTo(2), || {
        let module = Module::revocable();
        allocate(A);
        allocate(B);
        let other = spawn("other", OWNER, || {
            for _ in 0..2 {
                end(Ok(register(page(B)).unwrap()));
            }
        });
        end(Ok(register(page(A)).unwrap()));
        other.join().unwrap();
        assert_no_entry();
        free(A);
        free(B);
        module.unload();
    });
}

/// While a user registers memory, another registration of the user becomes an orphan, and its memory
/// is freed.
#[test]
fn is_freed_while_its_user_registers() {
    explore(UpTo(2), || {
        let (module, registration) = registered(Module::revocable());
        allocate(B);
        let other = spawn("other", OWNER, || end(Ok(register(page(B)).unwrap())));
        while_freed(|| as_process(OTHER, || deregister(&registration)));
        other.join().unwrap();
        assert_eq!(counted(), 0);
        assert_no_entry();
        free(B);
        module.unload();
    });
}

/// The process that has registered the memory has ended, and another process has got its number.
/// This process must not unpin the memory.
#[test]
fn by_a_process_whose_number_comes_again() {
    explore(UpTo(1), || {
        let (module, registration) = registered(Module::revocable());
        task().born.set(2);
        deregister(&registration);
        assert_eq!(counted(), 1);
        free(A);
        assert_eq!(counted(), 0);
        module.unload();
    });
}

/// The memory belongs to another process. The driver's object for the memory has listed this
/// process, but does not list it any more. When this process unpins, the driver therefore does not
/// find the pin, but reports success. The driver calls back later.
fn delisted(exiting: bool) {
    let (module, registration) = registered(Module::revocable());
    world().driver.delist(A);
    task().exiting.set(exiting);
    deregister(&registration);
    task().exiting.set(false);
    // If the process is not exiting, the module cannot know that the driver has found no pin. The
    // module therefore does not count an orphan.
    assert_eq!(counted(), u64::from(exiting));
    assert!(world().driver.is_armed());
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

/// The other process removes this process from the list at any moment of the deregistration.
#[test]
fn by_a_process_that_lives_while_it_is_delisted() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        let server = spawn("server", OTHER, || world().driver.delist(A));
        deregister(&registration);
        server.join().unwrap();
        while_freed(|| module.unload());
    });
}

/// The other process removes this process from the list of its object. `objects` other objects
/// still list this process, because it has its own memory at the same address.
fn listed_by_others(objects: u32) {
    explore(Any, move || {
        let (module, registration) = registered(Module::revocable());
        world().driver.delist(A);
        (0..objects).for_each(|_| allocate(A));
        deregister(&registration);
        assert!(world().driver.is_armed());
        module.unload();
        (0..=objects).for_each(|_| free(A));
    });
}

#[test]
fn by_a_process_that_another_object_lists() {
    listed_by_others(1);
}

#[test]
fn by_a_process_that_two_other_objects_list() {
    listed_by_others(2);
}

/// The process has registered memory of a server. When the process ends, the kernel closes the
/// files of the process, and at that time the server removes the process from the list. The driver
/// may therefore find the pin at the beginning of the deregistration, but not at its end.
#[test]
fn by_a_process_that_ends_while_it_is_delisted() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        let server = spawn("server", OTHER, || world().driver.delist(A));
        task().exiting.set(true);
        deregister(&registration);
        task().exiting.set(false);
        server.join().unwrap();
        assert_eq!(counted(), 1);
        while_freed(|| module.unload());
    });
}

/// Tests the usual end of a process, in which the registrations end before the driver's objects of
/// the process.
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
