// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Scatterlists with bus addresses, in the form that the RDMA core reads.
//!
//! C header: `linux/scatterlist.h`. The entries refer to no `struct page`, because GPU memory is
//! not memory of the kernel.

use core::ptr::NonNull;

use kernel::prelude::*;

use crate::{abi, errno::to_result, extents::Segments, resched::Turns};

/// A scatterlist that this module allocated and frees. Each record of a registration has room for
/// an optional scatterlist. `first` is never NULL, so the option needs no additional bytes.
///
/// # Invariants
///
/// `sg_alloc_table` has made the list, with `entries` entries.
pub(crate) struct SgTable {
    first: NonNull<abi::scatterlist>,
    entries: u32,
}

// SAFETY: Only this object uses the memory behind the pointer, and any thread may use that memory.
unsafe impl Send for SgTable {}

impl SgTable {
    /// Makes a scatterlist with an entry for each of `segments`. The entries have neither address
    /// nor length yet.
    pub(crate) fn empty(segments: &Segments<'_>) -> Result<Self> {
        let entries = segments.entries()?;
        let mut table = abi::sg_table::default();
        // SAFETY: `table` is valid for writing, and the caller may sleep.
        to_result(unsafe { abi::nvpm_sg_alloc(&mut table, entries) })?;
        // INVARIANT: `sg_alloc_table` has just made the list with this number of entries.
        Ok(Self {
            first: NonNull::new(table.sgl).ok_or(ENOMEM)?,
            entries,
        })
    }

    /// Makes a scatterlist of `segments`, which are bus addresses.
    pub(crate) fn new(mut segments: Segments<'_>) -> Result<Self> {
        let mut table = Self::empty(&segments)?;
        table.for_each_entry(|entry| {
            let segment = segments.next().ok_or(EIO)?;
            fill(entry, segment.start, segment.len);
            Ok(())
        })?;
        Ok(table)
    }

    /// Calls `work` with each entry in order, until `work` returns an error. Returns this error. A
    /// list may have millions of entries, so the loop lets other threads run from time to time. May
    /// sleep.
    pub(crate) fn for_each_entry(
        &mut self,
        mut work: impl FnMut(&mut abi::scatterlist) -> Result,
    ) -> Result {
        let mut turns = Turns::new();
        let mut next = Some(self.first);
        while let Some(mut entry) = next {
            turns.step();
            // SAFETY: By the type's invariant `entry` is an entry of a list that `sg_alloc_table` has
            // made. The function returns the next entry, or NULL after the last.
            next = NonNull::new(unsafe { abi::nvpm_sg_next(entry.as_ptr()) });
            // SAFETY: The entry is valid by the type's invariant. This object is borrowed, so no other
            // reference to the entry exists.
            work(unsafe { entry.as_mut() })?;
        }
        Ok(())
    }

    /// Returns the table for the core. `nents`, the number of entries with bus addresses, is set.
    /// `orig_nents`, the number of entries with pages, is 0, so that code that reads pages finds an
    /// empty list and does not read entries that have no page.
    pub(crate) fn for_core(&self) -> abi::sg_table {
        abi::sg_table {
            sgl: self.first.as_ptr(),
            nents: self.entries,
            orig_nents: 0,
        }
    }
}

impl Drop for SgTable {
    fn drop(&mut self) {
        let mut table = abi::sg_table {
            sgl: self.first.as_ptr(),
            nents: self.entries,
            orig_nents: self.entries,
        };
        // SAFETY: By the type's invariant `sg_alloc_table` has made the list, and this is the table
        // that it has made with the list. The core does not use the entries any more, because the
        // core has released the registration, or has not received the table.
        unsafe { abi::sg_free_table(&mut table) };
    }
}

/// Sets the bus address and the length of an entry.
pub(crate) fn fill(entry: &mut abi::scatterlist, address: u64, len: u32) {
    entry.length = len;
    entry.dma_length = len;
    entry.dma_address = address;
}
