// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The clients that keep GPU memory pinned until the registration ends, even if the program frees
//! the memory before.
//!
//! Only the core's calls change such a registration, and the core makes no two calls for one
//! registration at the same time. A call takes the pin, which has the mapping, out of the record,
//! works on the pin without a lock, and puts it back.

use kernel::prelude::*;

use crate::{
    abi,
    device::Device,
    extents::Range,
    map_type::{self, MapType},
    peer_client::Client,
    phase::{CoreContext, Phase},
    pin::{PersistentPin, PinError},
    process::Process,
    registry::{self, Kind, RegistrationNumber},
};

/// The client that the core asks first. With `persistent_api_support=0` this client is not
/// registered.
pub(crate) type Persistent = PersistentClient<false>;

/// The client that the core asks last. This client also claims GPU memory that cannot be pinned, so
/// that the program gets the driver's error.
pub(crate) type CatchAll = PersistentClient<true>;

/// A client whose pins last until the registration ends.
pub(crate) struct PersistentClient<const CATCH_ALL: bool>;

impl<const CATCH_ALL: bool> Client for PersistentClient<CATCH_ALL> {
    const KIND: Kind = if CATCH_ALL {
        Kind::CatchAll
    } else {
        Kind::Persistent
    };

    fn acquire(number: RegistrationNumber, range: &Range, _: Process) -> Result<bool> {
        match PersistentPin::new(range) {
            Ok(pin) => {
                put(number, pin, None);
                Ok(true)
            }
            // After `Ok(false)` the core asks the next client, the revocable client, which may be
            // able to pin the memory.
            Err(error) if !CATCH_ALL && error.may_fall_back() => Ok(false),
            Err(PinError::NotGpuMemory) => Ok(false),
            Err(PinError::Failed(error)) => Err(error),
        }
    }

    fn get_pages(_: RegistrationNumber, _: CoreContext) -> Result {
        Ok(())
    }

    fn dma_map(number: RegistrationNumber, device: Device<'_>) -> Result<abi::sg_table> {
        let (mut pin, range) = take(number).ok_or(EINVAL)?;
        let table = map(&mut pin, device, &range);
        put(number, pin, table.is_ok().then_some(device));
        table
    }

    fn dma_unmap(number: RegistrationNumber) {
        if let Some((mut pin, _)) = take(number) {
            pin.unmap();
            put(number, pin, None);
        }
    }

    /// Does nothing, because the pin is dropped with the record.
    fn release(_: RegistrationNumber) {}
}

/// Takes the pin out of the record. Returns [`None`] if the record does not have a pin.
fn take(number: RegistrationNumber) -> Option<(PersistentPin, Range)> {
    let taken = registry::with(number, |record| {
        let range = record.range();
        record.change(|phase, place| match phase {
            Phase::Persistent(pin) => (place.fill(Phase::InCall), Some((pin, range))),
            other => (place.fill(other), None),
        })
    });
    taken.flatten()
}

/// Puts the pin into the record. If `device` is given, records that this device can reach the
/// memory from now on.
fn put(number: RegistrationNumber, pin: PersistentPin, device: Option<Device<'_>>) {
    // If there is no record, the pin is dropped after the lock is released.
    registry::with(number, |record| {
        if let Some(device) = device {
            record.set_device(device);
        }
        record.follow_empty(Phase::Persistent(pin));
    });
}

/// Maps the pages for `device`. Returns the scatterlist for the core.
fn map(pin: &mut PersistentPin, device: Device<'_>, range: &Range) -> Result<abi::sg_table> {
    if !pin.is_new() {
        return Err(EINVAL);
    }
    match map_type::of_pair(pin.gpu(), device, range)? {
        Some(MapType::Ours) => pin.map(device, range),
        Some(MapType::Driver) => pin.map_by_driver(device, range),
        // The driver could not pin the first page, although the whole range is pinned. Such a
        // failure is temporary, so the program may try again.
        None => Err(EIO),
    }
}
