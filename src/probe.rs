// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Questions to the driver that come before a request to pin a large range.

use crate::{
    extents::Range,
    pin::{PersistentPin, PinError},
};

/// Above this number of bytes the driver is asked for single pages first. Up to it the driver allocates
/// at most 16 MiB, twice.
const LARGE: u64 = 64 << 30;
/// More bytes than a GPU has. To pin this many the driver allocates 256 MiB.
const LARGEST: u64 = 1 << 40;

/// Whether the driver may be asked to pin all of `range`. The driver allocates memory for each page before
/// it looks up whose pages they are, so a huge range that is not GPU memory would cost gigabytes. Only one
/// allocation can be pinned, so both of its ends must be GPU memory of the process. A process can place
/// two allocations far apart and ask for everything between, so a range is never larger than a GPU.
pub(crate) fn probe_ends(range: &Range) -> bool {
    if range.pinned_len() <= LARGE {
        return true;
    }
    if range.pinned_len() > LARGEST {
        return false;
    }
    let is_gpu_memory = |page| !matches!(PersistentPin::new(&page), Err(PinError::NotGpuMemory));
    is_gpu_memory(range.first_page()) && is_gpu_memory(range.last_page())
}
