// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The client that gives GPU memory up when it is freed, and the life of its regions.
//!
//! The driver's free callback may come at any time. Each event is a change of phase under the region's
//! lock; the thread that gets a mapping or a pin out of the phase acts on it after it has released the
//! lock. So two threads that tear down the same region are kept apart: mapping and pin are in the
//! phase once.
//!
//! # Locks and their order
//!
//! | lock | whose | held over |
//! |---|---|---|
//! | list lock | RDMA core | its call `acquire`, registration and unregistration of clients |
//! | unpin lock, one | ours (`p2p.rs`) | calls to pin revocably (shared) and to unpin (exclusive) |
//! | API lock | driver | its free callback; inside our calls to pin, unpin and map |
//! | mapping lock, one per umem | RDMA core | its calls `get_pages` and `dma_map`, in older cores also `dma_unmap` and `put_pages`; inside our call to invalidate |
//! | region lock, one per region | ours | one change of phase |
//! | locks of the registry and of the pairs | ours | one look-up |
//!
//! They are taken in this order, from the top down. The rules that keep it so:
//!
//! - No lock of ours is held across a call into either neighbour, except the unpin lock.
//! - The driver is asked to pin in `acquire` and to unpin in `release`, which the core calls
//!   without the mapping lock. In `dma_map`, under it, the driver is asked about persistent pins
//!   only (`map_type.rs`). The region is not `Mapped` then, so no callback waits for its mapping lock.
//! - The core is told of a revocation only for a region in phase `Mapped`: from then on the thread
//!   that holds the mapping lock waits for nothing of ours or the driver's.
//! - The callback waits only for the end of the call that pinned, which needs no lock of the driver any
//!   more, and for the end of a `dma_unmap`, which needs none. It never takes the unpin lock.

use core::{mem, ops::DerefMut};

use kernel::{
    new_spinlock,
    prelude::*,
    sync::{Arc, SpinLock},
};

use crate::{
    abi::{self, ffi::c_void, persistent_instead},
    compat::{eopnotsupp, pr_warn_ratelimited},
    dma::{Device, Mapping},
    extents::Range,
    map_type::{self, MapType},
    p2p::{Memory, PinError, RevocablePin, Revoke},
    peer_client::{self, Client, Kind},
    registry::{may_pin, Number, Registered},
    stats,
};

/// The core's name for a registration, to be handed back when it is revoked; 0 is a legal one.
type CoreContext = u64;

/// The client that gives memory up.
pub(crate) struct Revocable;

impl Client for Revocable {
    const KIND: Kind = Kind::Revocable;
    type Region = Region;

    fn acquire(range: Range, registered: Registered) -> Result<Option<Region>> {
        let region = Region::new(range, registered)?;
        Ok(region.pin().then_some(region))
    }
}

/// A registration, from `acquire` to `release`, and as long as a callback of the driver can come. Each of
/// these is an owner of it.
#[derive(Clone)]
pub(crate) struct Region(Arc<SpinLock<State>>);

/// Fields drop in their order here: the module may be unloaded when `registered` has been dropped.
pub(crate) struct State {
    phase: Phase,
    /// Whether a thread waits for another phase.
    awaited: bool,
    range: Range,
    registered: Registered,
}

// With the count of owners and the lock: one object of 128 bytes of the allocator.
const _: () = assert!(mem::size_of::<State>() <= 120);

impl State {
    /// Replaces the phase by the one that `event` makes of it.
    fn advance<R>(&mut self, event: impl FnOnce(Phase) -> (Phase, R)) -> R {
        let (phase, result) = event(mem::replace(&mut self.phase, Phase::Gone));
        self.phase = phase;
        result
    }

    /// Tells the state of the registration.
    fn tell(&self, state: abi::nvpm_region_state) {
        self.registered.number().set_state(state);
    }
}

/// Where a region is in its life, with what it has there.
enum Phase {
    /// The driver has been asked for the pages and has not answered yet.
    Pinning,
    /// It is GPU memory, but cannot be pinned for this reason.
    Failed(Error),
    /// The driver has pinned the pages.
    Pinned { pin: RevocablePin, memory: Memory },
    /// The core has named the registration.
    Bound {
        context: CoreContext,
        pin: RevocablePin,
        memory: Memory,
    },
    /// A call of the core is mapping the pages, or has failed to.
    Mapping {
        context: CoreContext,
        pin: RevocablePin,
    },
    /// The device may use the addresses.
    Mapped {
        context: CoreContext,
        pin: RevocablePin,
        mapping: Mapping,
    },
    /// This thread is reporting to the core that the memory goes away. A core that answers by a
    /// deregistration on the same thread has the mapping undone before.
    Revoking {
        thread: i32,
        mapping: Option<Mapping>,
    },
    /// The driver has taken the memory back. The core may still look at the scatterlist.
    Revoked { _unmapped: Option<Mapping> },
    /// The core has let go of the addresses; its thread is undoing the mapping.
    Unmapping { pin: RevocablePin },
    /// The mapping is undone, the pages are still pinned.
    Unmapped {
        pin: RevocablePin,
        unmapped: Mapping,
    },
    /// Nothing is left to give back.
    Gone,
}

impl Phase {
    /// The phase again, and why the core's call does not fit it.
    fn refuse<T>(self) -> (Self, Result<T>) {
        let error = match self {
            Self::Failed(error) => error,
            Self::Revoked { .. } => EFAULT,
            _ => EINVAL,
        };
        (self, Err(error))
    }

    /// The pin that is left, after everything else has been undone.
    fn into_pin(self) -> Option<RevocablePin> {
        match self {
            Self::Pinned { pin, .. }
            | Self::Bound { pin, .. }
            | Self::Mapping { pin, .. }
            | Self::Mapped { pin, .. }
            | Self::Unmapping { pin }
            | Self::Unmapped { pin, .. } => Some(pin),
            Self::Pinning
            | Self::Failed(_)
            | Self::Revoking { .. }
            | Self::Revoked { .. }
            | Self::Gone => None,
        }
    }
}

impl Region {
    fn new(range: Range, registered: Registered) -> Result<Self> {
        let number = registered.number();
        let state = State {
            phase: Phase::Pinning,
            awaited: false,
            range,
            registered,
        };
        let region = Self(Arc::pin_init(
            new_spinlock!(state, "nv_peer_mem::Region"),
            GFP_KERNEL,
        )?);
        number.arm(region.clone());
        Ok(region)
    }

    /// What does not change.
    fn identity(&self) -> (Number, Range) {
        let state = self.0.lock();
        (state.registered.number(), state.range)
    }

    /// Pins the memory; false if it is not the GPU's.
    fn pin(&self) -> bool {
        let (number, range) = self.identity();
        let pinned = may_pin()
            .map_err(|error| {
                drop(number.disarm());
                PinError::Failed(error)
            })
            .and_then(|()| RevocablePin::new(&range, number));
        match pinned {
            Ok((pin, Ok(memory))) => self.pinned(Phase::Pinned { pin, memory }),
            Ok((pin, Err(error))) => {
                // The callback waits for the phase to change, and unpinning for the callback.
                self.pinned(Phase::Failed(error));
                pin.unpin(&range, number);
            }
            Err(PinError::NotGpuMemory) => return false,
            Err(PinError::Failed(error)) => self.pinned(Phase::Failed(error)),
        }
        true
    }

    /// The driver has answered. From here on its callback does not wait any more.
    fn pinned(&self, phase: Phase) {
        let mut state = self.0.lock();
        state.tell(match phase {
            Phase::Failed(_) => abi::NVPM_REGION_REFUSED,
            _ => abi::NVPM_REGION_PINNED,
        });
        state.phase = phase;
        changed(state);
    }

    /// Takes out what there is to map.
    fn begin_mapping(&self) -> Result<Memory> {
        self.0.lock().advance(|phase| match phase {
            Phase::Bound {
                context,
                pin,
                memory,
            } => (Phase::Mapping { context, pin }, Ok(memory)),
            other => other.refuse(),
        })
    }

    /// The last step of `dma_map`. If the memory was revoked meanwhile, the mapping comes back.
    fn end_mapping(&self, device: Device, mapping: Mapping) -> Result<abi::sg_table, LateMapping> {
        let mut state = self.0.lock();
        let number = state.registered.number();
        state.advance(|phase| match phase {
            Phase::Mapping { context, pin } => {
                let table = mapping.for_core();
                number.set_mapped(device);
                let mapped = Phase::Mapped {
                    context,
                    pin,
                    mapping,
                };
                (mapped, Ok(table))
            }
            other => {
                let (phase, refusal) = other.refuse();
                (phase, refusal.map_err(|error| (error, mapping)))
            }
        })
    }

    /// Waits until the phase has changed.
    fn wait(mut state: impl DerefMut<Target = State>) {
        state.awaited = true;
        // SAFETY: Reads a counter. A thread that changes the phase adds to it after this one has
        // released the lock.
        let count = unsafe { abi::nvpm_phase_count() };
        drop(state);
        // SAFETY: Called where sleeping is allowed, without a lock.
        unsafe { abi::nvpm_phase_wait(count) };
    }
}

/// Why the core does not get the addresses, and the mapping, to be undone without the lock.
type LateMapping = (Error, Mapping);

/// Releases the lock, and wakes the threads that wait for another phase. Mostly there is none.
fn changed(mut state: impl DerefMut<Target = State>) {
    let awaited = mem::take(&mut state.awaited);
    drop(state);
    if awaited {
        // SAFETY: Callable from any context.
        unsafe { abi::nvpm_phase_wake() };
    }
}

fn thread() -> i32 {
    // SAFETY: Reads the calling thread's number.
    unsafe { abi::nvpm_current_tid() }
}

impl peer_client::Region for Region {
    fn into_context(self) -> *mut c_void {
        Arc::into_raw(self.0).cast_mut().cast()
    }

    unsafe fn from_context(context: *mut c_void) -> Self {
        // SAFETY: By this function's requirement the pointer is from `Arc::into_raw`.
        Self(unsafe { Arc::from_raw(context.cast_const().cast()) })
    }

    fn get_pages(&mut self, context: u64) -> Result {
        self.0.lock().advance(|phase| match phase {
            Phase::Pinned { pin, memory } => {
                let bound = Phase::Bound {
                    context,
                    pin,
                    memory,
                };
                (bound, Ok(()))
            }
            other => other.refuse(),
        })
    }

    fn dma_map(&mut self, device: Device) -> Result<abi::sg_table> {
        if !device.can_invalidate() {
            pr_warn_ratelimited!(
                "the driver of this RDMA device cannot revoke registrations of GPU memory{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        let (_, range) = self.identity();
        let memory = self.begin_mapping()?;
        if map_type::of_pair(memory.gpu, device, &range)? == MapType::Driver {
            pr_warn_ratelimited!(
                "only the NVIDIA driver can map this GPU's memory for this RDMA device, and its mappings cannot be revoked{}\n",
                persistent_instead()
            );
            return Err(eopnotsupp());
        }
        let mapping = Mapping::new(device, &memory.extents, &range)?;
        self.end_mapping(device, mapping)
            .map_err(|(error, _mapping)| error)
    }

    fn dma_unmap(&mut self) {
        let mapping = self.0.lock().advance(|phase| match phase {
            Phase::Mapped { pin, mapping, .. } => (Phase::Unmapping { pin }, Some(mapping)),
            // A revocation undoes it, or nothing is mapped.
            other => (other, None),
        });
        let Some(mut unmapped) = mapping else {
            return;
        };
        unmapped.unmap();
        // The pin stays until `release`, which the core calls without the lock that a callback may
        // wait for. Until here the callback has waited.
        let mut state = self.0.lock();
        state.advance(|phase| match phase {
            Phase::Unmapping { pin } => (Phase::Unmapped { pin, unmapped }, ()),
            other => (other, ()),
        });
        state.tell(abi::NVPM_REGION_UNMAPPED);
        changed(state);
    }

    fn release(self) {
        let thread = thread();
        let (phase, number, range) = loop {
            let mut state = self.0.lock();
            match &mut state.phase {
                Phase::Revoking {
                    thread: revoking,
                    mapping,
                } if *revoking == thread => {
                    // Inside the core's answer to our own invalidation, which older cores give so. The
                    // device may go when this has returned: the mapping is undone here.
                    let mapping = mapping.take();
                    drop(state);
                    drop(mapping);
                    return;
                }
                // The core still uses its record of this region, and the callback the device.
                Phase::Revoking { .. } => Self::wait(state),
                _ => {
                    let phase = mem::replace(&mut state.phase, Phase::Gone);
                    break (phase, state.registered.number(), state.range);
                }
            }
        };
        if let Some(pin) = phase.into_pin() {
            pin.unpin(&range, number);
        }
    }
}

// SAFETY: In the phases `Pinning` and `Unmapping` it waits. A region that a device can reach is `Mapped`:
// the core, once told, has stopped the device, and the mapping is undone here, or by `release` further
// down this stack, before this returns. A region that is being mapped is found `Revoked` by the thread that
// maps, which undoes it without having given the addresses to the core. What is mapped is mapped from a
// copy of the table, `Memory`. The pin is dropped here, or `release` has it, and `unpin` looks at the
// number first.
unsafe impl Revoke for Region {
    fn revoke(&self) {
        let thread = thread();
        let context = loop {
            let mut state = self.0.lock();
            match mem::replace(&mut state.phase, Phase::Gone) {
                waiting @ (Phase::Pinning | Phase::Unmapping { .. }) => {
                    state.phase = waiting;
                    Self::wait(state);
                }
                Phase::Mapped {
                    context, mapping, ..
                } => {
                    state.tell(abi::NVPM_REGION_REVOKED);
                    let mapping = Some(mapping);
                    state.phase = Phase::Revoking { thread, mapping };
                    break context;
                }
                // The device has never reached the memory, or does not any more.
                phase @ (Phase::Pinned { .. }
                | Phase::Bound { .. }
                | Phase::Mapping { .. }
                | Phase::Unmapped { .. }) => {
                    state.tell(abi::NVPM_REGION_REVOKED);
                    let (_unmapped, rest) = match phase {
                        Phase::Unmapped { unmapped, .. } => (Some(unmapped), None),
                        other => (None, Some(other)),
                    };
                    state.phase = Phase::Revoked { _unmapped };
                    drop(state);
                    // Not under the lock.
                    drop(rest);
                    return;
                }
                // The region was given back already.
                other => {
                    state.phase = other;
                    return;
                }
            }
        };
        peer_client::invalidate(context);
        stats::REVOCATIONS.add(1);
        let mut mapping = match &mut self.0.lock().phase {
            Phase::Revoking { mapping, .. } => mapping.take(),
            _ => None,
        };
        if let Some(mapping) = &mut mapping {
            mapping.unmap();
        }
        let mut state = self.0.lock();
        state.phase = Phase::Revoked { _unmapped: mapping };
        changed(state);
    }
}
