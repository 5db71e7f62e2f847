// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a client does at each of the RDMA core's calls, in safe Rust.
//!
//! Two clients share everything but how they pin: the persistent one keeps GPU memory until the
//! registration ends, even if it is freed meanwhile; the revocable one gives it up when it is
//! freed.

use super::{
    errno::Errno,
    extents::{
        longest_segment,
        Extent,
        Range, //
    },
    module_ref::ModuleRef,
    notify,
    p2p::{
        Device,
        DriverMapping,
        NoPin,
        OwnMapping,
        PersistentPin,
        RevocablePin, //
        Revoke,
    },
    region::{
        Life,
        Revocation,
        Ticket, //
    },
    rt::{
        self,
        Arc,
        KVVec,
        Monitor, //
    },
    scatter::{
        self,
        ScatterTable, //
    },
    stats, //
};

/// How the pages of a region are pinned.
pub(crate) enum Pin {
    /// Kept until we put them: the pin itself is what `dma_map` maps, or the mapping has it.
    Persistent,
    /// Kept until we put them or the driver takes them back.
    Revocable(RevocablePin<Region>),
}

impl Pin {
    /// Lets go of pages that the driver has taken back.
    fn forget(self) {
        match self {
            // The driver never takes these back by itself.
            Self::Persistent => {}
            Self::Revocable(pin) => pin.forget(),
        }
    }
}

/// What `dma_map` maps.
enum Source {
    /// Pages that the driver maps.
    Driver(PersistentPin),
    /// Physical addresses that we map.
    Own(KVVec<Extent>),
}

/// What a device's addresses come from; dropping it undoes them.
enum Addresses {
    Driver(DriverMapping),
    Own(OwnMapping),
}

impl Addresses {
    /// Maps `source` for `device`, and puts the addresses into the scatterlist. On failure what is
    /// still pinned comes back.
    fn new(
        source: Source,
        device: Device,
        range: &Range,
        table: &mut scatter::Builder,
    ) -> Result<Self, (Errno, Option<Source>)> {
        match source {
            Source::Driver(pin) => {
                let mapping = DriverMapping::new(device, pin)
                    .map_err(|(errno, pin)| (errno, Some(Source::Driver(pin))))?;
                match mapping.extents(range, |extent| table.extent(extent)) {
                    Ok(()) => Ok(Self::Driver(mapping)),
                    Err(errno) => Err((errno, Self::Driver(mapping).undo())),
                }
            }
            Source::Own(_) if !device.revocable() => Err((Errno::OPNOTSUPP, None)),
            Source::Own(extents) => OwnMapping::new(device, extents)
                .and_then(|mapping| {
                    mapping.extents(|extent| table.extent(extent))?;
                    Ok(Self::Own(mapping))
                })
                .map_err(|errno| (errno, None)),
        }
    }

    /// Undoes the mapping; what is still pinned then comes back.
    fn undo(self) -> Option<Source> {
        match self {
            Self::Driver(mapping) => Some(Source::Driver(mapping.unmap())),
            Self::Own(mapping) => {
                drop(mapping);
                None
            }
        }
    }
}

/// What makes a region reachable for a device.
pub(crate) struct Mapping {
    addresses: Addresses,
    _reachable: stats::Reachable,
}

/// The part of a region that never changes.
pub(crate) struct Fixed {
    range: Range,
    /// The module is there for as long as a callback of the driver can come.
    _module: ModuleRef,
}

/// The part of a region that does.
pub(crate) struct State {
    life: Life<Pin, Mapping>,
    /// What `dma_map` uses up, which the core calls once for a region. A persistent pin comes back
    /// to here and stays until `release`.
    source: Option<Source>,
    /// What `dma_map` leaves behind: the core frees nothing of it.
    table: Option<ScatterTable>,
}

/// One registration, from `acquire` to `release`, and a little longer if a callback of the driver
/// can still come.
pub(crate) type Region = Monitor<Fixed, State>;

impl Region {
    fn begin(range: Range, module: ModuleRef) -> Result<Arc<Self>, Errno> {
        Monitor::new(
            Fixed {
                range,
                _module: module,
            },
            State {
                life: Life::new(),
                source: None,
                table: None,
            },
        )
    }

    /// The driver's answer to the request to pin. From here on its callback waits no more.
    fn settle(&self, outcome: Result<(Pin, Source), Errno>) {
        let mut state = self.lock();
        let unwanted = match outcome {
            Ok((pin, source)) => {
                state.source = Some(source);
                state.life.pinned(pin).err()
            }
            Err(errno) => {
                state.life.refused(errno);
                None
            }
        };
        self.notify(state);
        drop(unwanted);
    }

    /// The core takes the pages, under `ticket`.
    pub(crate) fn get_pages(&self, ticket: Ticket) -> Result<(), Errno> {
        self.lock().life.bind(ticket)
    }

    /// The core wants bus addresses for `device`: calls `give` with the scatterlist, which stays
    /// ours to free, when nothing can fail any more. `give` must not sleep.
    pub(crate) fn dma_map(
        &self,
        device: Device,
        give: impl FnOnce(&ScatterTable),
    ) -> Result<(), Errno> {
        let mut table = self.builder(device)?;
        let source = self.mappable()?;
        let range = &self.fixed().range;
        let mapped = Addresses::new(source, device, range, &mut table).and_then(|addresses| {
            match table.finish() {
                Ok(table) => Ok((addresses, table)),
                Err(errno) => Err((errno, addresses.undo())),
            }
        });
        let (addresses, table) = mapped.map_err(|(errno, pinned)| {
            self.lock().source = pinned;
            errno
        })?;
        let mapping = Mapping {
            addresses,
            _reachable: stats::Reachable::new(range.pinned()),
        };
        let mut state = self.lock();
        let late = state.life.mapped(mapping);
        if late.is_ok() {
            give(&table);
            state.table = Some(table);
            stats::registered();
        }
        drop(state);
        // A mapping that came too late is undone here, outside of the lock.
        late.map_err(|(errno, _mapping)| errno)
    }

    /// What to map, if the region can be mapped now.
    fn mappable(&self) -> Result<Source, Errno> {
        let mut state = self.lock();
        state.life.mappable()?;
        state.source.take().ok_or(Errno::INVAL)
    }

    /// For a scatterlist of the bus addresses that the core shall see: whole pages of the kernel
    /// that cover the user's range.
    fn builder(&self, device: Device) -> Result<scatter::Builder, Errno> {
        let page = rt::page_size();
        let window = self.fixed().range.window(page).ok_or(Errno::INVAL)?;
        let longest = longest_segment(device.max_segment(), page);
        Ok(scatter::Builder::new(window, longest))
    }

    /// The core uses the addresses no more. The pin stays until [`Self::release`], which comes
    /// soon, and which the core calls without the lock that a callback of the driver may wait for.
    pub(crate) fn dma_unmap(&self) {
        let mapping = self.lock().life.unmap();
        if let Some(mapping) = mapping {
            let pinned = mapping.addresses.undo();
            let mut state = self.lock();
            state.source = pinned;
            state.life.unmapped();
            self.notify(state);
        }
    }

    /// The core forgets the region; it calls nothing of it again.
    pub(crate) fn release(&self) {
        let thread = rt::thread();
        let mut state = self.lock();
        let rest = loop {
            match state.life.release(thread) {
                Some(rest) => break rest,
                // The core's answer to the invalidation still uses its record of this region, and
                // the callback the device.
                None => self.wait(&mut state),
            }
        };
        let (table, source) = (state.table.take(), state.source.take());
        drop(state);
        drop(rest.mapping);
        drop(rest.pin);
        drop(source);
        drop(table);
    }
}

impl Revoke for Region {
    fn revoke(&self) {
        let mut state = self.lock();
        let revocation = loop {
            match state.life.revoke(rt::thread()) {
                Revocation::Wait => self.wait(&mut state),
                other => break other,
            }
        };
        drop(state);
        match revocation {
            Revocation::Tell(ticket) => {
                notify::invalidate(ticket);
                stats::revoked();
                let rest = self.lock().life.told();
                drop(rest.mapping);
                rest.pin.into_iter().for_each(Pin::forget);
                let mut state = self.lock();
                state.life.revoked();
                self.notify(state);
            }
            Revocation::Forget(pin) => pin.forget(),
            Revocation::Wait | Revocation::Nothing => {}
        }
    }
}

/// A way to pin, and with it one of the two clients.
pub(crate) trait Client: 'static {
    /// Whether the core must offer a way to revoke registrations of this client.
    const REVOCABLE: bool;

    /// The region of `range`, if that is GPU memory of the calling process which this client
    /// serves. A region that cannot be pinned is claimed nevertheless: its [`Region::get_pages`]
    /// says why, where no region would mean "bad address" to the user.
    fn pin(range: Range, region: Arc<Region>) -> Option<Arc<Region>>;
}

/// The region of `len` bytes at `address` of the calling process, if that is memory for the client
/// `C`. An error is for the user to see.
pub(crate) fn acquire<C: Client>(address: u64, len: u64) -> Result<Option<Arc<Region>>, Errno> {
    // Without a reference the module is about to go: it serves nobody any more.
    let (Some(range), Some(module)) = (Range::new(address, len), ModuleRef::get()) else {
        return Ok(None);
    };
    Ok(C::pin(range, Region::begin(range, module)?))
}

/// Keeps GPU memory until the registration ends.
pub(crate) struct Persistent;

impl Client for Persistent {
    const REVOCABLE: bool = false;

    fn pin(range: Range, region: Arc<Region>) -> Option<Arc<Region>> {
        let pin = match PersistentPin::new(&range) {
            Ok(pin) => Ok(pin),
            // The core asks the next client: the revocable one may be able to.
            Err(NoPin::NotGpuMemory | NoPin::NotInThisWay) => return None,
            Err(NoPin::Failed(errno)) => Err(errno),
        };
        region.settle(pin.map(|pin| (Pin::Persistent, Source::Driver(pin))));
        Some(region)
    }
}

/// Gives GPU memory up when it is freed.
pub(crate) struct Revocable;

impl Client for Revocable {
    const REVOCABLE: bool = true;

    fn pin(range: Range, region: Arc<Region>) -> Option<Arc<Region>> {
        match RevocablePin::new(&range, region.clone()) {
            Ok((pin, Ok(extents))) => {
                region.settle(Ok((Pin::Revocable(pin), Source::Own(extents))));
            }
            Ok((pin, Err(errno))) => {
                // First the callback is let go, then the pin: it waits for the callback.
                region.settle(Err(errno));
                drop(pin);
            }
            Err(NoPin::NotGpuMemory) => return None,
            Err(NoPin::NotInThisWay) => region.settle(Err(Errno::OPNOTSUPP)),
            Err(NoPin::Failed(errno)) => region.settle(Err(errno)),
        }
        Some(region)
    }
}
