// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Checks the ends of a large range before the driver is asked to pin all of the range.

use crate::{
    extents::Range,
    pin::{PersistentPin, PinError},
};

/// The largest range that is pinned without a check of its ends. For a range of this length the
/// driver allocates 16 MiB twice.
const LARGE: u64 = 64 << 30;
/// No GPU has more bytes of memory than this number. For a range of this length the driver
/// allocates 256 MiB.
const LARGEST: u64 = 1 << 40;

/// Tells whether the driver may be asked to pin all of `range`. The driver allocates memory for
/// each page before it checks whether the pages are GPU memory, so a huge range of other memory
/// would cost gigabytes. The driver only pins ranges within one allocation, so both ends of the
/// range must be GPU memory of the process. This is not enough, because a process can place two
/// allocations far apart and register everything between them. A range that is larger than any GPU
/// is therefore refused.
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
