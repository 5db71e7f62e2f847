// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Compares each message of the module with the words that an administrator should read in the
//! situation that a scenario makes.

use super::cast::*;
use crate::{
    abi,
    explore::{explore, Preemptions::*},
    orphans::Users,
    print,
    rdma::Request,
    registry::REGISTRY,
    world::{world, USER},
};

/// The end of messages about memory that the module can only pin persistently. Messages end in this
/// way if the module was loaded so that it revokes memory.
const ADVICE: &str = "; load the module with persistent_api_support=1";

/// Returns the messages that the module logs while it is loaded, does `work`, and is unloaded.
fn logged(persistent: bool, work: impl FnOnce()) -> Vec<String> {
    let before = print::logged().len();
    let _parameters = Module::parameters(persistent);
    // If the module cannot be loaded, the messages say why.
    match Module::load_with_parameters() {
        Ok(module) => {
            allocate(A);
            work();
            free(A);
            module.unload();
        }
        Err(_) => world().linux.module.end_to_go(),
    }
    print::logged().split_off(before)
}

/// Explores `work` with each value of persistent_api_support. The module must log `line`, which may
/// depend on this value, and nothing else except that it was loaded.
fn says(line: fn(bool) -> String, work: fn()) {
    explore(UpTo(1), move || {
        for persistent in [true, false] {
            let messages = logged(persistent, work);
            assert_eq!(messages[1..], [format!("warning {}", line(persistent))]);
        }
    });
}

/// Makes a registration that must fail.
fn fails(request: Request) {
    assert!(register(request).is_err());
}

/// Registers two pages and deregisters them.
fn succeeds() {
    end(Ok(register(two_pages(A)).unwrap()));
}

#[test]
fn loaded() {
    explore(Any, || {
        let pinned = "info version 1.2.3-for-tests loaded: GPU memory is pinned until \
                      deregistration (persistent_api_support=1)";
        assert_eq!(logged(true, || ()), [pinned]);
        let revoked =
            "info version 1.2.3-for-tests loaded: GPU memory is revoked when it is freed \
                       (persistent_api_support=0)";
        assert_eq!(logged(false, || ()), [revoked]);
    });
}

#[test]
fn not_loaded() {
    explore(Any, || {
        world().faults.step.set(0);
        let other = "error the module nv_peer_mem_callback that is loaded is of another version, \
                     and cannot be exchanged before the next boot: reboot, or load the version of \
                     nv_peer_mem that was loaded before (error 93)";
        assert_eq!(logged(true, || ()), [other]);
    });
}

#[test]
fn client_refused() {
    explore(Any, || {
        let clients = [
            (
                true,
                ["nv_mem", "nv_mem_revocable", "nv_mem_fixed"].as_slice(),
            ),
            (false, &["nv_mem", "nv_mem_nc"]),
        ];
        for (persistent, names) in clients {
            for (step, name) in (1..).zip(names) {
                world().faults.step.set(step);
                let refused = format!(
                    "error the RDMA core refuses the client '{name}' (error 22): another module \
                     may have registered that name: unload it (ls /sys/kernel/mm/memory_peers \
                     lists the names)"
                );
                assert_eq!(logged(persistent, || ()), [refused]);
            }
        }
    });
}

#[test]
fn device_that_is_not_pci() {
    let line = |_| "the RDMA device is not a PCI device: it cannot reach GPU memory".into();
    says(line, || {
        fails(Request {
            no_pci: true,
            ..page(A)
        })
    });
}

#[test]
fn pair_refused() {
    let line = |_| {
        "the NVIDIA driver does not let this RDMA device reach this GPU's memory: the PCI topology \
         between them does not allow it (nvpm status shows the pair), or the driver's option \
         NVreg_GrdmaPciTopoCheckOverride=2 forbids it"
            .into()
    };
    says(line, || {
        world().faults.unasked.set(true);
        world().faults.refuses_to_map.set(-524);
        fails(page(A));
        world().faults.refuses_to_map.set(0);
    });
}

/// The text that ends a message about memory which cannot be revoked.
fn advice(persistent: bool) -> &'static str {
    if persistent {
        ""
    } else {
        ADVICE
    }
}

/// Lets the driver refuse persistent pins during `work`, so that with either value of
/// persistent_api_support the revocable client serves memory.
fn revocably(work: impl FnOnce()) {
    world().faults.no_persistent.set(-524);
    work();
    world().faults.no_persistent.set(0);
}

#[test]
fn device_that_cannot_revoke() {
    let line = |persistent| {
        let what = "the driver of this RDMA device cannot revoke registrations of GPU memory";
        format!("{what}{}", advice(persistent))
    };
    says(line, || {
        revocably(|| {
            fails(Request {
                never_complete: true,
                ..page(A)
            });
        })
    });
}

#[test]
fn memory_that_cannot_be_revoked() {
    let line = |persistent| {
        let what = "GPU memory behind a coherent link cannot be revoked";
        format!("{what}{}", advice(persistent))
    };
    says(line, || {
        world().faults.coherent.set(true);
        revocably(|| fails(page(A)));
        world().faults.coherent.set(false);
    });
}

/// With persistent_api_support=1, the driver refuses persistent pins only after it was asked about
/// the pair.
#[test]
fn memory_that_only_the_driver_maps() {
    let line = |persistent| {
        let what =
            "only the NVIDIA driver can map this GPU's memory for this RDMA device, and its \
                    mappings cannot be revoked";
        format!("{what}{}", advice(persistent))
    };
    says(line, || {
        world().faults.unasked.set(true);
        world().faults.bus_offset.set(Some(1 << 45));
        let on = Request {
            direct: true,
            cannot_be_revoked: true,
            ..page(A)
        };
        let device = Some(world().rdma.new_device(on));
        end(Ok(register(Request { device, ..on }).unwrap()));
        revocably(|| {
            fails(Request { device, ..page(A) });
        });
        world().faults.bus_offset.set(None);
    });
}

#[test]
fn memory_that_is_not_online() {
    let line = |_| {
        "GPU memory behind a coherent link is not online: nothing can reach it before the driver \
         has given it to the kernel (numactl -H shows the GPU's node; nvidia-persistenced brings \
         it online)"
            .into()
    };
    says(line, || {
        world().faults.unasked.set(true);
        world().faults.offline.set(true);
        fails(page(A));
        world().faults.offline.set(false);
    });
}

#[test]
fn tables_of_an_unknown_version() {
    let line = |_| {
        "the NVIDIA driver's page table has version 0x20000, which this module does not know; \
         install a version of nv_peer_mem that fits the driver"
            .into()
    };
    says(line, || {
        world().faults.unknown_table.set(true);
        fails(page(A));
        world().faults.unknown_table.set(false);
    });
    let line = |_| {
        "the NVIDIA driver's DMA mapping has version 0x20003, which this module does not know; \
         install a version of nv_peer_mem that fits the driver"
            .into()
    };
    says(line, || {
        world().faults.unasked.set(true);
        world().faults.unknown_mapping.set(true);
        fails(page(A));
        world().faults.unknown_mapping.set(false);
    });
}

#[test]
fn pages_of_an_unknown_size() {
    let line = |_| "the NVIDIA driver's page size type 77 is unknown to this module".into();
    says(line, || {
        world().faults.page_size.set(77);
        fails(page(A));
        world().faults.page_size.set(abi::NVIDIA_P2P_PAGE_SIZE_64KB);
    });
}

fn pinned_in_pages_of(kind: u32) {
    world().faults.page_size.set(kind);
    fails(two_pages(A));
    let usual = abi::NVIDIA_P2P_PAGE_SIZE_64KB;
    world().faults.page_size.set(usual);
}

/// Each size that the driver has a name for is taken for its own number of bytes.
#[test]
fn pages_of_another_size() {
    let line =
        |_| "the NVIDIA driver pinned 2 pages of 4096 bytes for a range of 131072 bytes".into();
    says(line, || pinned_in_pages_of(abi::NVIDIA_P2P_PAGE_SIZE_4KB));
    let line =
        |_| "the NVIDIA driver pinned 2 pages of 131072 bytes for a range of 131072 bytes".into();
    says(line, || pinned_in_pages_of(abi::NVIDIA_P2P_PAGE_SIZE_128KB));
}

#[test]
fn too_few_pages() {
    let line =
        |_| "the NVIDIA driver pinned 1 pages of 65536 bytes for a range of 131072 bytes".into();
    says(line, || {
        world().faults.hidden_pages.set(1);
        fails(two_pages(A));
        world().faults.hidden_pages.set(0);
    });
    let line =
        |_| "the NVIDIA driver mapped 0 pages of 65536 bytes for a range of 65536 bytes".into();
    says(line, || {
        world().faults.unasked.set(true);
        world().faults.hidden_mapped_pages.set(1);
        fails(two_pages(A));
        world().faults.hidden_mapped_pages.set(0);
    });
}

#[test]
fn revocable_memory_stays_pinned() {
    let line = |_| {
        "the NVIDIA driver did not unpin GPU memory (error 12): it is unpinned when it is freed"
            .into()
    };
    says(line, || {
        world().faults.put.set(0);
        revocably(succeeds);
    });
}

#[test]
fn persistent_memory_stays_pinned() {
    explore(UpTo(1), || {
        let messages = logged(true, || {
            world().faults.put.set(0);
            succeeds();
        });
        let stays = "warning the NVIDIA driver did not unpin GPU memory (error 12): it stays in \
                     use until the driver is unloaded";
        assert_eq!(messages[1..], [stays]);
    });
}

#[test]
fn memory_stays_mapped() {
    let line = |_| "the NVIDIA driver did not unmap GPU memory (error 16)".into();
    says(line, || {
        world().faults.unasked.set(true);
        world().faults.unmapped.set(-16);
        succeeds();
        world().faults.unmapped.set(0);
    });
}

#[test]
fn core_does_not_revoke() {
    explore(UpTo(1), || {
        let messages = logged(false, || {
            let registration = register(page(A)).unwrap();
            world().faults.invalidated.set(-11);
            free(A);
            deregister(&registration);
            allocate(A);
        });
        let kept = "warning the RDMA core did not revoke a registration (error 11)";
        assert_eq!(messages[1..], [kept]);
    });
}

#[test]
fn too_many_orphans() {
    let line = |_| {
        "the processes of user 1000 have 16384 orphaned registrations of GPU memory, or 4 TiB of \
         them (nvpm regions lists them as \"orphaned\"): they stay pinned until the memory is \
         freed, and the user cannot register more until then"
            .into()
    };
    says(line, || {
        let mut node = Some(Users::new_node(USER).unwrap());
        REGISTRY.with(|registry| {
            assert_eq!(registry.users.add(USER, &mut node), Some(true));
            registry.users.orphan(USER, 1 << 26);
        });
        revocably(|| fails(page(A)));
        let last = REGISTRY.with(|registry| {
            registry.users.freed(USER, 1 << 26);
            registry.users.remove(USER)
        });
        drop(last);
    });
}
