// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The clients that keep GPU memory pinned until the registration ends, even if it is freed meanwhile.
//!
//! Nothing happens to such a region but what the core calls, one call after the other: it has no lock.

use kernel::prelude::*;

use crate::{
    abi::{self, ffi::c_void},
    dma::{Device, Mapping},
    extents::Range,
    map_type::{self, MapType},
    p2p::{PersistentPin, PinError},
    peer_client::{self, Client, Kind},
    registry::Registered,
};

/// The client that the core asks first, unless `persistent_api_support=0`.
pub(crate) struct Persistent;

impl Client for Persistent {
    const KIND: Kind = Kind::Persistent;
    type Region = Region;

    fn acquire(range: Range, registered: Registered) -> Result<Option<Region>> {
        match PersistentPin::new(&range) {
            // The core asks the next client: the revocable one may be able to.
            Err(error) if error.may_fall_back() => Ok(None),
            pin => Region::new(range, registered, pin),
        }
    }
}

/// The same where the core asks no other client any more: either all have declined, or the memory is for
/// something that cannot be revoked, and only this one can say what is in the way.
pub(crate) struct CatchAll;

impl Client for CatchAll {
    const KIND: Kind = Kind::CatchAll;
    type Region = Region;

    fn acquire(range: Range, registered: Registered) -> Result<Option<Region>> {
        let pin = PersistentPin::new(&range);
        Region::new(range, registered, pin)
    }
}

/// A registration, from `acquire` to `release`.
pub(crate) struct Region(KBox<State>);

/// Fields drop in their order here: the mapping goes before the pin.
struct State {
    mapping: Option<Mapping>,
    /// Or why the memory, which is the GPU's, cannot be pinned.
    pin: Result<PersistentPin>,
    range: Range,
    registered: Registered,
}

impl Region {
    /// The region with the driver's answer, if it is GPU memory.
    fn new(
        range: Range,
        registered: Registered,
        pin: Result<PersistentPin, PinError>,
    ) -> Result<Option<Self>> {
        let (pin, state) = match pin {
            Ok(pin) => (Ok(pin), abi::NVPM_REGION_PINNED),
            Err(PinError::NotGpuMemory) => return Ok(None),
            Err(PinError::Failed(error)) => (Err(error), abi::NVPM_REGION_REFUSED),
        };
        registered.number().set_state(state);
        let state = State {
            mapping: None,
            pin,
            range,
            registered,
        };
        Ok(Some(Self(KBox::new(state, GFP_KERNEL)?)))
    }
}

impl peer_client::Region for Region {
    fn into_context(self) -> *mut c_void {
        KBox::into_raw(self.0).cast()
    }

    unsafe fn from_context(context: *mut c_void) -> Self {
        // SAFETY: By this function's requirement the pointer is from `KBox::into_raw`.
        Self(unsafe { KBox::from_raw(context.cast()) })
    }

    fn get_pages(&mut self, _ticket: u64) -> Result {
        match &self.0.pin {
            Ok(_) => Ok(()),
            Err(error) => Err(*error),
        }
    }

    fn dma_map(&mut self, device: Device) -> Result<abi::sg_table> {
        let State {
            mapping,
            pin,
            range,
            registered,
        } = &mut *self.0;
        let pin = pin.as_mut().map_err(|error: &mut Error| *error)?;
        if mapping.is_some() {
            return Err(EINVAL);
        }
        let mapping = mapping.insert(match map_type::of_pair(pin.gpu(), device, range)? {
            MapType::Driver => {
                pin.map(device)?;
                Mapping::by_driver(device, &pin.bus_extents(range)?, range)?
            }
            MapType::Direct => Mapping::new(device, &pin.extents(range)?, range)?,
            // All of it is pinned so, and the one page to ask with could not be: that passes.
            MapType::Unknown | MapType::NotSupported => return Err(EIO),
        });
        registered.number().set_mapped(device);
        Ok(mapping.for_core())
    }

    fn dma_unmap(&mut self) {
        let State { mapping, pin, .. } = &mut *self.0;
        let (Some(mapping), Ok(pin)) = (mapping, pin) else {
            return;
        };
        mapping.unmap();
        pin.unmap();
        self.0
            .registered
            .number()
            .set_state(abi::NVPM_REGION_UNMAPPED);
    }

    fn release(self) {}
}
