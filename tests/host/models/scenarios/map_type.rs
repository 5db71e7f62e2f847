// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the question whether a device may reach a GPU's memory, and whether the module or the
//! driver maps it. The module asks the driver once for each pair.

use super::cast::*;
use crate::{
    c::known_pairs,
    explore::{explore, Preemptions::*},
    rdma::Request,
    world::{spawn, world},
};

const EOPNOTSUPP: i32 = -95;
const ENOMEM: i32 = -12;
const EIO: i32 = -5;

/// Explores `scenario` with both ways to load the module; the pair is unknown at the beginning.
fn each_module(scenario: impl Fn(fn() -> Module) + Sync + Send + Copy + 'static) {
    explore(UpTo(3), move || {
        for module in [Module::revocable, Module::persistent] {
            world().faults.unasked.set(true);
            scenario(module);
        }
    });
}

/// Returns how often the driver has mapped.
fn mapped() -> u32 {
    world().driver.mapped()
}

#[test]
fn is_asked_once() {
    each_module(|module| {
        let before = mapped();
        let module = module();
        allocate(A);
        let first = register(two_pages(A)).unwrap();
        let again = Request {
            device: Some(first.device()),
            ..page(A)
        };
        let second = register(again).unwrap();
        assert_eq!(mapped() - before, 1);
        assert_eq!(known_pairs(), 1);
        deregister(&first);
        deregister(&second);
        let other = register(page(A)).unwrap();
        assert_eq!(mapped() - before, 2, "another device is another pair");
        deregister(&other);
        free(A);
        module.unload();
    });
}

/// The module must forget the pair, because another device may get the removed device's address.
#[test]
fn is_forgotten_with_the_device() {
    each_module(|module| {
        let module = module();
        allocate(A);
        let registration = register(page(A)).unwrap();
        deregister(&registration);
        assert_eq!(known_pairs(), 1);
        registration.remove_device();
        assert_eq!(known_pairs(), 0);
        free(A);
        module.unload();
    });
}

/// The next question about any pair releases a removed device; no reader of the list is needed.
#[test]
fn is_forgotten_with_the_next_question() {
    each_module(|module| {
        let module = module();
        allocate(A);
        let gone = register(page(A)).unwrap();
        deregister(&gone);
        gone.remove_device();
        end(Ok(register(page(A)).unwrap()));
        assert_eq!(gone.device_references(), 0);
        free(A);
        module.unload();
    });
}

/// The module does not read a mapping of an unknown version.
#[test]
fn a_mapping_of_another_version() {
    each_module(|module| {
        let module = module();
        allocate(A);
        world().faults.unknown_mapping.set(true);
        assert_eq!(register(page(A)).err(), Some(EOPNOTSUPP));
        assert_eq!(known_pairs(), 0);
        free(A);
        module.unload();
    });
}

#[test]
fn a_pair_that_is_refused() {
    each_module(|module| {
        let module = module();
        allocate(A);
        world().faults.refuses_to_map.set(-524);
        assert_eq!(register(page(A)).err(), Some(EOPNOTSUPP));
        world().faults.refuses_to_map.set(0);
        free(A);
        module.unload();
    });
}

/// A failure that may be transient must not be remembered as a verdict.
#[test]
fn a_failure_to_map() {
    each_module(|module| {
        let module = module();
        allocate(A);
        world().faults.refuses_to_map.set(EIO);
        assert_eq!(register(page(A)).err(), Some(EIO));
        assert_eq!(known_pairs(), 0);
        world().faults.refuses_to_map.set(0);
        end(register(page(A)));
        free(A);
        module.unload();
    });
}

/// The module could not map the page to compare addresses, which is not a verdict either.
#[test]
fn a_failure_to_map_it_ourselves() {
    each_module(|module| {
        let module = module();
        allocate(A);
        // The first mapping is the driver's.
        world().faults.mapping.set(1);
        assert_eq!(register(page(A)).err(), Some(EIO));
        assert_eq!(known_pairs(), 0);
        end(Ok(register(page(A)).unwrap()));
        free(A);
        module.unload();
    });
}

/// The driver has no persistent pins for the memory: the module asks again with other memory.
#[test]
fn no_pin_to_ask_with() {
    explore(UpTo(3), || {
        for errno in [-524, EIO] {
            let module = Module::revocable();
            world().faults.unasked.set(true);
            allocate(A);
            world().faults.no_persistent.set(errno);
            end(Ok(register(page(A)).unwrap()));
            assert_eq!(known_pairs(), 0);
            world().faults.no_persistent.set(0);
            world().faults.refuses_to_map.set(-524);
            assert_eq!(register(page(A)).err(), Some(EOPNOTSUPP));
            world().faults.refuses_to_map.set(0);
            free(A);
            module.unload();
        }
    });
}

/// Memory behind a coherent link cannot be mapped before the kernel uses it.
#[test]
fn coherent_memory_that_is_not_online() {
    each_module(|module| {
        let before = mapped();
        let module = module();
        allocate(A);
        world().faults.offline.set(true);
        assert_eq!(register(page(A)).err(), Some(EOPNOTSUPP));
        assert_eq!(known_pairs(), 0);
        world().faults.offline.set(false);
        assert_eq!(mapped(), before);
        end(Ok(register(page(A)).unwrap()));
        free(A);
        module.unload();
    });
}

/// The driver can make persistent pins, so the failure to pin one page is transient.
#[test]
fn a_failure_to_pin_the_page_to_ask_with() {
    explore(UpTo(3), || {
        let module = Module::persistent();
        world().faults.unasked.set(true);
        allocate(A);
        world().faults.persistent.set(1);
        assert_eq!(register(page(A)).err(), Some(EIO));
        assert_eq!(known_pairs(), 0);
        end(Ok(register(page(A)).unwrap()));
        free(A);
        module.unload();
    });
}

/// The driver cannot map memory behind a coherent link before the kernel has pages for it. This
/// failure says nothing about the pair.
#[test]
fn coherent_memory_without_its_pages() {
    explore(UpTo(3), || {
        world().faults.coherent.set(true);
        world().faults.unasked.set(true);
        let module = Module::persistent();
        allocate(A);
        world().faults.refuses_to_map.set(-524);
        assert_eq!(register(page(A)).err(), Some(EOPNOTSUPP));
        assert_eq!(known_pairs(), 0);
        world().faults.refuses_to_map.set(0);
        end(Ok(register(page(A)).unwrap()));
        free(A);
        module.unload();
    });
}

/// Checks a pair for which the driver's addresses differ from the kernel's: the driver maps
/// persistent registrations, and others fail.
fn only_the_driver_maps(device: Request) {
    world().faults.unasked.set(true);
    allocate(A);
    let module = Module::revocable();
    assert_eq!(register(device).err(), Some(EOPNOTSUPP));
    module.unload();
    let module = Module::persistent();
    let registration = register(device).unwrap();
    assert!(world().driver.maps());
    deregister(&registration);
    free(A);
    module.unload();
}

fn direct() -> Request {
    Request {
        direct: true,
        ..page(A)
    }
}

/// The addresses on the bus that device and GPU share differ from the processor's addresses.
#[test]
fn addresses_of_another_bus() {
    explore(UpTo(3), || {
        world().faults.bus_offset.set(Some(1 << 45));
        only_the_driver_maps(direct());
    });
}

/// A mapping has its own page size, independent of the size of the pinned pages.
#[test]
fn mapped_in_smaller_pages_than_pinned() {
    explore(UpTo(3), || {
        world().faults.bus_offset.set(Some(1 << 45));
        world().faults.small_mapped_pages.set(true);
        only_the_driver_maps(direct());
    });
}

/// The driver bypasses the IOMMU (NVreg_DmaRemapPeerMmio=0).
#[test]
fn addresses_beside_the_iommu() {
    explore(UpTo(3), || {
        world().faults.bus_offset.set(Some(0));
        only_the_driver_maps(page(A));
    });
}

#[test]
fn the_same_address() {
    explore(UpTo(3), || {
        world().faults.unasked.set(true);
        world().faults.bus_offset.set(Some(0));
        for module in [Module::revocable, Module::persistent] {
            let module = module();
            allocate(A);
            let registration = register(direct()).unwrap();
            assert!(!world().driver.maps());
            deregister(&registration);
            free(A);
            module.unload();
        }
    });
}

#[test]
fn memory_behind_a_coherent_link() {
    explore(UpTo(3), || {
        world().faults.coherent.set(true);
        only_the_driver_maps(page(A));
    });
}

#[test]
fn while_the_memory_is_freed() {
    explore(UpTo(3), || {
        world().faults.unasked.set(true);
        register_while_freed(Module::revocable(), page(A));
    });
    explore(UpTo(3), || {
        world().faults.unasked.set(true);
        register_while_freed(Module::persistent(), page(A));
    });
}

/// Two registrations ask at the same time, while a third registration is revoked.
#[test]
fn by_two_threads() {
    explore(UpTo(2), || {
        let (module, third) = registered(Module::revocable());
        world().faults.unasked.set(true);
        allocate(B);
        let device = third.device();
        let request = Request {
            device: Some(device),
            ..page(B)
        };
        let other = spawn("other", OWNER, move || register(request).unwrap());
        while_freed(|| deregister(&register(request).unwrap()));
        deregister(&other.join().unwrap());
        deregister(&third);
        free(B);
        module.unload();
    });
}

#[test]
fn without_memory() {
    explore(UpTo(2), || {
        for successes in 0.. {
            world().faults.unasked.set(true);
            let module = Module::persistent();
            allocate(A);
            world().faults.allocation.set(successes);
            let registered = register(page(A));
            let failed = !world().faults.allocation.is_set();
            // If the verdict could not be stored, the registration still succeeds, and the next one
            // asks again.
            assert!(registered.is_ok() || registered.as_ref().err() == Some(&ENOMEM));
            end(registered);
            free(A);
            module.unload();
            if !failed {
                break;
            }
        }
    });
}

/// The driver refuses only one of two GPUs. Memory of the other GPU is freed while it is
/// registered, and memory of the refused GPU takes its address. The refusal must not count for the
/// pair with the other GPU.
#[test]
fn of_another_gpu_at_the_same_address() {
    each_module(|module| {
        let module = module();
        let driver = &world().driver;
        world().faults.refuses_to_map.set(-524);
        world().faults.refused_gpu.set(Some(8));
        driver.allocate_on(7, OWNER, A);
        driver.allocate_on(7, OWNER, B);
        let device = world().rdma.new_device(page(A));
        let on = move |address| Request {
            device: Some(device),
            ..page(address)
        };
        let other = spawn("other", OWNER, || {
            free(A);
            world().driver.allocate_on(8, OWNER, A);
        });
        end(register(on(A)));
        other.join().unwrap();
        end(Ok(register(on(B)).expect("this GPU was never refused")));
        free(A);
        free(B);
        world().faults.refuses_to_map.set(0);
        module.unload();
    });
}
