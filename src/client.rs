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
        merge,
        segments,
        Extent,
        Range, //
    },
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
        Revocation, //
    },
    rt::{
        self,
        new_condvar,
        new_spinlock,
        pin_data,
        pin_init,
        Arc,
        CondVar,
        InPlaceInit,
        KVVec,
        ModuleRef,
        SpinLock,
        GFP_KERNEL, //
    },
    scatter::ScatterTable, //
};

/// The pages of a region.
pub(crate) enum Pin {
    /// Kept until we put them.
    Persistent(Arc<PersistentPin>),
    /// Kept until we put them or the driver takes them back.
    Revocable(RevocablePin<Region>),
}

impl Pin {
    /// Lets go of pages that the driver has taken back.
    fn forget(self) {
        match self {
            // The driver never takes these back by itself.
            Self::Persistent(pin) => drop(pin),
            Self::Revocable(pin) => pin.forget(),
        }
    }
}

/// What a device's addresses come from; dropping it undoes them, and that is all it is for.
#[expect(dead_code)]
enum Mapping {
    Driver(DriverMapping),
    Own(OwnMapping),
}

/// What `dma_map` maps.
enum Source {
    /// Pages that the driver maps.
    Driver(Arc<PersistentPin>),
    /// Physical addresses that we map.
    Own(KVVec<Extent>),
}

/// What `dma_map` uses up and leaves behind. The core calls it once for a region, and frees
/// nothing of the table before `release`.
struct Material {
    source: Option<Source>,
    table: Option<ScatterTable>,
}

/// One registration, from `acquire` to `release`, and a little longer if a callback of the driver
/// can still come.
#[pin_data]
pub(crate) struct Region {
    range: Range,
    #[pin]
    life: SpinLock<Life<Pin, Mapping>>,
    /// Told whenever the phase of `life` changes in a way that somebody waits for.
    #[pin]
    changed: CondVar,
    #[pin]
    material: SpinLock<Material>,
    // Last, so that it is dropped last.
    _module: ModuleRef,
}

impl Region {
    fn new(range: Range) -> Option<Arc<Self>> {
        let module = ModuleRef::get()?;
        Arc::pin_init(
            pin_init!(Self {
                range,
                life <- new_spinlock!(Life::new(), "nv_peer_mem::life"),
                changed <- new_condvar!("nv_peer_mem::changed"),
                material <- new_spinlock!(Material { source: None, table: None }, "nv_peer_mem::material"),
                _module: module,
            }),
            GFP_KERNEL,
        )
        .ok()
    }

    /// The driver's answer to the request to pin. From here on its callback waits no more.
    fn settle(&self, outcome: Result<(Pin, Source), Errno>) {
        match outcome {
            Ok((pin, source)) => {
                self.material.lock().source = Some(source);
                let unwanted = self.life.lock().pinned(pin);
                drop(unwanted);
            }
            Err(errno) => self.life.lock().refused(errno),
        }
        self.changed.notify_all();
    }

    /// The core takes the pages, under `ticket`.
    pub(crate) fn get_pages(&self, ticket: u64) -> Result<(), Errno> {
        self.life.lock().bind(ticket)
    }

    /// The core wants bus addresses for `device`: calls `give` with the scatterlist, which stays
    /// ours to free, when nothing can fail any more.
    pub(crate) fn dma_map(
        &self,
        device: Device,
        give: impl FnOnce(&ScatterTable),
    ) -> Result<(), Errno> {
        self.life.lock().mappable()?;
        let source = self.material.lock().source.take().ok_or(Errno::INVAL)?;
        let (mapping, table) = match source {
            Source::Own(extents) => {
                let mapping = OwnMapping::new(device, extents)?;
                let table = self.scatter(device, mapping.extents())?;
                (Mapping::Own(mapping), table)
            }
            Source::Driver(pin) => {
                let mapping = DriverMapping::new(device, pin)?;
                let table = self.scatter(device, mapping.extents(&self.range)?)?;
                (Mapping::Driver(mapping), table)
            }
        };
        let outcome = self.life.lock().mapped(mapping);
        // A mapping that came too late is undone here, outside of the lock.
        outcome.map_err(|(errno, _mapping)| errno)?;
        give(&table);
        self.material.lock().table = Some(table);
        Ok(())
    }

    /// A scatterlist of the bus addresses that the core shall see: whole pages of the kernel that
    /// cover the user's range, neighbours merged.
    fn scatter(
        &self,
        device: Device,
        extents: impl Iterator<Item = Extent> + Clone,
    ) -> Result<ScatterTable, Errno> {
        let page = rt::page_size();
        let window = self.range.window(page).ok_or(Errno::INVAL)?;
        let longest = longest_segment(device.max_segment(), page);
        ScatterTable::new(segments(merge(extents), window, longest), window.len)
    }

    /// The core uses the addresses no more.
    pub(crate) fn dma_unmap(&self) {
        let mapping = self.life.lock().unmap();
        drop(mapping);
    }

    /// The core uses the pages no more.
    pub(crate) fn put_pages(&self) {
        let pin = self.life.lock().put();
        drop(pin);
    }

    /// The core forgets the region; it calls nothing of it again.
    pub(crate) fn release(&self) {
        let thread = rt::thread();
        let mut life = self.life.lock();
        let rest = loop {
            match life.release(thread) {
                Some(rest) => break rest,
                // The core's answer to the invalidation still uses its record of this region, and
                // the callback the device.
                None => self.changed.wait(&mut life),
            }
        };
        drop(life);
        drop(rest.mapping);
        drop(rest.pin);
        let table = self.material.lock().table.take();
        drop(table);
    }
}

impl Revoke for Region {
    fn revoke(&self) {
        let mut life = self.life.lock();
        let revocation = loop {
            match life.revoke(rt::thread()) {
                Revocation::Wait => self.changed.wait(&mut life),
                other => break other,
            }
        };
        drop(life);
        match revocation {
            Revocation::Tell(ticket) => {
                notify::invalidate(ticket);
                let rest = self.life.lock().told();
                drop(rest.mapping);
                rest.pin.into_iter().for_each(Pin::forget);
                self.life.lock().revoked();
                self.changed.notify_all();
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

    /// The region of `len` bytes at `address` of the calling process, if that is GPU memory which
    /// this client serves. A region that cannot be pinned is claimed nevertheless: its
    /// [`Region::get_pages`] says why, where no region would mean "bad address" to the user.
    fn acquire(address: u64, len: u64) -> Option<Arc<Region>>;
}

/// Keeps GPU memory until the registration ends.
pub(crate) struct Persistent;

impl Client for Persistent {
    const REVOCABLE: bool = false;

    fn acquire(address: u64, len: u64) -> Option<Arc<Region>> {
        let range = Range::new(address, len)?;
        let region = Region::new(range)?;
        let pin = match PersistentPin::new(&range) {
            Ok(pin) => Arc::new(pin, GFP_KERNEL).map_err(|_| Errno::NOMEM),
            // The core asks the next client: the revocable one may be able to.
            Err(NoPin::NotGpuMemory | NoPin::NotInThisWay) => return None,
            Err(NoPin::Failed(errno)) => Err(errno),
        };
        region.settle(pin.map(|pin| (Pin::Persistent(pin.clone()), Source::Driver(pin))));
        Some(region)
    }
}

/// Gives GPU memory up when it is freed.
pub(crate) struct Revocable;

impl Client for Revocable {
    const REVOCABLE: bool = true;

    fn acquire(address: u64, len: u64) -> Option<Arc<Region>> {
        let range = Range::new(address, len)?;
        let region = Region::new(range)?;
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
