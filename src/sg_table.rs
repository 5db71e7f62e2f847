// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Scatterlists of bus addresses, as the RDMA core reads them.
//!
//! C header: `linux/scatterlist.h`. Entries have no `struct page`: the memory is not the kernel's.

use core::ptr::NonNull;

use kernel::prelude::Result;

use crate::{abi, errno::to_result, extents::Segments, turns::Turns};

/// A scatterlist that this module allocated and frees.
///
/// # Invariants
///
/// `sg_alloc_table` has made the table, of one entry at least.
pub(crate) struct SgTable(abi::sg_table);

// SAFETY: The pointer is to memory that only this object uses, from any thread.
unsafe impl Send for SgTable {}

impl SgTable {
    /// A scatterlist with an entry for each of `segments`, still without address and length.
    pub(crate) fn empty(segments: &Segments<'_>) -> Result<Self> {
        let mut table = abi::sg_table::default();
        // SAFETY: `table` is valid for writing; the caller may sleep.
        to_result(unsafe { abi::nvpm_sg_alloc(&mut table, segments.entries()?) })?;
        // INVARIANT: `sg_alloc_table` has just made the table, of `entries`, which is not 0.
        Ok(Self(table))
    }

    /// Makes a scatterlist of `segments`, which are bus addresses.
    pub(crate) fn new(segments: Segments<'_>) -> Result<Self> {
        let mut table = Self::empty(&segments)?;
        for (entry, segment) in table.entries().zip(segments) {
            fill(entry, segment.start, segment.len);
        }
        Ok(table)
    }

    /// The entries, in their order. Lets other threads run now and then, so it may sleep.
    pub(crate) fn entries(&mut self) -> Entries<'_> {
        Entries {
            next: NonNull::new(self.0.sgl),
            turns: Turns::new(),
            _table: self,
        }
    }

    /// Returns the table for the core. The table has bus addresses and no pages: code that copies pages
    /// finds an empty list, and not entries without a page.
    pub(crate) fn for_core(&self) -> abi::sg_table {
        abi::sg_table {
            sgl: self.0.sgl,
            nents: self.0.orig_nents,
            orig_nents: 0,
        }
    }
}

impl Drop for SgTable {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant `sg_alloc_table` has made it. The core does not use the
        // entries any more: it has released the registration, or never got them.
        unsafe { abi::sg_free_table(&mut self.0) };
    }
}

/// Sets the bus address and the length of an entry.
pub(crate) fn fill(entry: &mut abi::scatterlist, address: u64, len: u32) {
    entry.length = len;
    entry.dma_length = len;
    entry.dma_address = address;
}

/// The entries of a scatterlist.
///
/// # Invariants
///
/// `next` is an entry of the table that has not been given out, if there is one.
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
        // SAFETY: By the type's invariant it is an entry of a list that `sg_alloc_table` has made.
        // INVARIANT: `nvpm_sg_next` returns the next entry, or NULL after the last.
        self.next = NonNull::new(unsafe { abi::nvpm_sg_next(entry.as_ptr()) });
        // SAFETY: By the type's invariant it is valid, and given out once; the table is borrowed
        // for as long as the reference lives.
        Some(unsafe { entry.as_mut() })
    }
}
