// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The clients that keep GPU memory pinned until the registration ends, even if the memory is freed
//! before.
//!
//! Only the core's calls change such a registration, and they come one after another. A call takes
//! the pin and the mapping out of the record, works on both without a lock, and puts both back.

use kernel::prelude::*;

use crate::{
    abi,
    dma::{Device, Mapping},
    extents::Range,
    map_type::{self, MapType},
    peer_client::{Client, Kind},
    phase::{CoreContext, Kept, Phase},
    pin::{PersistentPin, PinError},
    registry::RegistrationNumber,
};

/// The client that the core asks first, unless `persistent_api_support=0`.
pub(crate) type Persistent = KeepingClient<false>;

/// The client that the core asks last. This client also claims GPU memory that cannot be pinned, so
/// that the program gets the driver's error.
pub(crate) type CatchAll = KeepingClient<true>;

/// A client whose pins last until deregistration.
pub(crate) struct KeepingClient<const CATCH_ALL: bool>;

impl<const CATCH_ALL: bool> Client for KeepingClient<CATCH_ALL> {
    const KIND: Kind = if CATCH_ALL {
        Kind::CatchAll
    } else {
        Kind::Persistent
    };

    fn acquire(number: RegistrationNumber, range: &Range) -> Result<bool> {
        match PersistentPin::new(range) {
            // The core then asks the next client, because the revocable client may be able to pin.
            Err(error) if !CATCH_ALL && error.may_fall_back() => Ok(false),
            pin => keep(number, pin),
        }
    }

    fn get_pages(_: RegistrationNumber, _: CoreContext) -> Result {
        Ok(())
    }

    fn dma_map(number: RegistrationNumber, device: Device) -> Result<abi::sg_table> {
        let (mut kept, range) = take(number).ok_or(EINVAL)?;
        let table = map(&mut kept, device, &range);
        put(number, kept, table.is_ok().then_some(device));
        table
    }

    fn dma_unmap(number: RegistrationNumber) {
        let Some((mut kept, _)) = take(number) else {
            return;
        };
        if let Some(mapping) = kept.mapping.take() {
            kept.list = mapping.unmap();
            kept.pin.unmap();
        }
        put(number, kept, None);
    }

    /// Does nothing, because the pin and the mapping go with the record.
    fn release(_: RegistrationNumber) {}
}

/// Keeps the pin, and returns whether the memory is GPU memory. Returns an error if GPU memory
/// cannot be pinned.
fn keep(number: RegistrationNumber, pin: Result<PersistentPin, PinError>) -> Result<bool> {
    let pin = match pin {
        Ok(pin) => pin,
        Err(PinError::NotGpuMemory) => return Ok(false),
        Err(PinError::Failed(error)) => return Err(error),
    };
    let kept = Kept {
        mapping: None,
        list: None,
        pin,
    };
    put(number, kept, None);
    Ok(true)
}

/// Takes the pin and the mapping out of the record.
fn take(number: RegistrationNumber) -> Option<(Kept, Range)> {
    number
        .with(|record| {
            let range = record.range();
            record.phase.advance(|phase| match phase {
                Phase::Kept(kept) => (Phase::InCall, Some((kept, range))),
                other => (other, None),
            })
        })
        .flatten()
}

/// Puts the pin and the mapping back, and records which device can reach the memory from now on.
fn put(number: RegistrationNumber, kept: Kept, device: Option<Device>) {
    let before = number.with(|record| {
        if let Some(device) = device {
            record.set_device(device);
        }
        record.phase.advance(|phase| (Phase::Kept(kept), phase))
    });
    // The replaced phase is `InCall`, which holds nothing. If there is no record, the pin has
    // ended.
    drop(before);
}

fn map(kept: &mut Kept, device: Device, range: &Range) -> Result<abi::sg_table> {
    let Kept { mapping, list, pin } = kept;
    if mapping.is_some() || list.is_some() {
        return Err(EINVAL);
    }
    let mapping = mapping.insert(match map_type::of_pair(pin.gpu(), device, range)? {
        MapType::Driver => {
            pin.map(device)?;
            Mapping::by_driver(device, &pin.bus_extents(range)?, range)?
        }
        MapType::Ours => Mapping::new(device, &pin.extents(range)?, range)?,
        // The whole range is pinned already, so the failure to pin its first page is
        // transient.
        MapType::Unasked => return Err(EIO),
    });
    Ok(mapping.for_core())
}
