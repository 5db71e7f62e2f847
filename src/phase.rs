// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The phases in the life of a registration, and the pins and mappings that belong to each phase.
//!
//! A phase changes only under the lock of the registry (`registry.rs`). Only one thread can
//! therefore take a pin or a mapping out of a phase, so no two threads undo the same object. The
//! thread undoes the object after it has released the lock.

use core::{marker::PhantomData, mem};

use kernel::prelude::*;

use crate::{
    abi,
    dma::Mapping,
    pin::{PersistentPin, PinnedMemory, RevocablePin},
    sg_table::SgTable,
};

/// The core's number for a registration. This module passes the number to the core when it revokes
/// the registration. The number may be 0. [`crate::registry::RegistrationNumber`] is this module's
/// own number for the same registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CoreContext(pub(crate) u64);

/// The phases in the life of a registration. Persistent registrations only have the phases
/// `Pinning`, `Persistent` and `InCall`.
pub(crate) enum Phase {
    /// The driver has been asked for the pages and has not answered yet.
    Pinning,
    /// The driver has pinned the pages persistently, until the core releases the registration.
    Persistent(PersistentPin),
    /// A call of the core has taken the persistent pin out of the record, and works on the pin.
    /// [`Self::change`] also leaves `InCall`, as a placeholder until the next phase is stored. No
    /// other thread sees the placeholder, because the lock is held until then.
    InCall,
    /// The driver has pinned the pages revocably, and no device can reach the memory. Another phase
    /// follows when the driver takes the pages back.
    Pinned {
        pin: RevocablePin,
        /// The core's number, after the core has passed it to this module.
        core_context: Option<CoreContext>,
        /// The memory, until a call of the core takes it to map the pages.
        memory: Option<PinnedMemory>,
    },
    /// The device may use the addresses.
    Mapped {
        core_context: CoreContext,
        pin: RevocablePin,
        mapping: Mapping,
    },
    /// `thread` is telling the core that the registration loses its memory. If the core releases
    /// the registration on the same thread, the mapping is dropped with this phase, before the
    /// driver takes the memory back.
    Revoking {
        thread: i32,
        mapping: Option<Mapping>,
    },
    /// The driver takes the memory back, or has taken it back. The core may still read the
    /// scatterlist.
    Revoked {
        #[allow(dead_code)] // The list is only kept until the record is removed.
        list: Option<SgTable>,
    },
    /// The core has asked this module to undo the mapping. The pages are still pinned.
    Unmapped { pin: RevocablePin, list: Unmapped },
    /// The core has released the registration, or will not receive the registration, because
    /// `acquire` fails. A thread is asking the driver to unpin the pages.
    Unpinning,
    /// The core has released the registration, and the pages stay pinned until the memory is freed.
    Orphan,
}

/// How far a mapping is undone.
pub(crate) enum Unmapped {
    /// The core's thread is undoing the mapping.
    Soon,
    /// The mapping is undone. The core may still read the list.
    Done(Option<SgTable>),
}

impl Phase {
    /// Takes the phase out, and calls `event` with the phase and with its empty place. `event` must
    /// return a proof that it has filled the place again. Returns the other result of `event`.
    pub(crate) fn change<R>(
        &mut self,
        event: impl for<'a> FnOnce(Self, Place<'a>) -> (Filled<'a>, R),
    ) -> R {
        let phase = mem::replace(self, Self::InCall);
        let (Filled(_), result) = event(phase, Place(self));
        result
    }

    /// Stores the phase that follows `Pinning` or `InCall`. These phases contain nothing, so they
    /// are not dropped, which would only cost time under the lock.
    pub(crate) fn follow_empty(&mut self, next: Self) {
        debug_assert!(matches!(self, Self::Pinning | Self::InCall));
        mem::forget(mem::replace(self, next));
    }

    /// Stores the core's number in the phase `Pinned`. This and [`Self::begin_mapping`] change the
    /// phase in place, because a copy of the phase costs time under the lock.
    pub(crate) fn bind(&mut self, number: CoreContext) -> Result {
        match self {
            Self::Pinned {
                core_context: unknown @ None,
                ..
            } => {
                *unknown = Some(number);
                Ok(())
            }
            other => Err(other.refuse()),
        }
    }

    /// Takes the memory out of the phase `Pinned`, so that the pages are mapped only once.
    pub(crate) fn begin_mapping(&mut self) -> Result<PinnedMemory> {
        let memory = match self {
            Self::Pinned {
                core_context: Some(_),
                memory,
                ..
            } => memory.take(),
            _ => None,
        };
        memory.ok_or_else(|| self.refuse())
    }

    /// Tells whether another thread works for the registration, and a revocation must wait for it.
    pub(crate) fn is_in_work(&self) -> bool {
        matches!(
            self,
            Self::Pinning
                | Self::Unmapped {
                    list: Unmapped::Soon,
                    ..
                }
        )
    }

    /// Stores the list of a mapping that the core's thread has undone.
    pub(crate) fn end_unmapping(&mut self, undone: Option<SgTable>) {
        if let Self::Unmapped { list, .. } = self {
            *list = Unmapped::Done(undone);
        }
    }

    /// Returns the error for the core, which has made a call that is not possible in this phase.
    pub(crate) fn refuse(&self) -> Error {
        match self {
            Self::Revoked { .. } => EFAULT,
            _ => EINVAL,
        }
    }

    /// Returns the revocable pin, or [`None`] if the phase has a mapping or no revocable pin.
    pub(crate) fn into_pin(self) -> Option<RevocablePin> {
        match self {
            Self::Pinned { pin, .. }
            | Self::Unmapped {
                pin,
                list: Unmapped::Done(_),
            } => Some(pin),
            // The pin of a registration that is mapped is not returned, because the mapping must be
            // undone before the pages are unpinned.
            Self::Mapped { .. }
            | Self::Unmapped { .. }
            | Self::Pinning
            | Self::Persistent(_)
            | Self::InCall
            | Self::Revoking { .. }
            | Self::Revoked { .. }
            | Self::Unpinning
            | Self::Orphan => None,
        }
    }

    /// Returns the state for `/proc/driver/nv_peer_mem/regions`.
    pub(crate) fn state(&self) -> abi::nvpm_region_state {
        match self {
            Self::Pinning => abi::NVPM_REGION_PINNING,
            Self::Persistent(pin) => pin.state(),
            Self::InCall | Self::Pinned { .. } => abi::NVPM_REGION_PINNED,
            Self::Mapped { .. } => abi::NVPM_REGION_MAPPED,
            Self::Revoking { .. } => abi::NVPM_REGION_REVOKING,
            Self::Revoked { .. } => abi::NVPM_REGION_REVOKED,
            Self::Unmapped { .. } | Self::Unpinning => abi::NVPM_REGION_UNMAPPED,
            Self::Orphan => abi::NVPM_REGION_ORPHANED,
        }
    }
}

/// The place in a record from which [`Phase::change`] has taken the phase.
#[must_use = "the record has no phase until the place is filled"]
pub(crate) struct Place<'a>(&'a mut Phase);

/// The proof that a [`Place`] was filled. Both have the same lifetime, and each call of
/// [`Phase::change`] has a lifetime of its own. The proof for one place therefore does not count
/// for another place.
pub(crate) struct Filled<'a>(PhantomData<&'a ()>);

impl<'a> Place<'a> {
    pub(crate) fn fill(self, phase: Phase) -> Filled<'a> {
        self.0.follow_empty(phase);
        Filled(PhantomData)
    }
}
