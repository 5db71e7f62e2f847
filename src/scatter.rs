// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Scatterlists of bus addresses, as the RDMA core reads them.
//!
//! C header: `linux/scatterlist.h`. Entries have no `struct page`: the memory is not the kernel's.

use super::{
    abi,
    errno::Errno,
    extents::Extent, //
};

/// A scatterlist that this module allocated and frees.
///
/// # Invariants
///
/// The table came from a successful `sg_alloc_table` and has as many entries filled as allocated.
pub(crate) struct ScatterTable(abi::sg_table);

// SAFETY: Nothing is bound to the thread that made it.
unsafe impl Send for ScatterTable {}

impl ScatterTable {
    /// The scatterlist of `segments`, which are `total` bytes together, each less than 4 GiB.
    pub(crate) fn new(
        segments: impl Iterator<Item = Extent> + Clone,
        total: u64,
    ) -> Result<Self, Errno> {
        let entries = segments.clone().count();
        let bytes: u64 = segments.clone().map(|segment| segment.len).sum();
        // Fewer bytes than asked for would let the device use addresses that are not there.
        if bytes != total || entries == 0 {
            return Err(Errno::IO);
        }
        let entries = u32::try_from(entries).map_err(|_| Errno::NOMEM)?;
        let mut table = abi::sg_table::default();
        // SAFETY: `table` is valid for writing.
        Errno::check(unsafe { abi::nvpm_sg_alloc(&mut table, entries) })?;
        let mut entry = table.sgl;
        // INVARIANT: The allocation succeeded; the loop fills one entry for each counted segment.
        let table = Self(table);
        for segment in segments {
            let len = u32::try_from(segment.len).map_err(|_| Errno::IO)?;
            if entry.is_null() {
                return Err(Errno::IO);
            }
            // SAFETY: Each call returns the entry after the one it filled, NULL after the last.
            entry = unsafe { abi::nvpm_sg_fill(entry, segment.start, len) };
        }
        Ok(table)
    }

    /// The table as the core gets it: a copy that points to the same list.
    pub(crate) fn for_core(&self) -> abi::sg_table {
        abi::sg_table { ..self.0 }
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> u32 {
        self.0.orig_nents
    }
}

impl Drop for ScatterTable {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant, and nothing uses the list any more: the core has
        // released the region.
        unsafe { abi::sg_free_table(&mut self.0) };
    }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/scatter.rs"]
mod kunit;
