// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Scatterlists of bus addresses, as the RDMA core reads them.
//!
//! C header: `linux/scatterlist.h`. Entries have no `struct page`: the memory is not the kernel's.

use super::{
    abi,
    errno::Errno,
    extents::{
        Cut,
        Extent,
        Segment, //
    }, //
};

/// A scatterlist that is being made, in one pass over the extents: how many entries it has is known
/// at their end.
pub(crate) struct Builder {
    table: ScatterTable,
    cut: Cut,
}

impl Builder {
    /// For the bytes of `window` in the extents to come, in entries of at most `longest` bytes.
    pub(crate) fn new(window: Extent, longest: u32) -> Self {
        Self {
            // INVARIANT: An empty list.
            table: ScatterTable(abi::nvpm_sg_list::default()),
            cut: Cut::new(window, longest),
        }
    }

    /// Adds what is in the window of the next extent.
    #[inline]
    pub(crate) fn extent(&mut self, extent: Extent) -> Result<(), Errno> {
        let Self { table, cut } = self;
        cut.extent(extent, |segment, more| table.push(segment, more))
    }

    /// The scatterlist. Fewer bytes than asked for would let the device use addresses that are not
    /// there: an error then.
    pub(crate) fn finish(mut self) -> Result<ScatterTable, Errno> {
        if self.cut.left() != 0 || self.table.0.table.nents == 0 {
            return Err(Errno::IO);
        }
        // SAFETY: By the invariant of `ScatterTable`; there is an entry.
        unsafe { abi::nvpm_sg_finish(&mut self.table.0) };
        Ok(self.table)
    }
}

/// A scatterlist that this module allocated and frees.
///
/// # Invariants
///
/// Was zero at first and has only been changed by `nvpm_sg_grow` and [`Self::push`]; outside of
/// [`Self::new`] it is finished.
pub(crate) struct ScatterTable(abi::nvpm_sg_list);

// SAFETY: Nothing is bound to the thread that made it.
unsafe impl Send for ScatterTable {}

impl ScatterTable {
    /// Adds an entry; whether there are `more` to come is only a hint.
    #[inline]
    fn push(&mut self, segment: Segment, more: bool) -> Result<(), Errno> {
        let list = &mut self.0;
        if list.room == 0 {
            // SAFETY: By the type's invariant.
            Errno::check(unsafe { abi::nvpm_sg_grow(list, more) })?;
        }
        let entry = abi::scatterlist {
            length: segment.len,
            dma_address: segment.start,
            dma_length: segment.len,
            ..Default::default()
        };
        // SAFETY: There is room for an entry at `next`.
        unsafe { list.next.write(entry) };
        // SAFETY: At most behind the last entry that there was room for.
        list.next = unsafe { list.next.add(1) };
        list.room = list.room.wrapping_sub(1);
        list.table.nents = list.table.nents.wrapping_add(1);
        Ok(())
    }

    /// The table as the core gets it: a copy that points to the same list.
    pub(crate) fn for_core(&self) -> abi::sg_table {
        abi::sg_table { ..self.0.table }
    }

    /// Number of entries.
    pub(crate) fn entries(&self) -> u32 {
        self.0.table.orig_nents
    }
}

impl Drop for ScatterTable {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant, and nothing uses the list any more: the core has
        // released the region, or never got it.
        unsafe { abi::nvpm_sg_free(&mut self.0) };
    }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/scatter.rs"]
mod kunit;
