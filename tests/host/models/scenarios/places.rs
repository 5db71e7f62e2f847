// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests the addresses at which a device reaches memory. Each piece may have its own DMA address,
//! all pieces may be in one range of DMA addresses, or the device may use physical addresses. Even
//! with physical addresses, the module must map and unmap each piece.

use super::cast::*;
use crate::{
    explore::{explore, Preemptions::*},
    extents::GPU_PAGE,
    rdma::Request,
    world::world,
};

const EIO: i32 = -5;

fn in_a_range() {
    world().faults.ranges.set(true);
}

/// Does `work` with memory at `A`, while the module is loaded in each of its two modes.
fn in_each_mode(work: impl Fn()) {
    for module in [Module::revocable, Module::persistent] {
        let module = module();
        allocate(A);
        work();
        free(A);
        module.unload();
    }
}

/// Returns a request for memory that begins inside the first page at `A`.
fn inside_a_page() -> Request {
    Request {
        address: two_pages(A).address + 0x3000,
        ..two_pages(A)
    }
}

#[test]
fn pieces_in_one_range() {
    explore(Any, || {
        in_a_range();
        in_each_mode(|| {
            let registration = register(two_pages(A)).unwrap();
            assert_eq!(
                registration.entries(),
                2,
                "the model's longest entry has 64 KiB"
            );
            assert!(registration.is_contiguous());
            deregister(&registration);
        });
    });
}

#[test]
fn a_range_that_cannot_be_filled() {
    explore(UpTo(3), || {
        for successes in 0..2 {
            in_a_range();
            let module = Module::revocable();
            allocate(A);
            world().faults.mapping.set(successes);
            assert!(register(two_pages(A)).is_err());
            free(A);
            module.unload();
        }
    });
}

#[test]
fn a_range_that_the_device_does_not_see() {
    explore(UpTo(1), || {
        in_a_range();
        let module = Module::revocable();
        allocate(A);
        world().faults.sync.set(true);
        assert_eq!(register(two_pages(A)).err(), Some(-12));
        free(A);
        module.unload();
    });
}

#[test]
fn a_range_while_the_memory_is_freed() {
    explore(UpTo(3), || {
        in_a_range();
        register_while_freed(Module::revocable(), two_pages(A), None);
    });
}

/// The range must have the same offset in a page on the bus as in the user's address space, because
/// otherwise the device could not use pages as large as the GPU's.
#[test]
fn at_the_same_place_in_a_page() {
    explore(UpTo(1), || {
        for ranges in [false, true] {
            world().faults.ranges.set(ranges);
            in_each_mode(|| {
                let registration = register(Request {
                    len: GPU_PAGE,
                    ..inside_a_page()
                })
                .unwrap();
                assert_eq!(registration.bus_address() % GPU_PAGE, 0x3000);
                deregister(&registration);
            });
        }
    });
}

/// The range begins inside a page of the GPU, and the device accepts only short entries, so the
/// range has four pieces. If a piece cannot be mapped, the module must unmap each piece before it.
/// The mapping of the first piece begins before the user's range.
#[test]
fn as_many_pieces_as_could_be_mapped() {
    explore(UpTo(1), || {
        in_each_mode(|| {
            let request = Request {
                len: 2 * GPU_PAGE - 0x4000,
                short_entries: true,
                ..inside_a_page()
            };
            let mapping = &world().faults.mapping;
            for mapped in 0..4 {
                mapping.set(mapped);
                assert_eq!(register(request).err(), Some(EIO));
            }
            mapping.set(4);
            let registration = register(request).unwrap();
            mapping.clear();
            assert_eq!(registration.entries(), 4);
            deregister(&registration);
        });
    });
}

fn direct() -> Request {
    Request {
        direct: true,
        ..two_pages(A)
    }
}

#[test]
fn at_its_own_place() {
    explore(UpTo(3), || {
        in_each_mode(|| deregister(&register(direct()).unwrap()));
    });
}

#[test]
fn above_what_the_device_reaches() {
    explore(UpTo(1), || {
        in_each_mode(|| {
            let reach = &world().faults.reach;
            for (missing, result) in [(0, Ok(())), (1, Err(EIO))] {
                // This is the end of the second page, which has the higher address of the two.
                let end = world().driver.next_place(1) + GPU_PAGE;
                reach.set(Some(end - missing));
                let registered = register(direct());
                reach.set(None);
                assert_eq!(registered.map(|one| deregister(&one)), result);
            }
        });
    });
}

#[test]
fn at_its_own_place_while_the_memory_is_freed() {
    explore(UpTo(3), || {
        register_while_freed(Module::revocable(), direct(), None)
    });
}

#[test]
fn revoked_at_its_own_place() {
    explore(UpTo(3), || {
        let module = Module::revocable();
        allocate(A);
        let registration = register(direct()).unwrap();
        while_freed(|| deregister(&registration));
        module.unload();
    });
}
