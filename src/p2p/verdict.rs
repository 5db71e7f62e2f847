// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Whether, and how, a device may reach a GPU's memory: the driver's verdict.
//!
//! Its call to map pages refuses some pairs, and gives addresses of its own making to others. We
//! map physical addresses ourselves; so it is asked once for each pair of a GPU and a device, with
//! one page: what it would map it to, beside what we would. In C, `pairs.c` remembers the answers.
//!
//! It is asked in the core's call to map, for a region that no callback waits for, with no lock of
//! ours: the driver takes its own.

use core::ptr::NonNull;

use super::{
    device::Device,
    has_persistent,
    mapping::{
        map_one,
        unmap_one,
        DriverMapping, //
    },
    pins::{
        NoPin,
        PersistentPin, //
    }, //
};
use crate::{
    abi,
    errno::Errno,
    extents::{
        Extent,
        Range, //
    },
    rt::complain, //
};

/// A GPU, as verdicts tell them apart.
///
/// # Invariants
///
/// Came from `nvpm_gpu`: it is there until the module goes.
#[derive(Clone, Copy)]
pub(crate) struct Gpu(NonNull<abi::nvpm_gpu>);

// SAFETY: The pointer is for functions that any thread may call.
unsafe impl Send for Gpu {}

impl Gpu {
    /// The GPU of that UUID.
    ///
    /// # Safety
    ///
    /// `uuid` must be NULL or point to its 16 bytes.
    pub(super) unsafe fn from_uuid(uuid: *const u8) -> Result<Self, Errno> {
        // SAFETY: By this function's requirement.
        let gpu = unsafe { abi::nvpm_gpu(uuid) };
        // INVARIANT: Just given.
        NonNull::new(gpu).map(Self).ok_or(Errno::NOMEM)
    }
}

/// Who maps memory of a GPU for a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// We do: the driver's own call would mean the same.
    Ours,
    /// The driver does: it alone knows the addresses.
    Drivers,
    /// The driver has no pin to be asked with.
    Unasked,
}

/// What `pairs.c` remembers.
type Verdict = abi::nvpm_verdict;

/// The way for `gpu` and `device`; with memory at `range` of the calling process, should the driver
/// have to be asked. An error if it refuses the pair.
pub(crate) fn way(gpu: Gpu, device: Device, range: &Range) -> Result<Way, Errno> {
    // SAFETY: By the invariants of `Gpu` and `Device`.
    let known = unsafe { abi::nvpm_pair_verdict(gpu.0.as_ptr(), device.as_ptr()) };
    let verdict = match Verdict::try_from(known) {
        Ok(verdict @ 1..) => verdict,
        _ => {
            let verdict = ask(device, &range.first_page())?;
            // Where only this page was no help, the next registration asks with its own.
            if verdict != abi::NVPM_UNASKED || !has_persistent() {
                // Without memory to remember it the next registration asks again.
                // SAFETY: By the invariants of `Gpu` and `Device`.
                unsafe { abi::nvpm_pair_add(gpu.0.as_ptr(), device.as_ptr(), verdict as i32) };
            }
            verdict
        }
    };
    match verdict {
        abi::NVPM_REFUSED => {
            complain!("the NVIDIA driver does not let this RDMA device reach this GPU's memory: the PCI topology between them does not suit (nv_peer_mem-status shows the pair), or NVreg_GrdmaPciTopoCheckOverride=2 denies it\n");
            Err(Errno::OPNOTSUPP)
        }
        abi::NVPM_DRIVERS => Ok(Way::Drivers),
        abi::NVPM_UNASKED => Ok(Way::Unasked),
        _ => Ok(Way::Ours),
    }
}

/// Asks the driver, with one page. Only what it says of the pair is a verdict: what another page,
/// or another time, may change is an error, or "unasked".
fn ask(device: Device, page: &Range) -> Result<Verdict, Errno> {
    if !has_persistent() {
        return Ok(abi::NVPM_UNASKED);
    }
    // One that is never revoked, or the driver could free the table while it maps it.
    let pin = match PersistentPin::new(page) {
        Ok(pin) => pin,
        Err(no_pin) if no_pin.other_way() => return Ok(abi::NVPM_UNASKED),
        Err(NoPin::NotGpuMemory) => return Err(Errno::FAULT),
        Err(NoPin::Failed(errno)) => return Err(errno),
    };
    let pieces = pin.pieces(page)?;
    let &[physical] = pieces.all() else {
        return Err(Errno::IO);
    };
    let coherent = pin.coherent()?;
    let mapping = match DriverMapping::new(device, pin) {
        Ok(mapping) => mapping,
        // Of coherent memory the driver says this where the kernel has no pages for it yet.
        Err((Errno::OPNOTSUPP, _)) if !coherent => return Ok(abi::NVPM_REFUSED),
        Err((errno, _)) => return Err(errno),
    };
    let mut theirs = None;
    mapping.extents(page, |extent| {
        theirs = Some(extent);
        Ok(())
    })?;
    let theirs = theirs.ok_or(Errno::IO)?;
    if coherent || !same(device, physical, theirs)? {
        return Ok(abi::NVPM_DRIVERS);
    }
    Ok(abi::NVPM_OURS)
}

/// Whether an address of our own means the same as the driver's: it is equal, or an IOMMU
/// translates both.
fn same(device: Device, physical: Extent, theirs: Extent) -> Result<bool, Errno> {
    let ours = map_one(device, physical)?;
    unmap_one(
        device,
        Extent {
            start: ours,
            ..physical
        },
    );
    Ok(theirs.start == ours || (theirs.start != physical.start && ours != physical.start))
}

/// Forgets all pairs, and all GPUs.
///
/// # Safety
///
/// No [`Gpu`] may be left.
pub(super) unsafe fn forget() {
    // SAFETY: By this function's requirement.
    unsafe { abi::nvpm_pairs_forget() };
}
