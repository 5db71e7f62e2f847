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
    pub(crate) fn new(segments: Segments<'_>) -> Result<Self> {
        let mut table = Self::empty(&segments)?;
        for (entry, segment) in table.entries().zip(segments) {
            fill(entry, segment.start, segment.len);
        }
        Ok(table)
    }

    /// Returns the entries in order. The iterator lets other threads run from time to time, so it
    /// may sleep.
    pub(crate) fn entries(&mut self) -> Entries<'_> {
        Entries {
            next: Some(self.first),
            turns: Turns::new(),
            _table: self,
        }
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

/// An iterator over the entries of a scatterlist.
///
/// # Invariants
///
/// `next` is an entry of the table that the iterator has not returned yet, or [`None`].
pub(crate) struct Entries<'a> {
    next: Option<NonNull<abi::scatterlist>>,
    turns: Turns,
    _table: &'a mut SgTable,
}

impl<'a> Iterator for Entries<'a> {
    type Item = &'a mut abi::scatterlist;

    fn next(&mut self) -> Option<Self::Item> {
        let mut entry = self.next?;
        self.turns.step();
        // SAFETY: By the type's invariant `entry` is an entry of a list that `sg_alloc_table` has
        // made.
        // INVARIANT: `nvpm_sg_next` returns the next entry, or NULL after the last.
        self.next = NonNull::new(unsafe { abi::nvpm_sg_next(entry.as_ptr()) });
        // SAFETY: By the type's invariant the entry is valid and was not returned before. The
        // iterator borrows the table as long as the reference lives.
        Some(unsafe { entry.as_mut() })
    }
}
