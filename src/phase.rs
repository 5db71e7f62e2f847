// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The phases in the life of a registration, and the pins and mappings that belong to each phase.
//!
//! A phase changes under the lock of the registry (`registry.rs`). A thread that takes a pin or a mapping out
//! of a phase acts on it after the lock is released, so two threads cannot undo the same thing.

use core::mem;

use kernel::prelude::*;

use crate::{
    abi,
    dma::Mapping,
    pin::{PersistentPin, PinnedMemory, RevocablePin},
    sg_table::SgTable,
};

/// The core's name for a registration, to be handed back when it is revoked; 0 is a legal one.
pub(crate) type CoreContext = u64;

/// The pin and the mapping of a persistent registration. Fields drop in order: the mapping goes before the pin.
pub(crate) struct Kept {
    pub(crate) mapping: Option<Mapping>,
    /// The scatterlist, which the core may still read after the mapping was undone.
    pub(crate) list: Option<SgTable>,
    pub(crate) pin: PersistentPin,
}

/// The life of a registration. Persistent registrations only have the phases `Pinning`, `Kept` and `InCall`.
pub(crate) enum Phase {
    /// The driver has been asked for the pages and has not answered yet.
    Pinning,
    /// Persistent: the driver has pinned the pages, until the core releases them.
    Kept(Kept),
    /// Persistent: a call of the core has taken the pin and the mapping, and works on them. Also the
    /// placeholder while [`Self::advance`] replaces any phase, which no other thread sees: the lock is held.
    InCall,
    /// The driver has pinned the pages, until it takes them back.
    Pinned {
        pin: RevocablePin,
        memory: PinnedMemory,
    },
    /// The core has named the registration.
    Bound {
        core_context: CoreContext,
        pin: RevocablePin,
        memory: PinnedMemory,
    },
    /// A call of the core is mapping the pages, or has failed to.
    Mapping {
        core_context: CoreContext,
        pin: RevocablePin,
    },
    /// The device may use the addresses.
    Mapped {
        core_context: CoreContext,
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
    Revoked {
        #[allow(dead_code)] // The list is only kept, until the record goes.
        list: Option<SgTable>,
    },
    /// The core has let go of the addresses; its thread is undoing the mapping.
    Unmapping { pin: RevocablePin },
    /// The mapping is undone, the pages are still pinned.
    Unmapped {
        pin: RevocablePin,
        list: Option<SgTable>,
    },
    /// The core is done with it, or never gets it; the driver is being asked to unpin.
    Unpinning,
    /// The core is done with it, and the pages stay pinned until the memory is freed.
    Orphan,
}

impl Phase {
    /// Replaces the phase by the phase that `event` returns.
    pub(crate) fn advance<R>(&mut self, event: impl FnOnce(Self) -> (Self, R)) -> R {
        let (phase, result) = event(mem::replace(self, Self::InCall));
        *self = phase;
        result
    }

    /// The phase again, and why the core's call does not fit it.
    pub(crate) fn refuse<T>(self) -> (Self, Result<T>) {
        let error = match self {
            Self::Revoked { .. } => EFAULT,
            _ => EINVAL,
        };
        (self, Err(error))
    }

    /// The revocable pin that is left, when nothing is mapped.
    pub(crate) fn into_pin(self) -> Option<RevocablePin> {
        match self {
            Self::Pinned { pin, .. }
            | Self::Bound { pin, .. }
            | Self::Mapping { pin, .. }
            | Self::Unmapped { pin, .. } => Some(pin),
            // A mapped registration is unmapped first.
            Self::Mapped { .. }
            | Self::Unmapping { .. }
            | Self::Pinning
            | Self::Kept(_)
            | Self::InCall
            | Self::Revoking { .. }
            | Self::Revoked { .. }
            | Self::Unpinning
            | Self::Orphan => None,
        }
    }

    /// The word for it in `/proc/driver/nv_peer_mem/regions`.
    pub(crate) fn state(&self) -> abi::nvpm_region_state {
        match self {
            Self::Pinning => abi::NVPM_REGION_PINNING,
            Self::Kept(Kept { mapping, list, .. }) => match (mapping, list) {
                (Some(_), _) => abi::NVPM_REGION_MAPPED,
                (None, Some(_)) => abi::NVPM_REGION_UNMAPPED,
                (None, None) => abi::NVPM_REGION_PINNED,
            },
            Self::InCall | Self::Pinned { .. } | Self::Bound { .. } | Self::Mapping { .. } => {
                abi::NVPM_REGION_PINNED
            }
            Self::Mapped { .. } => abi::NVPM_REGION_MAPPED,
            Self::Revoking { .. } | Self::Revoked { .. } => abi::NVPM_REGION_REVOKED,
            Self::Unmapping { .. } | Self::Unmapped { .. } | Self::Unpinning => {
                abi::NVPM_REGION_UNMAPPED
            }
            Self::Orphan => abi::NVPM_REGION_ORPHANED,
        }
    }
}
