// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The client whose pins end when the GPU memory is freed.
//!
//! The driver's free callback may come at any time. Each event changes the phase (`phase.rs`) under
//! the registry's lock. A thread that ends a mapping or a pin first takes the object out of the
//! phase under the lock, and then undoes the object after it has released the lock. If two threads
//! tear down the same registration, only one thread finds the object in the phase, so nothing is
//! undone twice.
//!
//! # Locks and their order
//!
//! | lock | whose | held over |
//! |---|---|---|
//! | list lock | RDMA core | its call `acquire`, registration and unregistration of clients |
//! | unpin lock | ours, in `pin.rs` | shared: calls to pin; exclusive: calls to unpin revocably |
//! | API lock | driver | its free callback; inside our calls to pin, unpin and map |
//! | gate | ours, in `callback/callback.c` | shared: the free callback |
//! | mapping lock | RDMA core | its `get_pages` and `dma_map`; inside our call to invalidate |
//! | locks of the registry and of the pairs | ours | one look-up |
//!
//! Each umem has its own mapping lock. Older cores hold the mapping lock also over their calls
//! `dma_unmap` and `put_pages`. The gate is taken exclusively, by a thread that holds no other
//! lock, when the module is loaded and unloaded.
//!
//! A thread that holds several locks has taken them in this order, from the top of the table down.
//! These rules keep the order:
//!
//! - This module holds no lock of its own while it calls the RDMA core or the driver, except the
//!   unpin lock, and the gate during the free callback.
//! - The module asks the driver to pin in `acquire`, and to unpin in `release`. The core calls both
//!   functions without the mapping lock. In `dma_map`, which the core calls with the mapping lock,
//!   the module only asks the driver for persistent pins and mappings (`map_type.rs`). These
//!   requests take the unpin lock and the API lock, which are above the mapping lock in the table.
//!   They cannot deadlock, because the registration is not `Mapped` at this time, so no callback
//!   waits for its mapping lock.
//! - The module asks the core to invalidate a registration only in the phase `Mapped`. In this
//!   phase, no thread that holds the registration's mapping lock waits for a lock of this module or
//!   of the driver.
//! - The callback waits only for two things: for the end of the `acquire` that has pinned the
//!   memory, which takes no lock of the driver after the pages are pinned; and for the end of a
//!   `dma_unmap`, which takes no lock of the driver. The callback never takes the unpin lock.

use kernel::prelude::*;

use crate::{
    abi,
    device::Device,
    dma::Mapping,
    errno::eopnotsupp,
    extents::Range,
    map_type::{self, MapType},
    orphans::too_many,
    parameters::persistent_instead,
    peer_client::{self, Client},
    phase::{CoreContext, Phase, Unmapped},
    pin::{PersistentPin, PinError, RevocablePin},
    process::Process,
    ratelimit::pr_warn_ratelimited,
    registry::{self, Kind, RegistrationNumber},
    stats,
};

/// The client whose pins end when the memory is freed.
pub(crate) struct Revocable;

impl Client for Revocable {
    const KIND: Kind = Kind::Revocable;

    fn acquire(number: RegistrationNumber, range: &Range, process: Process) -> Result<bool> {
        if !registry::count_for_user(number, process.uid())? {
            return refuse(range, process.uid());
        }
        // SAFETY: The callback waits as long as the phase is `Pinning`. This thread changes the
        // phase after it has the result, and before it unpins the pages.
        match unsafe { RevocablePin::new(range, number.to_raw()) } {
            Ok((pin, Ok(memory))) => {
                registry::update(number, |record| {
                    record.follow_empty(Phase::Pinned {
                        pin,
                        core_context: None,
                        memory: Some(memory),
                    })
                });
                Ok(true)
            }
            Ok((pin, Err(error))) => {
                registry::update(number, |record| record.follow_empty(Phase::Unpinning));
                unpin(pin, number, range, process);
                Err(error)
            }
            Err(PinError::NotGpuMemory) => Ok(false),
            Err(PinError::Failed(error)) => Err(error),
        }
    }

    fn get_pages(number: RegistrationNumber, core_context: CoreContext) -> Result {
        // No thread waits for this change.
        registry::with(number, |record| record.bind(core_context)).unwrap_or(Err(EINVAL))
    }

    fn dma_map(number: RegistrationNumber, device: Device<'_>) -> Result<abi::sg_table> {
        if !device.can_invalidate() {
            pr_warn_ratelimited!(
                "the driver of this RDMA device cannot revoke registrations of GPU memory{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        // No thread waits for this change.
        let begun = registry::with(number, |record| {
            let range = record.range();
            record.begin_mapping().map(|memory| (memory, range))
        });
        let (memory, range) = begun.unwrap_or(Err(EINVAL))?;
        if map_type::of_pair(memory.gpu, device, &range)? == Some(MapType::Driver) {
            pr_warn_ratelimited!(
                "only the NVIDIA driver can map this GPU's memory for this RDMA device, and its mappings cannot be revoked{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        let mapping = Mapping::new(device, &memory.extents, &range)?;
        end_mapping(number, device, mapping)
    }

    fn dma_unmap(number: RegistrationNumber) {
        let mapping = registry::update(number, |record| {
            record.change(|phase, place| match phase {
                Phase::Mapped { pin, mapping, .. } => {
                    let list = Unmapped::Soon;
                    (place.fill(Phase::Unmapped { pin, list }), Some(mapping))
                }
                // In all other phases there is no mapping, or the free callback's thread undoes the
                // mapping.
                other => (place.fill(other), None),
            })
        });
        let Some(mapping) = mapping.flatten() else {
            return;
        };
        let list = mapping.unmap();
        // The pages stay pinned until `release`, which the core calls without the mapping lock. A
        // callback that waits for the end of the unmapping continues after this change of the
        // phase.
        registry::update(number, |record| record.end_unmapping(list));
    }

    fn release(number: RegistrationNumber) {
        let thread = thread();
        let release = registry::update_when(number, |record| match record.phase() {
            // This thread is running the free callback, which has called the core, which has called
            // `release`. The device may be removed after `release` has returned. The record is
            // dropped before `release` returns, and the mapping with the record.
            Phase::Revoking { thread: own, .. } if *own == thread => Some(Release::ByCallback),
            // Another thread is running the free callback. That thread still uses the device, and
            // the core still uses its own record of this registration, so this call must wait.
            Phase::Revoking { .. } => None,
            Phase::Mapped { .. } => Some(Release::Mapped),
            _ => {
                let phase = record.change(|phase, place| (place.fill(Phase::Unpinning), phase));
                Some(Release::Taken(phase, record.range(), record.process()))
            }
        });
        match release {
            Some(Release::Taken(phase, range, process)) => {
                if let Some(pin) = phase.into_pin() {
                    unpin(pin, number, &range, process);
                }
            }
            // After `dma_unmap` the phase is not `Mapped` any more, so this function calls itself
            // only once.
            Some(Release::Mapped) => {
                Self::dma_unmap(number);
                Self::release(number);
            }
            Some(Release::ByCallback) | None => {}
        }
    }
}

/// Returns the result of `acquire` for the user `uid`, who has too many orphans. If `range` is GPU memory,
/// the result is an error. Otherwise it is false, so that the core asks the other clients.
fn refuse(range: &Range, uid: u32) -> Result<bool> {
    match PersistentPin::new(&range.first_page()) {
        Err(PinError::NotGpuMemory) => Ok(false),
        _ => Err(too_many(uid)),
    }
}

/// This is the last step of `dma_map`. It stores the mapping, and returns the scatterlist for the
/// core. If the memory was revoked during `dma_map`, this function undoes the mapping and returns
/// an error.
fn end_mapping(
    number: RegistrationNumber,
    device: Device<'_>,
    mapping: Mapping,
) -> Result<abi::sg_table> {
    let mut late = Some(mapping);
    let ended = registry::update(number, |record| {
        record.set_device(device);
        record.change(|phase, place| match (phase, late.take()) {
            (
                Phase::Pinned {
                    core_context: Some(core_context),
                    pin,
                    memory: None,
                },
                Some(mapping),
            ) => {
                let table = mapping.for_core();
                let mapped = Phase::Mapped {
                    core_context,
                    pin,
                    mapping,
                };
                (place.fill(mapped), Ok(table))
            }
            (other, mapping) => {
                late = mapping;
                let error = other.refuse();
                (place.fill(other), Err(error))
            }
        })
    });
    // A mapping that was not stored is dropped after the lock is released, because unmapping may
    // sleep.
    drop(late);
    ended.unwrap_or(Err(EINVAL))
}

/// Unpins `range`, which `process` has pinned, unless the driver has taken the pages back already.
/// The caller has set the phase `Unpinning`. If the driver cannot find the pin, or reports an
/// error, the registration becomes an orphan.
fn unpin(pin: RevocablePin, number: RegistrationNumber, range: &Range, process: Process) {
    // The driver looks for a pin only among the pins of the calling process. If another process
    // calls, the driver finds no pin, and returns 0. The same can happen if the calling process is
    // exiting, because the driver may already have removed the objects of the process. In both
    // cases the pages stay pinned until the driver frees the memory and calls back.
    // SAFETY: The function reads a flag of the calling thread, and is callable from any context.
    let is_found = process.is_current() && !unsafe { abi::nvpm_current_exiting() };
    let is_revoked = || {
        registry::with(number, |record| {
            matches!(record.phase(), Phase::Revoked { .. })
        }) == Some(true)
    };
    if !is_found || !pin.put(range, is_revoked) {
        registry::orphan(number);
    }
}

fn thread() -> i32 {
    // SAFETY: The function has no requirement, because it only reads the calling thread's number.
    unsafe { abi::nvpm_current_tid() }
}

/// The work that the free callback does after it has released the registry's lock.
enum Then {
    /// Tell the core that the registration with this context loses its memory.
    Invalidate(CoreContext),
    /// Remove the record of an orphan, because its memory has been freed.
    Forget,
    /// Drop the phase. No device has addresses of the registration's memory.
    Drop { _phase: Phase },
    /// Do nothing.
    Nothing,
}

/// The case in which `release` finds a registration.
enum Release {
    /// The free callback on this thread has invalidated the registration, and the core has answered
    /// by calling `release`, as older cores do. The mapping is dropped with the record, and the
    /// driver takes the pages back after the callback.
    ByCallback,
    /// A correct core calls `dma_unmap` before `release`, but this core has not. The mapping must be
    /// undone first, because the memory must not be unpinned while it is mapped.
    Mapped,
    /// This thread ends the registration. The fields are the registration's last phase, its range
    /// and its process.
    Taken(Phase, Range, Process),
}

/// Revokes a registration. `nv_peer_mem_callback` calls this function, and the driver takes the
/// memory back after this function has returned. This function therefore ensures that no device
/// reaches the memory through the registration's mapping, that no thread reads the pin's page
/// table, and that no thread will use the pin.
///
/// While another thread pins the memory or undoes the mapping, this function waits for that thread. In the phase
/// `Mapped` a device can reach the memory. This function asks the core to stop the device, and then
/// undoes the mapping. During the core's call, `release` may already have undone the mapping on
/// this thread. In the phase `Pinned` another thread may be mapping the memory, from a copy of the
/// page table (`PinnedMemory`). That thread later finds the phase `Revoked`, and undoes the mapping
/// without giving the addresses to the core. This function drops the pin, except in the phase
/// `Unpinning`. In that phase another thread has the pin, and checks for the phase `Revoked` before
/// it unpins.
#[no_mangle]
pub(crate) extern "C" fn nvpm_revoke(number: u64) {
    let number = RegistrationNumber::from_raw(number);
    let thread = thread();
    let then = registry::update_when(number, |record| {
        if record.phase().is_in_work() {
            return None;
        }
        record.change(|phase, place| {
            let (phase, then) = revoked(phase, thread);
            (place.fill(phase), Some(then))
        })
    });
    match then {
        Some(Then::Invalidate(core_context)) => revoke_mapped(number, core_context),
        Some(Then::Forget) => registry::forget_orphan(number),
        // The old phase is dropped after the lock is released.
        Some(Then::Drop { .. } | Then::Nothing) => {}
        // The registration has ended already, or belongs to an earlier load of the module.
        None => {}
    }
}

/// Returns the phase that follows `phase` when the driver takes the memory back, and the work that
/// the callback on `thread` must do. No other thread pins the memory or undoes the mapping, because
/// the callback has waited for the end of that work.
fn revoked(phase: Phase, thread: i32) -> (Phase, Then) {
    match phase {
        Phase::Mapped {
            core_context,
            mapping,
            ..
        } => {
            let mapping = Some(mapping);
            (
                Phase::Revoking { thread, mapping },
                Then::Invalidate(core_context),
            )
        }
        Phase::Unmapped {
            list: Unmapped::Done(list),
            ..
        } => (Phase::Revoked { list }, Then::Nothing),
        // In these phases no device can reach the memory.
        unmapped @ (Phase::Pinned { .. } | Phase::Unpinning) => (
            Phase::Revoked { list: None },
            Then::Drop { _phase: unmapped },
        ),
        Phase::Orphan => (Phase::Orphan, Then::Forget),
        // The registration is persistent, or another callback revokes it.
        other => (other, Then::Nothing),
    }
}

/// Revokes a registration that a device can reach.
fn revoke_mapped(number: RegistrationNumber, core_context: CoreContext) {
    peer_client::invalidate(core_context);
    stats::add(abi::NVPM_COUNT_REVOCATIONS, 1);
    // During the call above, `release` may have taken the mapping, with the record.
    let mapping = registry::with(number, |record| {
        record.change(|phase, place| match phase {
            Phase::Revoking { thread, mapping } => {
                let without = Phase::Revoking {
                    thread,
                    mapping: None,
                };
                (place.fill(without), mapping)
            }
            other => (place.fill(other), None),
        })
    });
    let list = mapping.flatten().and_then(Mapping::unmap);
    let revoked = registry::update(number, |record| {
        record.change(|old, place| (place.fill(Phase::Revoked { list }), old))
    });
    // The old phase is dropped after the lock is released.
    drop(revoked);
}
