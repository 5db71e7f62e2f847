// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Whether, and how, a device may reach a GPU's memory (compare `drivers/pci/p2pdma.c`).
//!
//! The driver's call to map pages refuses some pairs of GPU and device, and gives addresses of its own
//! making to others. This module maps physical addresses itself; so the driver is asked once for each
//! pair, with one page: what it would map it to, beside what this module would. Only what the driver
//! says of the pair itself is remembered, for as long as the module is loaded (the driver's options do
//! not change meanwhile) or until the device is gone.
//!
//! It is asked in the core's call to map, for a region that no callback waits for, with no lock of
//! this module: the driver takes its own.

use core::ffi::CStr;

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{
    abi::{self, ffi::c_void},
    compat::{eopnotsupp, pr_warn_ratelimited, Global, Installed},
    dma::{Device, DeviceRef},
    extents::{Extent, Extents, Range},
    p2p::{has_persistent, Gpu, PersistentPin, PinError},
};

/// How memory of a GPU is mapped for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapType {
    /// By this module: the driver's own call would mean the same.
    Direct,
    /// By the driver, which alone knows the addresses.
    Driver,
    /// By nobody: the one cannot reach the other.
    NotSupported,
    /// The driver has no pin to be asked with.
    Unknown,
}

impl MapType {
    /// As `statistics/pairs` tells it.
    fn name(self) -> &'static CStr {
        match self {
            Self::Direct => c"ours",
            Self::Driver => c"driver",
            Self::NotSupported => c"refused",
            Self::Unknown => c"unasked",
        }
    }
}

/// A GPU and a device, by its address in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    gpu: Gpu,
    device: usize,
}

/// What is known of a pair. The reference keeps the address in the key from becoming another device's.
struct Known {
    device: DeviceRef,
    map_type: MapType,
}

/// The pairs whose map type is known.
pub(crate) struct Pairs(RBTree<Pair, Known>);

static PAIRS: Global<Pairs> = Global::new();

impl Pairs {
    /// Makes the table, which is there until what this returns is dropped.
    ///
    /// # Safety
    ///
    /// As for [`Global::install`].
    pub(crate) unsafe fn install() -> Result<Installed<Self>> {
        // SAFETY: By this function's requirement.
        unsafe { PAIRS.install(Self(RBTree::new())) }
    }
}

/// How memory of `gpu` is mapped for `device`, with memory at `range` of the calling process should the
/// driver have to be asked. An error if it cannot be.
pub(crate) fn of_pair(gpu: Gpu, device: Device, range: &Range) -> Result<MapType> {
    let map_type = match known(gpu, device) {
        Some(map_type) => map_type,
        None => {
            let map_type = ask(device, &range.first_page())?;
            // Where only this page was no help, the next registration asks with its own.
            if map_type != MapType::Unknown || !has_persistent() {
                remember(gpu, device, map_type);
            }
            map_type
        }
    };
    if map_type == MapType::NotSupported {
        pr_warn_ratelimited!("the NVIDIA driver does not let this RDMA device reach this GPU's memory: the PCI topology between them does not suit (nvpm status shows the pair), or NVreg_GrdmaPciTopoCheckOverride=2 denies it\n");
        return Err(eopnotsupp());
    }
    Ok(map_type)
}

fn pair(gpu: Gpu, device: Device) -> Pair {
    Pair {
        gpu,
        device: device.as_ptr() as usize,
    }
}

fn known(gpu: Gpu, device: Device) -> Option<MapType> {
    let pairs = PAIRS.get()?.lock();
    pairs.0.get(&pair(gpu, device)).map(|known| known.map_type)
}

/// Remembers the map type. Without memory for that the next registration asks again.
pub(crate) fn remember(gpu: Gpu, device: Device, map_type: MapType) {
    forget_removed();
    let known = Known {
        device: DeviceRef::new(device),
        map_type,
    };
    let (Some(pairs), Ok(node)) = (
        PAIRS.get(),
        RBTreeNode::new(pair(gpu, device), known, GFP_KERNEL),
    ) else {
        return;
    };
    // Another registration may have asked at the same time, and got the same answer: that goes when
    // the lock is released.
    let replaced = pairs.lock().0.insert(node);
    drop(replaced);
}

/// Forgets the pairs of devices that have been removed.
fn forget_removed() {
    while let Some(removed) = take_removed() {
        drop(removed);
    }
}

fn take_removed() -> Option<RBTreeNode<Pair, Known>> {
    let mut pairs = PAIRS.get()?.lock();
    let removed = pairs
        .0
        .iter()
        .find(|(_, known)| !known.device.is_registered())
        .map(|(&pair, _)| pair)?;
    pairs.0.remove_node(&removed)
}

/// Asks the driver, with one page. Only what it says of the pair is its map type: what another page,
/// or another time, may change is an error, or unknown.
fn ask(device: Device, page: &Range) -> Result<MapType> {
    if !has_persistent() {
        return Ok(MapType::Unknown);
    }
    // One that is never revoked, or the driver could free the table while it maps it.
    let mut pin = match PersistentPin::new(page) {
        Ok(pin) => pin,
        Err(error) if error.may_fall_back() => return Ok(MapType::Unknown),
        Err(PinError::NotGpuMemory) => return Err(EFAULT),
        Err(PinError::Failed(error)) => return Err(error),
    };
    let (extents, coherent) = pin.location(page)?;
    let physical = only(&extents)?;
    match pin.map(device) {
        // The driver says so of coherent memory, too, while the kernel has no pages for it.
        Err(error) if error == eopnotsupp() && !coherent => return Ok(MapType::NotSupported),
        mapped => mapped?,
    }
    let bus = only(&pin.bus_extents(page)?)?;
    if coherent {
        return Ok(MapType::Driver);
    }
    let ours = device.map(physical.start, physical.len)?;
    device.unmap(ours, physical.len);
    // An address of our own means the same if it is equal, or if an IOMMU translates both.
    let both_translated = bus.start != physical.start && ours != physical.start;
    Ok(match bus.start == ours || both_translated {
        true => MapType::Direct,
        false => MapType::Driver,
    })
}

/// The extent of a page.
fn only(extents: &Extents) -> Result<Extent> {
    match extents {
        Extents::One(extent) => Ok(*extent),
        Extents::Many(_) => Err(EIO),
    }
}

/// Calls `nvpm_pair_line` for each pair.
///
/// # Safety
///
/// `page` must be what `nvpm_pair_line` takes.
#[no_mangle]
pub(crate) unsafe extern "C" fn nvpm_pairs_each(page: *mut c_void) {
    forget_removed();
    let Some(pairs) = PAIRS.get() else {
        return;
    };
    for (pair, known) in pairs.lock().0.iter() {
        let name = known.map_type.name().as_ptr().cast();
        // SAFETY: `page` by this function's requirement; the UUID has 16 bytes; the pointer is to a
        // PCI device, to which `known` has a reference.
        unsafe { abi::nvpm_pair_line(page, pair.gpu.as_ptr(), known.device.as_ptr(), name) };
    }
}
