// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests of what the module keeps on the driver's side: the table of ids under which a callback
//! finds its target, devices, and mappings of our own. The driver itself is not called.

use core::{
    ffi::c_int,
    sync::atomic::{
        AtomicI64,
        AtomicU32,
        Ordering, //
    }, //
};

use super::{
    ids::Id,
    pieces::Pieces,
    *, //
};
use crate::{
    extents::{
        Extent,
        Range, //
    },
    kunit::Threads,
    rt::{
        Arc,
        KVVec,
        GFP_KERNEL, //
    },
    scatter::{
        Builder,
        ScatterTable, //
    }, //
};

/// What happened to targets.
#[derive(Default)]
struct Seen {
    revoked: AtomicU32,
    dropped: AtomicU32,
}

impl Seen {
    fn new() -> Result<Arc<Self>, Errno> {
        Arc::new(Self::default(), GFP_KERNEL).map_err(|_| Errno::NOMEM)
    }

    /// How many were revoked, and how many dropped.
    fn counts(&self) -> (u32, u32) {
        (
            self.revoked.load(Ordering::Relaxed),
            self.dropped.load(Ordering::Relaxed),
        )
    }
}

/// A target that is seen.
struct Target(Arc<Seen>);

impl Target {
    /// A new target under an id of its own.
    fn add(seen: &Arc<Seen>) -> Result<Id<Self>, Errno> {
        Id::add(Arc::new(Self(seen.clone()), GFP_KERNEL).map_err(|_| Errno::NOMEM)?)
    }
}

// SAFETY: No driver calls it: nothing is pinned.
unsafe impl Revoke for Target {
    fn revoke(&self) {
        self.0.revoked.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        self.0.dropped.fetch_add(1, Ordering::Relaxed);
    }
}

/// Calls back as the driver does that was given `id`.
fn call_back(id: &Id<Target>) {
    // SAFETY: An id of this type.
    unsafe { free_callback::<Target>(id.to_data()) };
}

#[kernel::macros::kunit_tests(nv_peer_mem_ids)]
mod ids {
    use super::*;

    #[test]
    fn a_number_is_never_used_again() -> Result<(), Errno> {
        let seen = Seen::new()?;
        let first = Target::add(&seen)?;
        first.take();
        let second = Target::add(&seen)?;
        second.take();
        assert!(first.number != 0);
        assert!(second.number != first.number);
        Ok(())
    }

    #[test]
    fn a_callback_finds_its_target_once() -> Result<(), Errno> {
        let seen = Seen::new()?;
        let id = Target::add(&seen)?;
        assert!(id.armed());
        assert_eq!(seen.counts(), (0, 0));
        call_back(&id);
        assert!(!id.armed());
        assert_eq!(seen.counts(), (1, 1));
        call_back(&id);
        assert_eq!(seen.counts(), (1, 1));
        Ok(())
    }

    #[test]
    fn a_callback_that_comes_late_finds_nothing() -> Result<(), Errno> {
        let seen = Seen::new()?;
        let id = Target::add(&seen)?;
        id.take();
        assert!(!id.armed());
        call_back(&id);
        id.take();
        assert_eq!(seen.counts(), (0, 1));
        Ok(())
    }

    #[test]
    fn of_two_threads_one_gets_the_target() -> Result<(), Errno> {
        const TARGETS: u32 = 100;
        let seen = Seen::new()?;
        let mut ids = KVVec::new();
        for _ in 0..TARGETS {
            ids.push(Target::add(&seen)?, GFP_KERNEL)
                .map_err(|_| Errno::NOMEM)?;
        }
        let ids = Arc::new(ids, GFP_KERNEL).map_err(|_| Errno::NOMEM)?;
        let threads = Threads::new()?;
        for _ in 0..2 {
            let ids = ids.clone();
            threads.spawn(move || ids.iter().for_each(call_back))?;
        }
        drop(threads);
        assert_eq!(seen.counts(), (TARGETS, TARGETS));
        Ok(())
    }
}

/// A device, or [`None`] where there is no such thing.
fn device(raw: *mut abi::device) -> Option<Device> {
    // SAFETY: NULL, or a device that KUnit keeps until the test's end.
    unsafe { Device::from_raw(raw) }.ok()
}

/// Any device on the PCI bus.
fn pci_device() -> Option<Device> {
    // SAFETY: Called in a running test.
    device(unsafe { abi::nvpm_kunit_pci_device() })
}

#[kernel::macros::kunit_tests(nv_peer_mem_device)]
mod devices {
    use super::*;

    #[test]
    fn no_device_is_refused() {
        assert!(device(core::ptr::null_mut()).is_none());
    }

    #[test]
    fn a_device_beside_the_pci_bus_is_refused() {
        // SAFETY: Called in a running test.
        let raw = unsafe { abi::nvpm_kunit_plain_device() };
        assert!(!raw.is_null());
        assert!(device(raw).is_none());
    }

    #[test]
    fn a_pci_device_takes_whole_pages() {
        let device = pci_device();
        assert!(device.is_some_and(|device| u64::from(device.max_segment()) >= rt::page_size()));
    }
}

/// Stands for the kernel's DMA functions: counts, and balances what goes in against what comes out.
mod dma {
    use super::*;

    /// Distance between an address in memory and on the bus.
    const OFFSET: u64 = 1 << 44;
    static MAPPED: AtomicU32 = AtomicU32::new(0);
    static UNMAPPED: AtomicU32 = AtomicU32::new(0);
    static BALANCE: AtomicI64 = AtomicI64::new(0);
    static FAILS_AFTER: AtomicU32 = AtomicU32::new(0);

    /// Puts this in the kernel's place until the test's end; to fail when `fails_after` extents
    /// are mapped.
    pub(super) fn replace(fails_after: u32) {
        MAPPED.store(0, Ordering::Relaxed);
        UNMAPPED.store(0, Ordering::Relaxed);
        BALANCE.store(0, Ordering::Relaxed);
        FAILS_AFTER.store(fails_after, Ordering::Relaxed);
        // SAFETY: Called in a running test; the functions are of the right types.
        unsafe { abi::nvpm_kunit_replace_dma(Some(map), Some(unmap)) };
    }

    /// How many extents were mapped, how many unmapped, and whether those are the same.
    pub(super) fn counts() -> (u32, u32, bool) {
        (
            MAPPED.load(Ordering::Relaxed),
            UNMAPPED.load(Ordering::Relaxed),
            BALANCE.load(Ordering::Relaxed) == 0,
        )
    }

    /// The address on the bus.
    pub(super) fn bus(physical: u64) -> u64 {
        physical + OFFSET
    }

    /// A figure for one mapping, by which another one would be noticed.
    fn weight(address: u64, len: usize) -> i64 {
        (address as i64).wrapping_mul(31).wrapping_add(len as i64)
    }

    /// Stands in for mapping.
    ///
    /// # Safety
    ///
    /// `addr` must be valid for storing a word.
    unsafe extern "C" fn map(
        _device: *mut abi::device,
        phys: u64,
        len: usize,
        addr: *mut u64,
    ) -> c_int {
        if MAPPED.load(Ordering::Relaxed) == FAILS_AFTER.load(Ordering::Relaxed) {
            return Errno::IO.to_c();
        }
        MAPPED.fetch_add(1, Ordering::Relaxed);
        BALANCE.fetch_add(weight(bus(phys), len), Ordering::Relaxed);
        // SAFETY: The caller gives a place to store the address.
        unsafe { *addr = bus(phys) };
        0
    }

    /// Stands in for undoing a mapping.
    ///
    /// # Safety
    ///
    /// None: no pointer is followed.
    unsafe extern "C" fn unmap(_device: *mut abi::device, addr: u64, len: usize) {
        UNMAPPED.fetch_add(1, Ordering::Relaxed);
        BALANCE.fetch_sub(weight(addr, len), Ordering::Relaxed);
    }
}

/// As many pieces, of different lengths.
fn pieces(number: u64) -> Result<Pieces, Errno> {
    let mut pieces = Pieces::new();
    for number in 1..=number {
        let piece = Extent {
            start: number << 32,
            len: number * GPU_PAGE,
        };
        // Fewer than there are: room is made for more.
        pieces.push(piece, 3 * GPU_PAGE)?;
    }
    Ok(pieces)
}

#[kernel::macros::kunit_tests(nv_peer_mem_pieces)]
mod places {
    use super::*;

    #[test]
    fn one_needs_no_memory() -> Result<(), Errno> {
        assert!(matches!(pieces(1)?, Pieces::One(only) if only.start == 1 << 32));
        Ok(())
    }

    #[test]
    fn many_are_in_their_order() -> Result<(), Errno> {
        for number in [2, 3, 5] {
            let pieces = pieces(number)?;
            assert!(pieces
                .all()
                .iter()
                .map(|piece| piece.start >> 32)
                .eq(1..=number));
        }
        Ok(())
    }
}

#[kernel::macros::kunit_tests(nv_peer_mem_mapping)]
mod mappings {
    use super::*;

    /// All pieces, mapped for a device.
    fn mapped(number: u64) -> Result<ScatterTable, Errno> {
        let device = pci_device().ok_or(Errno::INVAL)?;
        let range = Range::new(0, number * (number + 1) / 2 * GPU_PAGE).ok_or(Errno::INVAL)?;
        let window = range.window(rt::page_size()).ok_or(Errno::INVAL)?;
        let list = Builder::new(window, u32::MAX);
        let (shared, table) = map(device, &Placed::At(pieces(number)?), &range, list)?;
        assert!(shared.is_none());
        Ok(table)
    }

    #[test]
    fn each_extent_is_mapped_and_unmapped() -> Result<(), Errno> {
        dma::replace(u32::MAX);
        let mut table = mapped(5)?;
        let first = table.for_core().sgl;
        // SAFETY: The first of five entries.
        assert_eq!(unsafe { (*first).dma_address }, dma::bus(1 << 32));
        assert_eq!(dma::counts(), (5, 0, false));
        table.unmap();
        assert_eq!(dma::counts(), (5, 5, true));
        drop(table);
        assert_eq!(dma::counts(), (5, 5, true));
        drop(mapped(3)?);
        assert_eq!(dma::counts(), (8, 8, true));
        Ok(())
    }

    #[test]
    fn a_failure_undoes_what_was_mapped_before() -> Result<(), Errno> {
        dma::replace(2);
        assert_eq!(mapped(5).err(), Some(Errno::IO));
        assert_eq!(dma::counts(), (2, 2, true));
        Ok(())
    }
}
