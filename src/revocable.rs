// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The client that gives GPU memory up when it is freed.
//!
//! The driver's free callback may come at any time. Each event is a change of phase (`phase.rs`) under the
//! registry's lock; the thread that gets a mapping or a pin out of the phase acts on it after it has released
//! the lock. So two threads that tear down the same registration are kept apart: mapping and pin are in the
//! phase once.
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
//! They are taken in this order, from the top down. The rules that keep it so:
//!
//! - No lock of ours is held across a call into either neighbour, except the unpin lock.
//! - The driver is asked to pin in `acquire` and to unpin in `release`, which the core calls
//!   without the mapping lock. In `dma_map`, under it, the driver is asked about persistent pins
//!   only (`map_type.rs`), which takes the unpin lock and the API lock. The registration is not `Mapped` then, so
//!   no callback waits for its mapping lock.
//! - The core is told of a revocation only for a registration in phase `Mapped`: from then on the thread
//!   that holds the mapping lock waits for nothing of ours or the driver's.
//! - The callback waits only for the end of the call that pinned, which needs no lock of the driver any
//!   more, and for the end of a `dma_unmap`, which needs none. It never takes the unpin lock.

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

/// The client that gives memory up.
pub(crate) struct Revocable;

impl Client for Revocable {
    const KIND: Kind = Kind::Revocable;

    fn acquire(number: RegistrationNumber, range: &Range) -> Result<bool> {
        if !number.count_for_user()? {
            return refuse(range);
        }
        // SAFETY: In the phase `Pinning` the callback waits. The phase changes when the result is there, and
        // before the pin is undone.
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
            // A revocation undoes it, or nothing is mapped.
            other => other.refuse(),
        });
        let Ok(mapping) = mapping else {
            return;
        };
        let list = mapping.unmap();
        // The pin stays until `release`, which the core calls without the lock that a callback may
        // wait for. Until here the callback has waited.
        number.update(|record| {
            record.phase.advance(|phase| match phase {
                Phase::Unmapping { pin } => (Phase::Unmapped { pin, list }, ()),
                other => (other, ()),
            });
        });
    }

    fn release(number: RegistrationNumber) {
        // A core should have unmapped before; mapped memory must not be unpinned.
        Self::dma_unmap(number);
        let thread = thread();
        let release = number.update_when(|record| match &record.phase {
            // The device may go when the core's call returns: the mapping is undone by then, because it goes
            // with the record.
            Phase::Revoking { thread: own, .. } if *own == thread => Some(Release::ByCallback),
            // The core still uses its record of this registration, and the callback uses the device.
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

/// The user has too many orphans. Memory that is not the GPU's is for others all the same.
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

/// The last step of `dma_map`. If the memory was revoked meanwhile, the mapping is undone.
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
    // Without the lock.
    drop(late);
    ended.unwrap_or(Err(EINVAL))
}

/// Unpins, in the phase `Unpinning`, unless the driver takes the pages back meanwhile. If it would not find
/// the pin, or reports an error, the registration becomes an orphan. `process` has pinned `range`.
fn unpin(pin: RevocablePin, number: RegistrationNumber, range: &Range, process: Process) {
    // The driver looks a pin up by process. Called from another process it finds nothing, and returns
    // 0. The same can happen in a process that exits, whose objects in the driver may be gone: the
    // driver then frees its memory, with a callback.
    // SAFETY: Reads a flag of the calling thread, from any context.
    let is_found = process.is_current() && !unsafe { abi::nvpm_current_exiting() };
    let is_revoked =
        || number.with(|record| matches!(record.phase, Phase::Revoked { .. })) == Some(true);
    if !is_found || !pin.put(range, is_revoked) {
        number.orphan();
    }
}

fn thread() -> i32 {
    // SAFETY: Reads the calling thread's number.
    unsafe { abi::nvpm_current_tid() }
}

/// The work of the driver's callback that is done without the lock.
enum Then {
    /// Tell the core that the registration with this name loses its memory.
    Invalidate(CoreContext),
    /// The memory of an orphan has been freed: the record goes.
    Forget,
    /// Drop the phase, of whose memory the device has no addresses.
    Drop { _phase: Phase },
    /// Nothing is to be done.
    Nothing,
}

/// The work of `release`.
enum Release {
    /// This thread is inside the core's answer to the invalidation of this registration, as in older cores. The
    /// mapping is undone when the invalidation returns: the callback has it.
    ByCallback,
    /// This thread ends the registration, which was in this phase.
    Taken(Phase, Range, Process),
}

/// The driver takes the memory of a registration back when this returns: `nv_peer_mem_callback` calls it. By
/// then no device reaches the memory through the registration's mapping, no thread reads the pin's page
/// table, and nobody will use the pin.
///
/// In the phases `Pinning` and `Unmapping` this waits. A registration that a device can reach is `Mapped`:
/// the core, once told, has stopped the device, and the mapping is undone here, or by `release` further
/// down this stack. A registration that is being mapped is found `Revoked` by the thread that maps, which
/// undoes it without having given the addresses to the core. What is mapped is mapped from a copy of the
/// table, `Memory`. The pin is dropped here, or a thread has it that unpins, and looks at the phase first.
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
            // The device has never reached the memory, or does not any more.
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
        // The phases that were taken out are dropped here, without the lock.
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
