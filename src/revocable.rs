// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The client that gives GPU memory up when the memory is freed.
//!
//! The driver's free callback may come at any time. Each event changes the phase (`phase.rs`) under
//! the registry's lock. A thread that takes a mapping or a pin out of the phase undoes it after it
//! has released the lock. If two threads tear down the same registration, only one thread finds the
//! mapping or the pin in the phase, so nothing is undone twice.
//!
//! # Locks and their order
//!
//! | lock | whose | held over |
//! |---|---|---|
//! | list lock | RDMA core | its call `acquire`, registration and unregistration of clients |
//! | unpin lock, one | ours (`unpin_lock.rs`) | calls to pin (shared) and to unpin revocable pins (exclusive) |
//! | API lock | driver | its free callback; inside our calls to pin, unpin and map |
//! | gate, one | ours (`callback/callback.c`) | the free callback (shared); taken exclusively, with nothing held, when the module is loaded and unloaded |
//! | mapping lock, one per umem | RDMA core | its calls `get_pages` and `dma_map`, in older cores also `dma_unmap` and `put_pages`; inside our call to invalidate |
//! | locks of the registry and of the pairs | ours | one look-up |
//!
//! Locks are taken in this order, from the top down. These rules keep the order:
//!
//! - No lock of ours is held across a call into either neighbour, except the unpin lock.
//! - The driver is asked to pin in `acquire` and to unpin in `release`, which the core calls
//!   without the mapping lock. In `dma_map`, under the mapping lock, the driver is only asked for
//!   persistent pins and mappings (`map_type.rs`), which takes the unpin lock and the API lock. The
//!   registration is not `Mapped` at this time, so no callback waits for its mapping lock.
//! - The core is told of a revocation only if the registration is in phase `Mapped`. In this phase,
//!   a thread that holds the mapping lock waits for no lock of this module or of the driver.
//! - The callback waits only for the end of the call that pinned, which needs no lock of the driver
//!   any more, and for the end of a `dma_unmap`, which needs no such lock. It never takes the unpin
//!   lock.

use core::mem;

use kernel::prelude::*;

use crate::{
    abi,
    compat::pr_warn_ratelimited,
    dma::{Device, Mapping},
    errno::eopnotsupp,
    extents::Range,
    map_type::{self, MapType},
    orphans::too_many,
    parameters::persistent_instead,
    peer_client::{self, Client, Kind},
    phase::{CoreContext, Phase},
    pin::{PersistentPin, PinError, RevocablePin},
    process::Process,
    registry::RegistrationNumber,
    stats,
};

/// The client that gives memory up when the memory is freed.
pub(crate) struct Revocable;

impl Client for Revocable {
    const KIND: Kind = Kind::Revocable;

    fn acquire(number: RegistrationNumber, range: &Range) -> Result<bool> {
        if !number.count_for_user()? {
            return refuse(range);
        }
        // SAFETY: In the phase `Pinning` the callback waits. The phase changes only after this
        // thread has the result, and before the pin is undone.
        match unsafe { RevocablePin::new(range, number.to_raw()) } {
            Ok((pin, Ok(memory))) => {
                number.update(|record| record.phase = Phase::Pinned { pin, memory });
                Ok(true)
            }
            Ok((pin, Err(error))) => {
                number.update(|record| record.phase = Phase::Unpinning);
                unpin(pin, number, range, Process::current());
                Err(error)
            }
            Err(PinError::NotGpuMemory) => Ok(false),
            Err(PinError::Failed(error)) => Err(error),
        }
    }

    fn get_pages(number: RegistrationNumber, core_context: CoreContext) -> Result {
        advance(number, |phase| match phase {
            Phase::Pinned { pin, memory } => {
                let bound = Phase::Bound {
                    core_context,
                    pin,
                    memory,
                };
                (bound, Ok(()))
            }
            other => other.refuse(),
        })
    }

    fn dma_map(number: RegistrationNumber, device: Device) -> Result<abi::sg_table> {
        if !device.can_invalidate() {
            pr_warn_ratelimited!(
                "the driver of this RDMA device cannot revoke registrations of GPU memory{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        let begun = number.update(|record| {
            let range = record.range();
            record.phase.advance(|phase| match phase {
                Phase::Bound {
                    core_context,
                    pin,
                    memory,
                } => (Phase::Mapping { core_context, pin }, Ok((memory, range))),
                other => other.refuse(),
            })
        });
        let (memory, range) = begun.unwrap_or(Err(EINVAL))?;
        if map_type::of_pair(memory.gpu, device, &range)? == MapType::Driver {
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
        let mapping = advance(number, |phase| match phase {
            Phase::Mapped { pin, mapping, .. } => (Phase::Unmapping { pin }, Ok(mapping)),
            // A revocation undoes the mapping, or there is no mapping.
            other => other.refuse(),
        });
        let Ok(mapping) = mapping else {
            return;
        };
        let list = mapping.unmap();
        // The pin stays until `release`, which the core calls without the lock that a callback may
        // wait for. A callback that has waited for the end of the unmapping goes on now.
        number.update(|record| {
            record.phase.advance(|phase| match phase {
                Phase::Unmapping { pin } => (Phase::Unmapped { pin, list }, ()),
                other => (other, ()),
            });
        });
    }

    fn release(number: RegistrationNumber) {
        // A correct core has unmapped before. If it has not, the memory must be unmapped before it
        // is unpinned.
        Self::dma_unmap(number);
        let thread = thread();
        let release = number.update_when(|record| match &record.phase {
            // This is the thread of the callback, inside the core's answer. The device may go after
            // the core's call returns, but the mapping goes with the record, before the call
            // returns.
            Phase::Revoking { thread: own, .. } if *own == thread => Some(Release::ByCallback),
            // Another thread's callback still uses the device, and the core uses its own record of
            // this registration, so this call must wait.
            Phase::Revoking { .. } => None,
            _ => {
                let phase = mem::replace(&mut record.phase, Phase::Unpinning);
                Some(Release::Taken(phase, record.range(), record.process()))
            }
        });
        let Some(Release::Taken(phase, range, process)) = release else {
            return;
        };
        if let Some(pin) = phase.into_pin() {
            unpin(pin, number, &range, process);
        }
    }
}

/// Returns the result of `acquire` if the user has too many orphans: an error for GPU memory. Other
/// memory is left to other clients, as always.
fn refuse(range: &Range) -> Result<bool> {
    match PersistentPin::new(&range.first_page()) {
        Err(PinError::NotGpuMemory) => Ok(false),
        _ => Err(too_many(Process::current().uid())),
    }
}

/// Replaces the phase by the phase that `event` returns.
fn advance<R>(
    number: RegistrationNumber,
    event: impl FnOnce(Phase) -> (Phase, Result<R>),
) -> Result<R> {
    number
        .update(|record| record.phase.advance(event))
        .unwrap_or(Err(EINVAL))
}

/// Does the last step of `dma_map`: stores the mapping. If the memory was revoked before, undoes
/// the mapping.
fn end_mapping(
    number: RegistrationNumber,
    device: Device,
    mapping: Mapping,
) -> Result<abi::sg_table> {
    let mut late = Some(mapping);
    let ended = number.update(|record| {
        record.set_device(device);
        record.phase.advance(|phase| match (phase, late.take()) {
            (Phase::Mapping { core_context, pin }, Some(mapping)) => {
                let table = mapping.for_core();
                let mapped = Phase::Mapped {
                    core_context,
                    pin,
                    mapping,
                };
                (mapped, Ok(table))
            }
            (other, mapping) => {
                late = mapping;
                other.refuse()
            }
        })
    });
    // The mapping is undone without the lock, because unmapping may sleep.
    drop(late);
    ended.unwrap_or(Err(EINVAL))
}

/// Unpins `range`, which `process` has pinned, unless the driver takes the pages back before. The
/// phase is `Unpinning`. If the driver would not find the pin, or reports an error, the
/// registration becomes an orphan.
fn unpin(pin: RevocablePin, number: RegistrationNumber, range: &Range, process: Process) {
    // The driver looks a pin up by process. If another process calls, the driver finds no pin, and
    // returns 0. The same can happen to a process that exits, whose objects in the driver may be
    // gone. The driver then frees the memory, with a callback.
    // SAFETY: The function reads a flag of the calling thread, and is callable from any context.
    let is_found = process.is_current() && !unsafe { abi::nvpm_current_exiting() };
    let is_revoked =
        || number.with(|record| matches!(record.phase, Phase::Revoked { .. })) == Some(true);
    if !is_found || !pin.put(range, is_revoked) {
        number.orphan();
    }
}

fn thread() -> i32 {
    // SAFETY: The function only reads the calling thread's number.
    unsafe { abi::nvpm_current_tid() }
}

/// The work of the driver's callback that is done without the lock.
enum Then {
    /// Tell the core that the registration with this name loses its memory.
    Invalidate(CoreContext),
    /// Remove the record of an orphan, because its memory has been freed.
    Forget,
    /// Drop the phase. The device has no addresses of its memory.
    Drop { _phase: Phase },
    /// Do nothing.
    Nothing,
}

/// The work of `release`.
enum Release {
    /// This thread is inside the core's answer to the invalidation of this registration, as with
    /// older cores. The mapping goes with the record, and the driver takes the pages back after the
    /// callback.
    ByCallback,
    /// This thread ends the registration, which was in this phase, with this range and this
    /// process.
    Taken(Phase, Range, Process),
}

/// Revokes a registration. `nv_peer_mem_callback` calls this function, and the driver takes the
/// memory back after it returns. By then no device reaches the memory through the registration's
/// mapping, no thread reads the pin's page table, and no thread will use the pin.
///
/// In the phases `Pinning` and `Unmapping` this function waits. If a device can reach the memory,
/// the phase is
/// `Mapped`: the core is told and stops the device, and then the mapping is undone, here or by
/// `release` further down this stack. If a thread is mapping the memory, the thread later finds the
/// phase `Revoked`, and undoes the mapping without giving the addresses to the core. It maps from a
/// copy of the table, `PinnedMemory`. The pin is dropped here, or belongs to a thread that is about
/// to unpin, and that checks the phase first.
#[no_mangle]
pub(crate) extern "C" fn nvpm_revoke(number: u64) {
    let number = RegistrationNumber::from_raw(number);
    let thread = thread();
    let then = number.update_when(|record| match &record.phase {
        Phase::Pinning | Phase::Unmapping { .. } => None,
        _ => Some(record.phase.advance(|phase| match phase {
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
            Phase::Unmapped { list, .. } => (Phase::Revoked { list }, Then::Nothing),
            // The device has never reached the memory, or does not reach it any more.
            unmapped @ (Phase::Pinned { .. }
            | Phase::Bound { .. }
            | Phase::Mapping { .. }
            | Phase::Unpinning) => (
                Phase::Revoked { list: None },
                Then::Drop { _phase: unmapped },
            ),
            Phase::Orphan => (Phase::Orphan, Then::Forget),
            other => (other, Then::Nothing),
        })),
    });
    match then {
        Some(Then::Invalidate(core_context)) => revoke_mapped(number, core_context),
        Some(Then::Forget) => number.forget_orphan(),
        // A phase that was taken out is dropped here, without the lock.
        Some(Then::Drop { .. } | Then::Nothing) => {}
        // The registration has ended, in this load of the module or in an earlier one.
        None => {}
    }
}

/// Revokes a registration that a device can reach.
fn revoke_mapped(number: RegistrationNumber, core_context: CoreContext) {
    peer_client::invalidate(core_context);
    stats::add(abi::NVPM_COUNT_REVOCATIONS, 1);
    let mapping = number.with(|record| match &mut record.phase {
        Phase::Revoking { mapping, .. } => mapping.take(),
        _ => None,
    });
    let list = mapping.flatten().and_then(Mapping::unmap);
    number.update(|record| record.phase = Phase::Revoked { list });
}
