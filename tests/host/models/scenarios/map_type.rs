// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests whether the module finds out if a device may reach a GPU's memory, and if the module or
//! the driver maps the memory. The module asks the driver once for each pair.

use super::cast::*;
use crate::{
    c::{known_pairs, pairs},
    driver::FIRST_GPU,
    explore::{explore, Preemptions::*},
    rdma::Request,
    world::{spawn, world},
};

const EOPNOTSUPP: i32 = -95;
const ENOMEM: i32 = -12;
const EIO: i32 = -5;

/// Explores `scenario` with each value of persistent_api_support. At the beginning the module knows
/// no pair.
fn each_module(scenario: impl Fn(fn() -> Module) + Sync + Send + Copy + 'static) {
    explore(UpTo(3), move || {
        for module in [Module::revocable, Module::persistent] {
            world().faults.unasked.set(true);
            scenario(module);
        }
    });
}

/// Returns how often the driver has mapped pages for a device.
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

/// After a device is removed, another device may have the same address in memory, so the module
/// must forget the pair.
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

/// When the module asks the driver about any pair, it also forgets the pairs of removed devices,
/// even if no program reads the list of pairs.
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

/// A removed device has met two GPUs. The module forgets both pairs, and lists the pairs of another
/// device.
#[test]
fn is_forgotten_for_each_gpu() {
    const OTHER_GPU: u8 = FIRST_GPU + 1;
    explore(UpTo(1), || {
        world().faults.unasked.set(true);
        let module = Module::persistent();
        allocate(A);
        world().driver.allocate_on(OTHER_GPU, OWNER, B);
        let gone = register(page(A)).unwrap();
        let there = register(page(A)).unwrap();
        for device in [gone.device(), there.device()] {
            end(register(Request {
                device: Some(device),
                ..page(B)
            }));
        }
        deregister(&gone);
        deregister(&there);
        assert_eq!(known_pairs(), 4);
        gone.remove_device();
        // The question about a third device makes the module forget.
        end(register(page(A)));
        assert_eq!(gone.device_references(), 0);
        assert_eq!(
            pairs()
                .iter()
                .filter(|pair| pair.1 == gone.device())
                .count(),
            0
        );
        assert_eq!(
            pairs()
                .iter()
                .filter(|pair| pair.1 == there.device())
                .count(),
            2
        );
        free(A);
        free(B);
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

/// Two GPUs and two devices make four pairs, and the list has the answer about each of them.
#[test]
fn is_listed_for_each_pair() {
    const OTHER_GPU: u8 = FIRST_GPU + 1;
    explore(UpTo(1), || {
        world().faults.unasked.set(true);
        world().faults.refused_gpu.set(Some(OTHER_GPU));
        world().faults.refuses_to_map.set(-524);
        let module = Module::persistent();
        allocate(A);
        world().driver.allocate_on(OTHER_GPU, OWNER, B);
        let devices = [page(A), page(A)].map(|request| world().rdma.new_device(request));
        let mut expected = Vec::new();
        for device in devices {
            for address in [A, B] {
                end(register(Request {
                    device: Some(device),
                    ..page(address)
                }));
            }
            expected.push((FIRST_GPU, device, "ours"));
            expected.push((OTHER_GPU, device, "refused"));
        }
        let mut found = pairs();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        free(A);
        free(B);
        module.unload();
    });
}

#[test]
fn is_listed_with_the_drivers_mapping() {
    explore(UpTo(1), || {
        world().faults.unasked.set(true);
        world().faults.bus_offset.set(Some(1 << 45));
        let module = Module::persistent();
        allocate(A);
        let registration = register(direct()).unwrap();
        assert_eq!(pairs(), [(FIRST_GPU, registration.device(), "driver")]);
        deregister(&registration);
        free(A);
        module.unload();
    });
}

/// A failure to map the page may be temporary. The module must not remember such a failure as an
/// answer about the pair.
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

/// The module's own mapping of the page fails, so the module cannot compare the addresses. The
/// module must not remember this failure either.
#[test]
fn a_failure_to_map_it_ourselves() {
    each_module(|module| {
        let module = module();
        allocate(A);
        // The first mapping, which succeeds, is the driver's. The second mapping is the module's.
        world().faults.mapping.set(1);
        assert_eq!(register(page(A)).err(), Some(EIO));
        assert_eq!(known_pairs(), 0);
        end(Ok(register(page(A)).unwrap()));
        free(A);
        module.unload();
    });
}

/// The driver refuses persistent pins of this memory, so the module cannot ask about the pair. The
/// next registration must ask again.
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

/// Memory behind a coherent link cannot be mapped before the kernel has onlined the memory.
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

/// The driver has pinned the whole range persistently, but cannot pin one page of the range. Such a
/// failure must be temporary.
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

/// The driver cannot map memory behind a coherent link before the kernel has pages for the memory.
/// The module must not remember this failure, because it is not about the pair.
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

/// Checks a pair for which the driver's addresses differ from the kernel's. Persistent
/// registrations must get the driver's addresses, and revocable registrations must fail.
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

/// The bus that the device shares with the GPU uses addresses that differ from the processor's.
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

/// The driver returns addresses that bypass the IOMMU (NVreg_DmaRemapPeerMmio=0).
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
        register_while_freed(Module::revocable(), page(A), None);
    });
    explore(UpTo(3), || {
        world().faults.unasked.set(true);
        register_while_freed(Module::persistent(), page(A), None);
    });
}

/// Two threads register at the same time, so the module asks about the pair twice. At the same
/// time, a third registration is revoked.
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

/// Registers memory again and again, and lets a later allocation fail each time, until no allocation
/// fails. The driver must then have mapped the memory if `by_driver`.
fn without_memory_for(request: Request, by_driver: bool) {
    for successes in 0.. {
        world().faults.unasked.set(true);
        let module = Module::persistent();
        allocate(A);
        world().faults.allocation.set(successes);
        let registered = register(request);
        let failed = !world().faults.allocation.is_set();
        // If there is no memory to remember the answer, the registration nevertheless succeeds, and
        // the next registration asks again.
        match &registered {
            Ok(_) => assert_eq!(world().driver.maps(), by_driver),
            Err(error) => assert!(failed && *error == ENOMEM),
        }
        end(registered);
        free(A);
        module.unload();
        if !failed {
            break;
        }
    }
}

#[test]
fn without_memory() {
    explore(UpTo(2), || without_memory_for(page(A), false));
}

/// The driver has mapped the memory when the scatterlist cannot be allocated.
#[test]
fn without_memory_after_the_driver_has_mapped() {
    explore(UpTo(1), || {
        world().faults.bus_offset.set(Some(1 << 45));
        without_memory_for(direct(), true);
    });
}

/// The driver refuses one of two GPUs. While memory of the other GPU is being registered, the
/// memory is freed, and memory of the refused GPU gets the same address. The module must not
/// remember the refusal for the pair with the other GPU.
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
