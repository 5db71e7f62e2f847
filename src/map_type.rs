// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Finds whether, and how, a device may reach a GPU's memory (compare `drivers/pci/p2pdma.c`).
//!
//! The driver's call to map pages refuses some pairs of GPU and device. For other pairs the call
//! returns addresses that only the driver knows. This module normally maps physical addresses
//! itself. The module therefore lets the driver map one page of each pair once, and compares the
//! driver's address with the address of its own mapping. The module remembers an answer until the
//! module is unloaded or the device is removed. A failure that has another cause than the pair is
//! not remembered. Remembered answers stay correct, because the driver's options cannot change
//! before this module is unloaded.
//!
//! The module asks the driver during the core's call to map, while no callback waits for the
//! registration. The module holds no lock of its own while it asks the driver, because the driver
//! takes locks.

use core::ffi::CStr;

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{
    abi::{self, ffi::c_void},
    device::{Device, DeviceRef},
    errno::eopnotsupp,
    extents::{Extent, Extents, Range},
    global::{Global, Installed},
    page_table::Gpu,
    pin::{PersistentPin, PinError},
    ratelimit::pr_warn_ratelimited,
};

/// How memory of a GPU is mapped for a device that can reach the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapType {
    /// This module maps the memory. A mapping by the driver would have the same effect.
    Ours,
    /// The driver maps the memory, because only the driver knows the addresses.
    Driver,
}

/// The driver's answer that a device cannot reach a GPU's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused;

/// The driver's answer about a GPU and a device.
pub(crate) type Answer = Result<MapType, Refused>;

/// Returns the word for an answer in `/proc/driver/nv_peer_mem/pairs`.
fn name(answer: Answer) -> &'static CStr {
    match answer {
        Ok(MapType::Ours) => c"ours",
        Ok(MapType::Driver) => c"driver",
        Err(Refused) => c"refused",
    }
}

/// A GPU and a device. The device's address in the kernel's memory identifies the device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    gpu: Gpu,
    device: usize,
}

/// The driver's answer about a pair, with a reference to the device. As long as the reference
/// exists, no other device can have the address that is in the pair.
struct Known {
    device: DeviceRef,
    answer: Answer,
}

/// The pairs of which the module remembers the driver's answer.
pub(crate) struct Pairs(RBTree<Pair, Known>);

static PAIRS: Global<Pairs> = Global::new(abi::NVPM_LOCK_PAIRS);

impl Pairs {
    /// Installs the table. Dropping the result removes the table.
    pub(crate) fn install() -> Result<Installed<Self>> {
        PAIRS.install(Self(RBTree::new()))
    }
}

/// Returns how memory of `gpu` is mapped for `device`, or an error if the memory cannot be mapped.
/// If there is no remembered answer about the pair, the function asks the driver, with the first
/// page of `range`. `range` must be memory of the calling process. Returns [`None`] if the driver
/// cannot answer, because it cannot pin the page persistently.
pub(crate) fn of_pair(gpu: Gpu, device: Device<'_>, range: &Range) -> Result<Option<MapType>> {
    let answer = match known(gpu, device) {
        Some(answer) => Some(answer),
        None => {
            let answer = ask(gpu, device, &range.first_page())?;
            // If the driver has given no answer, nothing is remembered. The next registration then
            // asks the driver again, with its own page.
            if let Some(answer) = answer {
                remember(gpu, device, answer);
            }
            answer
        }
    };
    match answer {
        None => Ok(None),
        Some(Ok(map_type)) => Ok(Some(map_type)),
        Some(Err(Refused)) => {
            pr_warn_ratelimited!("the NVIDIA driver does not let this RDMA device reach this GPU's memory: the PCI topology between them does not allow it (nvpm status shows the pair), or the driver's option NVreg_GrdmaPciTopoCheckOverride=2 forbids it\n");
            Err(eopnotsupp())
        }
    }
}

fn pair(gpu: Gpu, device: Device<'_>) -> Pair {
    Pair {
        gpu,
        device: device.as_ptr() as usize,
    }
}

fn known(gpu: Gpu, device: Device<'_>) -> Option<Answer> {
    let pair = pair(gpu, device);
    PAIRS
        .with(|pairs| pairs.0.get(&pair).map(|known| known.answer))
        .flatten()
}

/// Remembers the answer. If the kernel has no memory for the entry, nothing is remembered, so the
/// next registration asks again.
pub(crate) fn remember(gpu: Gpu, device: Device<'_>, answer: Answer) {
    forget_removed();
    let known = Known {
        device: DeviceRef::new(device),
        answer,
    };
    let Ok(node) = RBTreeNode::new(pair(gpu, device), known, GFP_KERNEL) else {
        return;
    };
    // Another registration may have asked the driver at the same time and remembered the same
    // answer. The entry that this insertion replaces is dropped after the lock is released.
    let replaced = PAIRS.with(|pairs| pairs.0.insert(node));
    drop(replaced);
}

/// Forgets the pairs of devices that have been removed.
fn forget_removed() {
    while let Some(removed) = take_removed() {
        drop(removed);
    }
}

fn take_removed() -> Option<RBTreeNode<Pair, Known>> {
    PAIRS
        .with(|pairs| {
            let removed = pairs
                .0
                .iter()
                .find(|(_, known)| !known.device.is_registered())
                .map(|(&pair, _)| pair)?;
            pairs.0.remove_node(&removed)
        })
        .flatten()
}

/// Asks the driver to map one page. Returns [`None`] if the page cannot be pinned persistently.
/// Returns an error if the result may be different at another time, so that it is not remembered.
fn ask(gpu: Gpu, device: Device<'_>, page: &Range) -> Result<Option<Answer>> {
    // The pin is persistent, because the driver must not free the page table before the mapping is
    // undone.
    let pin = match PersistentPin::new(page) {
        Ok(pin) => pin,
        Err(error) if error.may_fall_back() => return Ok(None),
        Err(PinError::NotGpuMemory) => return Err(EFAULT),
        Err(PinError::Failed(error)) => return Err(error),
    };
    // The memory may have been freed since the registration, and memory of another GPU may have got
    // the same address.
    if pin.gpu() != gpu {
        return Err(EFAULT);
    }
    let (extents, coherent) = pin.location(page)?;
    let physical = only(&extents)?;
    let mapping = match pin.driver_mapping(device) {
        // For coherent memory this error may also mean that the kernel has not onlined the memory
        // yet. That will change, so the error is not remembered.
        Err(error) if error == eopnotsupp() && !coherent => return Ok(Some(Err(Refused))),
        mapping => mapping?,
    };
    let bus = only(&mapping.extents(page)?)?;
    if coherent {
        return Ok(Some(Ok(MapType::Driver)));
    }
    let ours = device.map(physical.start, physical.len)?;
    device.unmap(ours, physical.len);
    // The module's mapping has the same effect as the driver's if both mappings give the same DMA
    // address, or if both DMA addresses differ from the physical address, because an IOMMU then
    // translates both.
    let both_translated = bus.start != physical.start && ours != physical.start;
    Ok(Some(Ok(if bus.start == ours || both_translated {
        MapType::Ours
    } else {
        MapType::Driver
    })))
}

/// Returns the extent of a page, or an error if there are more extents.
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
/// `page` must be valid for `nvpm_pair_line`.
#[no_mangle]
pub(crate) unsafe extern "C" fn nvpm_pairs_each(page: *mut c_void) {
    forget_removed();
    PAIRS.with(|pairs| {
        for (pair, known) in pairs.0.iter() {
            let text = name(known.answer).as_ptr().cast();
            // SAFETY: By this function's requirement `page` is valid. The UUID has 16 bytes.
            // `known` has a reference to the PCI device.
            unsafe {
                abi::nvpm_pair_line(page, pair.gpu.0.as_ptr(), known.device.get().as_ptr(), text)
            };
        }
    });
}
