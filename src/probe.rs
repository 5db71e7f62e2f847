// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Questions to the driver that come before a request to pin a large range.

use crate::{
    extents::Range,
    pin::{PersistentPin, PinError},
};

/// The largest range for which the driver is asked at once. For this range the driver allocates 16
/// MiB twice.
const LARGE: u64 = 64 << 30;
/// No GPU has more bytes than this. To pin so many bytes the driver allocates 256 MiB.
const LARGEST: u64 = 1 << 40;

/// Tells whether the driver may be asked to pin all of `range`. The driver allocates memory for
/// each page before it looks for the owner of the pages, so a huge range that is not GPU memory
/// would cost gigabytes. A range must lie in one allocation, so both ends must be GPU memory of the
/// process. A process can also place two allocations far apart and ask for everything between, so a
/// range must not be larger than a GPU.
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
