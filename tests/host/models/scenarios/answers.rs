// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Checks the errors that users get when GPU memory cannot be registered.

use super::cast::*;
use crate::{
    abi, c,
    driver::FIRST_GPU,
    explore::{explore, Preemptions::*},
    extents::GPU_PAGE,
    rdma::Request,
    world::world,
};

const EIO: i32 = -5;
const ENOMEM: i32 = -12;
const EFAULT: i32 = -14;
const EOPNOTSUPP: i32 = -95;

/// Returns the error that an application receives if the driver answers with the error `driver`.
fn answer(driver: i32, module: fn() -> Module) -> i32 {
    let module = module();
    allocate(A);
    world().faults.refusal.set(driver);
    let error = register(page(A)).err().expect("the driver refuses");
    free(A);
    module.unload();
    error
}

#[test]
fn the_drivers_reason() {
    explore(Any, || {
        for errno in [-12, -5, -16, -19] {
            assert_eq!(answer(errno, Module::revocable), errno);
            assert_eq!(answer(errno, Module::persistent), errno);
        }
    });
}

/// The real driver never answers with a positive number. The module must treat such an answer as a
/// failure, because nothing is pinned and the pointer has no meaning.
#[test]
fn a_positive_answer_is_no_pin() {
    explore(Any, || {
        for answered in [1, 64] {
            assert_eq!(answer(answered, Module::revocable), EIO);
            assert_eq!(answer(answered, Module::persistent), EIO);
        }
    });
}

#[test]
fn no_number_of_the_kernels_own() {
    explore(Any, || {
        assert_eq!(answer(-524, Module::revocable), EOPNOTSUPP);
        assert_eq!(answer(-524, Module::persistent), EOPNOTSUPP);
    });
}

/// No client claims memory that is not the GPU's, so the application receives the core's own error.
#[test]
fn not_for_other_memory() {
    explore(Any, || {
        assert_eq!(answer(-22, Module::revocable), EFAULT);
        let module = Module::persistent();
        assert_eq!(register(page(B)).err(), Some(EFAULT));
        // These ranges are empty or wrap around.
        for (address, len) in [(0, 0), (u64::MAX - 5, 10), (u64::MAX, 1), (1, u64::MAX)] {
            let request = Request {
                address,
                len,
                ..page(A)
            };
            assert_eq!(register(request).err(), Some(EFAULT));
        }
        module.unload();
    });
}

/// The module must not ask the driver to pin a huge range that is not GPU memory, because the
/// driver would allocate memory for each page first.
#[test]
fn a_large_range_that_is_nobodys() {
    explore(Any, || {
        for module in [Module::revocable, Module::persistent] {
            let module = module();
            allocate(A);
            // The shorter one is one page longer than a range that is pinned without a check.
            for (address, len) in [(A, 1 << 43), (B, 1 << 43), (B, (64 << 30) + GPU_PAGE)] {
                let request = Request {
                    len,
                    ..page(address)
                };
                assert_eq!(register(request).err(), Some(EFAULT));
            }
            assert!(world().driver.longest() <= GPU_PAGE);
            free(A);
            module.unload();
        }
    });
}

/// The module refuses a range whose ends are both memory of the process, because the range is
/// larger than any GPU.
#[test]
fn a_large_range_of_two_allocations() {
    explore(Any, || {
        for module in [Module::revocable, Module::persistent] {
            let module = module();
            // One page more than a GPU can have.
            let len = (1 << 40) + GPU_PAGE;
            let end = A + len - 2 * GPU_PAGE;
            allocate(A);
            allocate(end);
            let request = Request { len, ..page(A) };
            assert_eq!(register(request).err(), Some(EFAULT));
            assert!(world().driver.longest() <= GPU_PAGE);
            free(A);
            free(end);
            module.unload();
        }
    });
}

/// The module refuses a range if only one of its ends is memory of the process.
#[test]
fn a_large_range_of_which_one_end_is_ours() {
    explore(Any, || {
        for module in [Module::revocable, Module::persistent] {
            let module = module();
            let len = 1 << 38;
            let ours = len + A;
            allocate(ours);
            for address in [ours, ours + 2 * GPU_PAGE - len] {
                let request = Request {
                    len,
                    ..page(address)
                };
                assert_eq!(register(request).err(), Some(EFAULT));
                assert!(world().driver.longest() <= GPU_PAGE);
            }
            free(ours);
            module.unload();
        }
    });
}

/// The driver is asked to pin all of a large range that is one allocation, whatever it answers about
/// the ends: a GPU may have 288 GB, and drivers with MIG or vGPU have no persistent pins. The driver
/// has no memory for the pin, because its table would have millions of pages.
#[test]
fn a_large_range_of_one_allocation() {
    let modules: [fn() -> Module; 2] = [Module::revocable, Module::persistent];
    for (gib, no_persistent) in [
        (64, 0),
        (65, 0),
        (65, -524),
        (65, -12),
        (268, 0),
        (268, -524),
        (1024, 0),
    ] {
        for module in modules {
            explore(UpTo(1), move || {
                all_is_asked_for(gib << 30, no_persistent, module)
            });
        }
    }
}

fn all_is_asked_for(len: u64, no_persistent: i32, module: fn() -> Module) {
    let module = module();
    world()
        .driver
        .allocate_pages(FIRST_GPU, OWNER, A, len / GPU_PAGE);
    world().faults.no_persistent.set(no_persistent);
    world().faults.no_memory_for.set(len);
    let request = Request {
        address: A,
        len,
        ..page(A)
    };
    assert_eq!(register(request).err(), Some(ENOMEM));
    assert_eq!(world().driver.longest(), len);
    free(A);
    module.unload();
}

/// The module cannot use pages whose table has an unknown version.
#[test]
fn a_page_table_of_another_version() {
    explore(Any, || {
        for module in [Module::revocable, Module::persistent] {
            let module = module();
            allocate(A);
            world().faults.unknown_table.set(true);
            assert_eq!(register(page(A)).err(), Some(EOPNOTSUPP));
            world().faults.unknown_table.set(false);
            free(A);
            module.unload();
        }
    });
}

/// If the device cannot use a revocable registration, and the driver refuses a persistent pin, the
/// user receives the driver's error.
#[test]
fn nothing_else_will_do() {
    explore(Any, || {
        for (driver, user) in [(-524, EOPNOTSUPP), (EIO, EIO)] {
            for module in [Module::revocable, Module::persistent] {
                let module = module();
                allocate(A);
                world().faults.no_persistent.set(driver);
                let request = Request {
                    cannot_be_revoked: true,
                    ..page(A)
                };
                assert_eq!(register(request).err(), Some(user));
                world().faults.no_persistent.set(0);
                free(A);
                module.unload();
            }
        }
    });
}

/// Checks that each failure has its counter, and that reachable memory is counted in whole GPU
/// pages.
#[test]
fn counted_by_cause() {
    explore(UpTo(1), || {
        let module = Module::revocable();
        allocate(A);
        let causes = [
            (-12, abi::NVPM_COUNT_FAILED_NO_MEMORY),
            (-524, abi::NVPM_COUNT_FAILED_NOT_SUPPORTED),
            (EIO, abi::NVPM_COUNT_FAILED_DRIVER),
        ];
        for (errno, counter) in causes {
            world().faults.refusal.set(errno);
            assert!(register(page(A)).is_err());
            assert_eq!(c::counter(counter), 1, "for error {errno}");
        }
        world().faults.refusal.set(0);
        let registration = register(two_pages(A)).unwrap();
        assert_eq!(c::counter(abi::NVPM_COUNT_REACHABLE_REGIONS), 1);
        assert_eq!(c::counter(abi::NVPM_COUNT_BYTES), 2 * GPU_PAGE);
        assert_eq!(c::counter(abi::NVPM_COUNT_REGISTRATIONS), 1);
        deregister(&registration);
        free(A);
        module.unload();
    });
    explore(UpTo(3), || {
        let module = Module::revocable();
        let registered = registered_while_freed(&page(A));
        let late =
            u64::from(registered.as_ref().err() == Some(&EFAULT) && world().driver.has_pinned());
        assert_eq!(c::counter(abi::NVPM_COUNT_FAILED_FREED), late);
        end(registered);
        module.unload();
    });
}

#[test]
fn a_device_that_cannot_reach_it() {
    explore(Any, || {
        for module in [Module::revocable, Module::persistent] {
            let module = module();
            allocate(A);
            let request = Request {
                no_pci: true,
                ..page(A)
            };
            assert_eq!(register(request).err(), Some(EOPNOTSUPP));
            free(A);
            module.unload();
        }
    });
}

#[test]
fn a_device_that_cannot_give_it_up() {
    explore(Any, || {
        let request = Request {
            never_complete: true,
            ..page(A)
        };
        let module = Module::revocable();
        allocate(A);
        assert_eq!(register(request).err(), Some(EOPNOTSUPP));
        module.unload();
        let module = Module::persistent();
        deregister(&register(request).expect("a persistent pin needs no completion"));
        module.unload();
    });
}

/// Returns the error that an application receives if the driver's page table does not fit the pages
/// that the driver has pinned.
fn answer_to_claim(page_size: u32, hidden_pages: u32, module: fn() -> Module) -> i32 {
    let module = module();
    allocate(A);
    world().faults.page_size.set(page_size);
    world().faults.hidden_pages.set(hidden_pages);
    let error = register(two_pages(A)).err().expect("the claim is wrong");
    free(A);
    module.unload();
    error
}

/// The driver reports success, but stores NULL where its answer should be. The module must not
/// follow such a pointer, and must give back everything that the driver has made before.
#[test]
fn a_driver_that_answers_with_null() {
    explore(Any, || {
        let faults = &world().faults;
        let answers = [
            &faults.no_table,
            &faults.no_pages,
            &faults.no_mapping,
            &faults.no_addresses,
        ];
        for module in [Module::revocable, Module::persistent] {
            for answer in answers {
                faults.unasked.set(true);
                let module = module();
                allocate(A);
                answer.set(true);
                assert_eq!(register(page(A)).err(), Some(EIO));
                answer.set(false);
                assert!(!world().driver.is_pinned());
                assert_eq!(c::known_pairs(), 0);
                end(Ok(register(page(A)).unwrap()));
                free(A);
                module.unload();
            }
        }
    });
}

#[test]
fn a_driver_that_pins_something_else() {
    explore(Any, || {
        for module in [Module::revocable, Module::persistent] {
            assert_eq!(
                answer_to_claim(abi::NVIDIA_P2P_PAGE_SIZE_4KB, 0, module),
                EIO
            );
            assert_eq!(
                answer_to_claim(abi::NVIDIA_P2P_PAGE_SIZE_128KB, 0, module),
                EIO
            );
            assert_eq!(
                answer_to_claim(abi::NVIDIA_P2P_PAGE_SIZE_64KB, 1, module),
                EIO
            );
            assert_eq!(answer_to_claim(77, 0, module), EOPNOTSUPP);
        }
    });
}
