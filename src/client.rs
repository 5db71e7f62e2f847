// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a client does at each of the RDMA core's calls, in safe Rust.
//!
//! Two clients share everything but how they pin: the persistent one keeps GPU memory until the
//! registration ends, even if it is freed meanwhile; the revocable one gives it up when it is
//! freed.

use core::mem::replace;

use super::{
    abi,
    errno::Errno,
    extents::{
        longest_segment,
        Range, //
    },
    listed::{
        self,
        Listed, //
    },
    module_ref::ModuleRef,
    notify,
    p2p::{
        self,
        Device,
        DriverMapping,
        LeftBehind,
        MappedRange,
        NoPin,
        PersistentPin,
        Physical,
        Placed,
        RevocablePin,
        Revoke,
        Way, //
    },
    region::{
        Life,
        Revocation,
        Ticket, //
    },
    rt::{
        self,
        complain,
        Arc,
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

    /// Gives the pages of the region back.
    fn unpin(self, region: &Fixed) -> Option<LeftBehind> {
        match self {
            // With what has the pin itself.
            Self::Persistent => None,
            Self::Revocable(pin) => pin.unpin(&region.range, &region.listed.process()),
        }
    }
}

/// What `dma_map` maps.
enum Source {
    /// Pages that stay where they are.
    Persistent(PersistentPin),
    /// What is known of pages that the driver may take back meanwhile.
    Revocable(Physical),
}

impl Source {
    /// Who maps it for `device`.
    fn way(&self, device: Device, range: &Range) -> Result<Way, Errno> {
        match self {
            Self::Persistent(pin) => match p2p::way(pin.gpu()?, device, range)? {
                // All of it is pinned so, and one page could not be: that passes.
                Way::Unasked => Err(Errno::IO),
                way => Ok(way),
            },
            Self::Revocable(_) if !device.revocable() => {
                complain!(
                    "the driver of this RDMA device cannot give up GPU memory that is freed{}\n",
                    rt::persistent_instead()
                );
                Err(Errno::OPNOTSUPP)
            }
            Self::Revocable(physical) => match p2p::way(physical.gpu, device, range)? {
                Way::Ours | Way::Unasked => Ok(Way::Ours),
                Way::Drivers => {
                    complain!(
                        "between this GPU and this RDMA device only the NVIDIA driver itself can map memory, and what it maps cannot be revoked{}\n",
                        rt::persistent_instead()
                    );
                    Err(Errno::OPNOTSUPP)
                }
            },
        }
    }
}

/// What a device's addresses come from, besides the scatterlist; dropping it undoes them.
///
/// Fields drop in their order here.
enum Addresses {
    Driver(DriverMapping),
    Own {
        range: Option<MappedRange>,
        /// The pages, if they are kept until we put them.
        pin: Option<PersistentPin>,
    },
}

impl Addresses {
    /// Undoes the mapping; what is still pinned then comes back.
    fn undo(self) -> Option<PersistentPin> {
        match self {
            Self::Driver(mapping) => Some(mapping.unmap()),
            Self::Own { range, pin } => {
                drop(range);
                pin
            }
        }
    }
}

/// What makes a region reachable for a device.
///
/// Fields drop in their order here: what the scatterlist has mapped goes before the pin.
pub(crate) struct Mapping {
    table: ScatterTable,
    addresses: Addresses,
    _reachable: stats::Reachable,
}

impl Mapping {
    /// Maps `source` for `device`, with the addresses in `list`. On failure what is still pinned
    /// comes back.
    fn new(
        source: Source,
        device: Device,
        range: &Range,
        mut list: scatter::Builder,
    ) -> Result<Self, (Errno, Option<Source>)> {
        let way = match source.way(device, range) {
            Ok(way) => way,
            Err(errno) => return Err((errno, Some(source))),
        };
        let (addresses, table) = match (way, source) {
            (Way::Drivers, Source::Persistent(pin)) => {
                let mapping = DriverMapping::new(device, pin)
                    .map_err(|(errno, pin)| (errno, Some(Source::Persistent(pin))))?;
                let listed = mapping.extents(range, |extent| list.extent(extent));
                let addresses = Addresses::Driver(mapping);
                match listed.and_then(|()| list.finish()) {
                    Ok(table) => (addresses, table),
                    Err(errno) => {
                        return Err((errno, addresses.undo().map(Source::Persistent)));
                    }
                }
            }
            (_, Source::Persistent(pin)) => {
                match p2p::map(device, &Placed::By(&pin), range, list) {
                    Ok((range, table)) => {
                        let pin = Some(pin);
                        (Addresses::Own { range, pin }, table)
                    }
                    Err(errno) => return Err((errno, Some(Source::Persistent(pin)))),
                }
            }
            (_, Source::Revocable(physical)) => {
                let memory = Placed::At(physical.pieces);
                let (range, table) =
                    p2p::map(device, &memory, range, list).map_err(|errno| (errno, None))?;
                (Addresses::Own { range, pin: None }, table)
            }
        };
        Ok(Self {
            table,
            addresses,
            _reachable: stats::Reachable::new(range.pinned()),
        })
    }

    /// Undoes it.
    fn undo(self) -> Kept {
        let Self {
            mut table,
            addresses,
            _reachable,
        } = self;
        table.unmap();
        Kept::Undone {
            pin: addresses.undo(),
            table,
        }
    }
}

/// What a region has beside pin and mapping.
#[allow(dead_code)] // What an undone mapping leaves is there to be dropped.
enum Kept {
    Nothing,
    /// What `dma_map` uses up, which the core calls once for a region.
    Source(Source),
    /// What a mapping leaves when it is undone, until [`Region::release`]: a pin that is never
    /// revoked, and the scatterlist, at which the core may look still, and of which it frees
    /// nothing.
    Undone {
        pin: Option<PersistentPin>,
        table: ScatterTable,
    },
}

/// The part of a region that never changes.
pub(crate) struct Fixed {
    range: Range,
    /// In the list of all of them.
    listed: Listed,
    /// The module is there for as long as a callback of the driver can come.
    _module: ModuleRef,
}

/// The part of a region that does.
pub(crate) struct State {
    life: Life<Pin, Mapping>,
    kept: Kept,
    /// The pin, if it outlives the registration.
    left: Option<LeftBehind>,
}

/// One registration, from `acquire` to `release`, and a little longer if a callback of the driver
/// can still come.
pub(crate) type Region = Monitor<Fixed, State>;

impl Region {
    fn begin(range: Range, kind: listed::Kind, module: ModuleRef) -> Result<Arc<Self>, Errno> {
        let listed = Listed::new(&range, kind)?;
        Monitor::new(
            Fixed {
                range,
                listed,
                _module: module,
            },
            State {
                life: Life::new(),
                kept: Kept::Nothing,
                left: None,
            },
        )
    }

    /// The driver's answer to the request to pin. From here on its callback waits no more.
    fn settle(&self, outcome: Result<(Pin, Source), Errno>) {
        let mut state = self.lock();
        let unwanted = match outcome {
            Ok((pin, source)) => {
                state.kept = Kept::Source(source);
                self.fixed().listed.is(abi::NVPM_REGION_PINNED);
                state.life.pinned(pin).err()
            }
            Err(errno) => {
                self.fixed().listed.is(abi::NVPM_REGION_REFUSED);
                state.life.refused(errno);
                None
            }
        };
        self.notify(state);
        self.unpin(unwanted);
    }

    /// Gives the pin back, outside of the lock.
    fn unpin(&self, pin: Option<Pin>) {
        let left = pin.and_then(|pin| pin.unpin(self.fixed()));
        if left.is_some() {
            self.fixed().listed.is(abi::NVPM_REGION_LEFT);
            self.lock().left = left;
        }
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
        give: impl FnOnce(abi::sg_table),
    ) -> Result<(), Errno> {
        let list = self.builder(device)?;
        let source = self.mappable()?;
        let mapped = Mapping::new(source, device, &self.fixed().range, list);
        let mapping = mapped.map_err(|(errno, pinned)| {
            self.lock().kept = pinned.map_or(Kept::Nothing, Kept::Source);
            errno
        })?;
        let table = mapping.table.for_core();
        let mut state = self.lock();
        let late = state.life.mapped(mapping);
        if late.is_ok() {
            give(table);
            self.fixed().listed.mapped(device);
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
        match replace(&mut state.kept, Kept::Nothing) {
            Kept::Source(source) => Ok(source),
            _ => Err(Errno::INVAL),
        }
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
            let undone = mapping.undo();
            let mut state = self.lock();
            state.kept = undone;
            self.fixed().listed.is(abi::NVPM_REGION_UNMAPPED);
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
        let kept = replace(&mut state.kept, Kept::Nothing);
        drop(state);
        drop(rest.mapping);
        self.unpin(rest.pin);
        drop(kept);
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
        if !matches!(revocation, Revocation::Nothing) {
            self.fixed().listed.is(abi::NVPM_REGION_REVOKED);
        }
        drop(state);
        match revocation {
            Revocation::Tell(ticket) => {
                notify::invalidate(ticket);
                stats::revoked();
                let rest = self.lock().life.told();
                let undone = rest.mapping.map_or(Kept::Nothing, Mapping::undo);
                rest.pin.into_iter().for_each(Pin::forget);
                let mut state = self.lock();
                state.kept = undone;
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
    /// Which of them it is, in the list of registrations.
    const KIND: listed::Kind;

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
    if !p2p::plausible(&range) {
        return Ok(None);
    }
    Ok(C::pin(range, Region::begin(range, C::KIND, module)?))
}

/// Keeps GPU memory until the registration ends.
pub(crate) struct Persistent;

impl Client for Persistent {
    const REVOCABLE: bool = false;
    const KIND: listed::Kind = abi::NVPM_PERSISTENT;

    fn pin(range: Range, region: Arc<Region>) -> Option<Arc<Region>> {
        match PersistentPin::new(&range) {
            // The core asks the next client: the revocable one may be able to.
            Err(no_pin) if no_pin.other_way() => None,
            pinned => settle_persistent(pinned, region),
        }
    }
}

/// The same where the core asks no other client any more: either all have declined, or it is for
/// something that cannot be revoked, and only this one can say what is in the way.
pub(crate) struct Last;

impl Client for Last {
    const REVOCABLE: bool = false;
    const KIND: listed::Kind = abi::NVPM_LAST;

    fn pin(range: Range, region: Arc<Region>) -> Option<Arc<Region>> {
        settle_persistent(PersistentPin::new(&range), region)
    }
}

/// The region with the driver's answer, if it is GPU memory.
fn settle_persistent(
    pinned: Result<PersistentPin, NoPin>,
    region: Arc<Region>,
) -> Option<Arc<Region>> {
    region.settle(match pinned {
        Ok(pin) => Ok((Pin::Persistent, Source::Persistent(pin))),
        Err(NoPin::NotGpuMemory) => return None,
        Err(NoPin::Failed(errno)) => Err(errno),
    });
    Some(region)
}

/// Gives GPU memory up when it is freed.
pub(crate) struct Revocable;

impl Client for Revocable {
    const REVOCABLE: bool = true;
    const KIND: listed::Kind = abi::NVPM_REVOCABLE;

    fn pin(range: Range, region: Arc<Region>) -> Option<Arc<Region>> {
        match RevocablePin::new(&range, region.clone()) {
            Ok((pin, Ok(physical))) => {
                region.settle(Ok((Pin::Revocable(pin), Source::Revocable(physical))));
            }
            Ok((pin, Err(errno))) => {
                // First the callback is let go, then the pin: it waits for the callback.
                region.settle(Err(errno));
                region.unpin(Some(Pin::Revocable(pin)));
            }
            Err(NoPin::NotGpuMemory) => return None,
            Err(NoPin::Failed(errno)) => region.settle(Err(errno)),
        }
        Some(region)
    }
}
