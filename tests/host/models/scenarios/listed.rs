// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests what the list of registrations shows to an administrator.

use super::cast::*;
use crate::{
    abi, c,
    explore::{count, explore, explored, Preemptions::*},
    extents::{Range, GPU_PAGE},
    module_ref::ModuleRef,
    peer_client::Client,
    persistent::Persistent,
    process::Process,
    rdma,
    registry::{self, Kind, Registration},
    world::{as_process, spawn, task, watched, world},
};

/// Returns client and state of each registration in the list, the oldest registration first.
fn listed() -> Vec<(Kind, abi::nvpm_region_state)> {
    let kind = |client| match client {
        0 => Kind::Persistent,
        1 => Kind::Revocable,
        _ => Kind::CatchAll,
    };
    let all = c::listed().into_iter();
    all.map(|one| (kind(one.client), one.state.into()))
        .collect()
}

#[test]
fn from_the_first_to_the_last() {
    explore(Any, || {
        for (module, kind) in [
            (Module::persistent as fn() -> _, Kind::Persistent),
            (Module::revocable, Kind::Revocable),
        ] {
            let (module, registration) = registered(module());
            assert_eq!(listed(), [(kind, abi::NVPM_REGION_MAPPED)]);
            deregister(&registration);
            assert_eq!(listed(), []);
            free(A);
            module.unload();
        }
    });
}

/// A line shows the range that the program asked for, and not the pinned pages.
#[test]
fn with_all_that_is_known() {
    explore(UpTo(1), || {
        for module in [Module::persistent, Module::revocable] {
            let module = module();
            allocate(A);
            task().uid.set(1234);
            let registration = register(two_pages(A)).unwrap();
            let all = c::listed();
            let [line] = all.as_slice() else {
                panic!("there is one registration");
            };
            assert_eq!((line.address, line.len), (A + 5, 2 * GPU_PAGE - 10));
            assert_eq!((line.domain, line.devfn), c::ADDRESS);
            assert_eq!((line.since, &line.comm), (c::SECONDS, c::COMM));
            let process = (line.process.tgid, line.process.uid, line.process.born);
            assert_eq!(process, (OWNER, 1234, 1));
            deregister(&registration);
            free(A);
            module.unload();
        }
    });
}

#[test]
fn what_only_the_last_client_serves() {
    explore(Any, || {
        world().faults.no_persistent.set(-12);
        let module = Module::persistent();
        allocate(A);
        assert!(register(page(A)).is_err());
        assert_eq!(listed(), []);
        module.unload();
    });
}

/// A revoked registration stays in the list until its owner deregisters it.
#[test]
fn that_it_was_revoked() {
    explore(UpTo(1), || {
        let (module, registration) = registered(Module::revocable());
        while_freed(|| ());
        let told = listed();
        assert!(told.is_empty() || told == [(Kind::Revocable, abi::NVPM_REGION_REVOKED)]);
        deregister(&registration);
        assert_eq!(listed(), []);
        module.unload();
    });
}

/// Checks that `work` has these events in this order, and that the list shows a registration with
/// these states at these moments.
fn shows(work: fn(), expected: &'static [(&str, abi::nvpm_region_state)]) {
    let interleavings = count(UpTo(1), rdma::Kind::G3b, move || {
        let seen = watched(work);
        let mut seen = seen.iter();
        for (event, state) in expected {
            let found = seen.find(|(what, _)| what == event);
            let (_, states) = found.unwrap_or_else(|| panic!("no event '{event}'"));
            assert_eq!(states, &[*state], "{event}");
        }
    });
    explored("G3b", UpTo(1), interleavings);
}

#[test]
fn in_each_state() {
    let registers = || {
        let (module, registration) = registered(Module::revocable());
        deregister(&registration);
        free(A);
        module.unload();
    };
    shows(
        registers,
        &[
            ("pinned, callback armed", abi::NVPM_REGION_PINNING),
            ("acquired", abi::NVPM_REGION_PINNED),
            ("get_pages", abi::NVPM_REGION_PINNED),
            ("dma_map", abi::NVPM_REGION_PINNED),
            ("the device is on", abi::NVPM_REGION_MAPPED),
            ("dma_unmap", abi::NVPM_REGION_MAPPED),
            ("put_pages", abi::NVPM_REGION_UNMAPPED),
            ("release", abi::NVPM_REGION_UNMAPPED),
            ("unpinned", abi::NVPM_REGION_UNMAPPED),
        ],
    );
    let revokes = || {
        let (module, registration) = registered(Module::revocable());
        free(A);
        deregister(&registration);
        module.unload();
    };
    shows(
        revokes,
        &[
            ("callback begins", abi::NVPM_REGION_MAPPED),
            ("invalidates", abi::NVPM_REGION_REVOKING),
            ("has invalidated", abi::NVPM_REGION_REVOKING),
            ("callback has returned", abi::NVPM_REGION_REVOKED),
            ("release", abi::NVPM_REGION_REVOKED),
        ],
    );
    let keeps = || {
        let (module, registration) = registered(Module::persistent());
        deregister(&registration);
        free(A);
        module.unload();
    };
    shows(
        keeps,
        &[
            ("pinned until put", abi::NVPM_REGION_PINNING),
            ("acquired", abi::NVPM_REGION_PINNED),
            ("dma_map", abi::NVPM_REGION_PINNED),
            ("the device is on", abi::NVPM_REGION_MAPPED),
            ("dma_unmap", abi::NVPM_REGION_MAPPED),
            ("put_pages", abi::NVPM_REGION_UNMAPPED),
            ("release", abi::NVPM_REGION_UNMAPPED),
        ],
    );
}

#[test]
fn an_orphan() {
    explore(Any, || {
        let (module, registration) = registered(Module::revocable());
        as_process(OTHER, || deregister(&registration));
        assert_eq!(listed(), [(Kind::Revocable, abi::NVPM_REGION_ORPHANED)]);
        while_freed(|| module.unload());
        assert_eq!(listed(), []);
    });
}

/// A reader reaches the end of the list, and sees no registration twice, although a registration
/// becomes an orphan and is forgotten meanwhile.
#[test]
fn an_orphan_at_most_once() {
    explore(UpTo(3), || {
        let (module, registration) = registered(Module::revocable());
        let reader = spawn("reader", OTHER, || c::listed().len());
        while_freed(|| as_process(OTHER, || deregister(&registration)));
        assert!(reader.join().unwrap() <= 1);
        assert_eq!(listed(), []);
        module.unload();
    });
}

/// A thread that waits for a change of a registration's phase must continue when the registration
/// ends.
#[test]
fn no_more_when_it_ends() {
    explore(Any, || {
        let module = Module::revocable();
        let range = Range::new(A, GPU_PAGE).unwrap();
        let module_ref = ModuleRef::get().unwrap();
        let registered =
            Registration::new(&range, Process::current(), Kind::Persistent, module_ref).unwrap();
        let number = registered.number();
        let waiting = spawn("waits", OWNER, move || {
            registry::update_when(number, |_| None::<()>)
        });
        drop(registered);
        assert_eq!(waiting.join().unwrap(), None);
        module.unload();
    });
}

/// A reader of the list sees each registration that exists all the time exactly once, while other
/// registrations begin and end and a callback runs.
#[test]
fn once_whatever_comes_and_goes() {
    explore(UpTo(2), || {
        let (module, goes) = registered(Module::revocable());
        allocate(B);
        let [first, last] = [B, B + GPU_PAGE].map(|address| register(page(address)).unwrap());
        let other = spawn("other", OWNER, move || {
            deregister(&goes);
            end(register(page(A)));
        });
        let found = while_freed(|| {
            let addresses = c::listed().into_iter().map(|one| one.address);
            addresses
                .filter(|&address| address >= B)
                .collect::<Vec<_>>()
        });
        assert_eq!(found, [B, B + GPU_PAGE]);
        other.join().unwrap();
        deregister(&first);
        deregister(&last);
        free(B);
        module.unload();
    });
}

/// The core calls the module for a registration that has ended. The call must find no record, and
/// must free the resources that it has made.
#[test]
fn no_more_for_a_late_call() {
    explore(Any, || {
        let module = Module::persistent();
        allocate(A);
        let range = Range::new(A, GPU_PAGE).unwrap();
        let module_ref = ModuleRef::get().unwrap();
        let registered =
            Registration::new(&range, Process::current(), Kind::Persistent, module_ref).unwrap();
        let number = registered.number();
        drop(registered);
        assert_eq!(
            Persistent::acquire(number, &range, Process::current()),
            Ok(true)
        );
        assert!(!world().driver.is_pinned());
        Persistent::dma_unmap(number);
        free(A);
        module.unload();
    });
}
