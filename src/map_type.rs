// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Finds whether, and how, a device may reach a GPU's memory (compare `drivers/pci/p2pdma.c`).
//!
//! The driver's call to map pages refuses some pairs of GPU and device, and gives other pairs
//! addresses that only the driver knows. This module maps physical addresses itself. For each pair,
//! the module therefore asks the driver once, with one page, and compares the driver's address with
//! its own. The module remembers only answers about the pair itself, until the module is unloaded
//! or the device is removed. The driver's options cannot change before the module is unloaded.
//!
//! The module asks in the core's call to map, for a registration that no callback waits for. It
//! then holds no lock of its own, because the driver takes locks.

use core::ffi::CStr;

use kernel::{
    prelude::*,
    rbtree::{RBTree, RBTreeNode},
};

use crate::{
    abi::{self, ffi::c_void},
    compat::pr_warn_ratelimited,
    dma::{Device, DeviceRef},
    errno::eopnotsupp,
    extents::{Extent, Extents, Range},
    global::{Global, Installed},
    page_table::Gpu,
    pin::{PersistentPin, PinError},
};

/// How memory of a GPU is mapped for a device that can reach the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MapType {
    /// This module maps, and the driver's own call would have the same effect.
    Ours,
    /// The driver maps, because only the driver knows the addresses.
    Driver,
    /// The driver could not be asked, because it has no persistent pin for this page.
    Unasked,
}

/// The driver's answer about a GPU and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The module's own mapping has the effect of the driver's.
    Ours,
    /// The driver gives addresses that only the driver knows.
    Driver,
    /// The device cannot reach the GPU's memory.
    Refused,
}

impl Answer {
    /// Returns the word for the answer in `/proc/driver/nv_peer_mem/pairs`.
    fn name(self) -> &'static CStr {
        match self {
            Self::Ours => c"ours",
            Self::Driver => c"driver",
            Self::Refused => c"refused",
        }
    }
}

/// A GPU and a device, by its address in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    gpu: Gpu,
    device: usize,
}

/// The answer about a pair. The reference keeps another device from getting the address in the key.
struct Known {
    device: DeviceRef,
    answer: Answer,
}

/// The pairs about which the driver has answered.
pub(crate) struct Pairs(RBTree<Pair, Known>);

static PAIRS: Global<Pairs> = Global::new(abi::NVPM_LOCK_PAIRS);

impl Pairs {
    /// Installs the table, until the result is dropped.
    pub(crate) fn install() -> Result<Installed<Self>> {
        PAIRS.install(Self(RBTree::new()))
    }
}

/// Returns how memory of `gpu` is mapped for `device`, or an error if the memory cannot be mapped.
/// If the pair is not known, the driver is asked with the first page of `range`, which must be
/// memory of the calling process.
pub(crate) fn of_pair(gpu: Gpu, device: Device, range: &Range) -> Result<MapType> {
    let answer = match known(gpu, device) {
        Some(answer) => Some(answer),
        None => {
            let answer = ask(gpu, device, &range.first_page())?;
            // Without an answer, the next registration asks with its own page.
            if let Some(answer) = answer {
                remember(gpu, device, answer);
            }
            answer
        }
    };
    match answer {
        None => Ok(MapType::Unasked),
        Some(Answer::Ours) => Ok(MapType::Ours),
        Some(Answer::Driver) => Ok(MapType::Driver),
        Some(Answer::Refused) => {
            pr_warn_ratelimited!("the NVIDIA driver does not let this RDMA device reach this GPU's memory: the PCI topology between them does not allow it (nvpm status shows the pair), or the driver's option NVreg_GrdmaPciTopoCheckOverride=2 forbids it\n");
            Err(eopnotsupp())
        }
    }
}

fn pair(gpu: Gpu, device: Device) -> Pair {
    Pair {
        gpu,
        device: device.as_ptr() as usize,
    }
}

fn known(gpu: Gpu, device: Device) -> Option<Answer> {
    let pair = pair(gpu, device);
    PAIRS
        .with(|pairs| pairs.0.get(&pair).map(|known| known.answer))
        .flatten()
}

/// Remembers the answer. If there is no memory for the record, the next registration asks again.
pub(crate) fn remember(gpu: Gpu, device: Device, answer: Answer) {
    forget_removed();
    let known = Known {
        device: DeviceRef::new(device),
        answer,
    };
    let Ok(node) = RBTreeNode::new(pair(gpu, device), known, GFP_KERNEL) else {
        return;
    };
    // Another registration may have asked at the same time, and got the same answer. The older
    // entry is dropped after the lock is released.
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

/// Asks the driver, with one page. Returns no answer if the page cannot be pinned. An answer that a
/// later moment may change is an error.
fn ask(gpu: Gpu, device: Device, page: &Range) -> Result<Option<Answer>> {
    // The pin is persistent, so that the driver cannot free the table during the mapping.
    let mut pin = match PersistentPin::new(page) {
        Ok(pin) => pin,
        Err(error) if error.may_fall_back() => return Ok(None),
        Err(PinError::NotGpuMemory) => return Err(EFAULT),
        Err(PinError::Failed(error)) => return Err(error),
    };
    // The memory may have been freed before this, and memory of another GPU may have its address.
    if pin.gpu() != gpu {
        return Err(EFAULT);
    }
    let (extents, coherent) = pin.location(page)?;
    let physical = only(&extents)?;
    match pin.map(device) {
        // For coherent memory this answer may only mean that the kernel has no pages for it yet.
        Err(error) if error == eopnotsupp() && !coherent => return Ok(Some(Answer::Refused)),
        mapped => mapped?,
    }
    let bus = only(&pin.bus_extents(page)?)?;
    if coherent {
        return Ok(Some(Answer::Driver));
    }
    let ours = device.map(physical.start, physical.len)?;
    device.unmap(ours, physical.len);
    // This module's address has the same effect as the driver's if both are equal, or if an IOMMU
    // translates both.
    let both_translated = bus.start != physical.start && ours != physical.start;
    Ok(Some(match bus.start == ours || both_translated {
        true => Answer::Ours,
        false => Answer::Driver,
    }))
}

/// Returns the only extent of a page.
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
            let name = known.answer.name().as_ptr().cast();
            // SAFETY: By this function's requirement `page` is valid; the UUID has 16 bytes;
            // `known` has a reference to the PCI device.
            unsafe { abi::nvpm_pair_line(page, pair.gpu.as_ptr(), known.device.as_ptr(), name) };
        }
    });
}
