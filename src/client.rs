// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What a client does at each of the RDMA core's calls: in safe Rust, but for the promise that a region
//! makes to the driver.
//!
//! Two clients share everything but how they pin: the persistent one keeps GPU memory until the
//! registration ends, even if it is freed meanwhile; the revocable one gives it up when it is
//! freed.

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
        Rest,
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

/// What `dma_map` maps.
pub(crate) enum Source {
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
    fn undo(self) -> Stage {
        let Self {
            mut table,
            addresses,
            _reachable,
        } = self;
        table.unmap();
        Stage::Unmapped {
            pin: addresses.undo(),
            table,
        }
    }
}

/// What a region has besides a pin that can be revoked, one after the other.
#[allow(dead_code)] // What an undone mapping leaves is there to be dropped.
pub(crate) enum Stage {
    /// What `dma_map` uses up, which the core calls once for a region.
    Source(Source),
    Mapped(Mapping),
    /// What a mapping leaves when it is undone, until [`Region::release`]: a pin that is never
    /// revoked, and the scatterlist, at which the core may look still, and of which it frees
    /// nothing.
    Unmapped {
        pin: Option<PersistentPin>,
        table: ScatterTable,
    },
}

impl Stage {
    /// What is left when a mapping is undone.
    fn undo(self) -> Self {
        match self {
            Self::Mapped(mapping) => mapping.undo(),
            other => other,
        }
    }
}

/// The part of a region that changes.
pub(crate) struct State {
    /// With the pin, unless it is kept until we put it: that is where its pages are.
    life: Life<RevocablePin<Region>, Stage>,
    /// The pin, if it outlives the registration.
    left: Option<LeftBehind>,
}

/// One registration, from `acquire` to `release`, and a little longer if a callback of the driver
/// can still come.
pub(crate) type Region = Monitor<Listed, State>;

/// What the driver answers to the request to pin.
type Pinned = (Option<RevocablePin<Region>>, Source);

impl Region {
    fn begin(range: Range, kind: listed::Kind, module: ModuleRef) -> Result<Arc<Self>, Errno> {
        let region = Monitor::new(
            Listed::new(&range, module),
            State {
                life: Life::new(),
                left: None,
            },
        )?;
        region.fixed().begin(kind);
        Ok(region)
    }

    /// The driver's answer to the request to pin. From here on its callback waits no more.
    fn settle(&self, outcome: Result<Pinned, Errno>) {
        let mut state = self.lock();
        let unwanted = match outcome {
            Ok((pin, source)) => {
                self.fixed().is(abi::NVPM_REGION_PINNED);
                state.life.pinned(pin, Stage::Source(source)).err()
            }
            Err(errno) => {
                self.fixed().is(abi::NVPM_REGION_REFUSED);
                state.life.refused(errno);
                None
            }
        };
        self.notify(state);
        if let Some(rest) = unwanted {
            self.give_back(rest);
        }
    }

    /// Gives back what is left, outside of the lock.
    fn give_back(&self, rest: Rest<RevocablePin<Region>, Stage>) {
        drop(rest.mapping);
        if let Some(pin) = rest.pin {
            self.unpin(pin);
        }
    }

    /// Gives the pin back, outside of the lock.
    fn unpin(&self, pin: RevocablePin<Region>) {
        let told = self.fixed();
        let left = pin.unpin(&told.range(), &told.process());
        if left.is_some() {
            told.is(abi::NVPM_REGION_LEFT);
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
        let range = self.fixed().range();
        let mapping = Mapping::new(source, device, &range, list).map_err(|(errno, pinned)| {
            self.lock().life.not_mapped(pinned.map(Stage::Source));
            errno
        })?;
        let table = mapping.table.for_core();
        let mut state = self.lock();
        let late = state.life.mapped(Stage::Mapped(mapping));
        if late.is_ok() {
            give(table);
            self.fixed().mapped(device);
            stats::registered();
        }
        drop(state);
        // A mapping that came too late is undone here, outside of the lock.
        late.map_err(|(errno, _mapping)| errno)
    }

    /// What to map, if the region can be mapped now.
    fn mappable(&self) -> Result<Source, Errno> {
        let stage = self.lock().life.mappable()?;
        match stage {
            Stage::Source(source) => Ok(source),
            _ => Err(Errno::INVAL),
        }
    }

    /// For a scatterlist of the bus addresses that the core shall see: whole pages of the kernel
    /// that cover the user's range.
    fn builder(&self, device: Device) -> Result<scatter::Builder, Errno> {
        let page = rt::page_size();
        let window = self.fixed().range().window(page).ok_or(Errno::INVAL)?;
        let longest = longest_segment(device.max_segment(), page);
        Ok(scatter::Builder::new(window, longest))
    }

    /// The core uses the addresses no more. The pin stays until [`Self::release`], which comes
    /// soon, and which the core calls without the lock that a callback of the driver may wait for.
    pub(crate) fn dma_unmap(&self) {
        let mapping = self.lock().life.unmap();
        if let Some(mapping) = mapping {
            let rest = mapping.undo();
            let mut state = self.lock();
            self.fixed().is(abi::NVPM_REGION_UNMAPPED);
            state.life.unmapped(rest);
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
        drop(state);
        self.give_back(rest);
    }
}

// SAFETY: In phase `Pinning` and `Unmapping` it waits (`Life::revoke`). A region that a device can reach
// is `Mapped`: the core, once told, has stopped the device, and the mapping is undone, here or by
// `release` further down this stack, before this returns. A region on its way to `Mapped` is found
// `Revoked` there and undone, without addresses for the device. What is mapped is mapped from a copy,
// `Physical`. The pin is forgotten here, or `release` has it, which looks at the id.
unsafe impl Revoke for Region {
    fn revoke(&self) {
        let mut state = self.lock();
        let revocation = loop {
            match state.life.revoke(rt::thread()) {
                Revocation::Wait => self.wait(&mut state),
                other => break other,
            }
        };
        if !matches!(revocation, Revocation::Nothing) {
            self.fixed().is(abi::NVPM_REGION_REVOKED);
        }
        drop(state);
        match revocation {
            Revocation::Tell(ticket) => {
                notify::invalidate(ticket);
                stats::revoked();
                let rest = self.lock().life.told();
                let undone = rest.mapping.map(Stage::undo);
                rest.pin.into_iter().for_each(RevocablePin::forget);
                let mut state = self.lock();
                state.life.revoked(undone);
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
        Ok(pin) => Ok((None, Source::Persistent(pin))),
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
                region.settle(Ok((Some(pin), Source::Revocable(physical))));
            }
            Ok((pin, Err(errno))) => {
                // First the callback is let go, then the pin: it waits for the callback.
                region.settle(Err(errno));
                region.unpin(pin);
            }
            Err(NoPin::NotGpuMemory) => return None,
            Err(NoPin::Failed(errno)) => region.settle(Err(errno)),
        }
        Some(region)
    }
}
