// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Scatterlists of bus addresses, as the RDMA core reads them.
//!
//! C header: `linux/scatterlist.h`. Entries have no `struct page`: the memory is not the kernel's.

use core::ptr::NonNull;

use super::{
    abi,
    errno::Errno,
    extents::{
        Cut,
        Extent,
        Segment, //
    },
    p2p::Device, //
};

/// A scatterlist that is being made, in one pass over the extents: how many entries it has is known
/// at their end.
pub(crate) struct Builder {
    list: List,
    cut: Cut,
}

impl Builder {
    /// For the bytes of `window` in the extents to come, in entries of at most `longest` bytes.
    pub(crate) fn new(window: Extent, longest: u32) -> Self {
        Self {
            // INVARIANT: An empty list.
            list: List(abi::nvpm_sg_list::default()),
            cut: Cut::new(window, longest),
        }
    }

    /// Adds what is in the window of the next extent.
    #[inline]
    pub(crate) fn extent(&mut self, extent: Extent) -> Result<(), Errno> {
        let Self { list, cut } = self;
        cut.extent(extent, |segment, more| list.push(segment, more))
    }

    /// The scatterlist. Fewer bytes than asked for would let the device use addresses that are not
    /// there: an error then.
    pub(crate) fn finish(self) -> Result<ScatterTable, Errno> {
        let mut list = self.list;
        let Some(sgl) = NonNull::new(list.0.table.sgl) else {
            return Err(Errno::IO);
        };
        if self.cut.left() != 0 {
            return Err(Errno::IO);
        }
        // SAFETY: By the invariant of `List`; where there is an array there is an entry.
        unsafe { abi::nvpm_sg_finish(&mut list.0) };
        // INVARIANT: Finished, and nobody else's from here on.
        let table = ScatterTable {
            sgl,
            entries: list.0.table.nents,
            first: list.0.first,
            mapped: None,
        };
        core::mem::forget(list);
        Ok(table)
    }
}

/// A list that grows.
///
/// # Invariants
///
/// Was zero at first and has only been changed by `nvpm_sg_grow`, which [`Self::push`] calls before
/// it adds an entry.
struct List(abi::nvpm_sg_list);

impl List {
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
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant; nobody else has seen the list.
        unsafe { abi::nvpm_sg_free(self.0.table.sgl, self.0.first) };
    }
}

/// A scatterlist that this module allocated and frees.
///
/// # Invariants
///
/// `sgl` is that of a finished list of so many `entries`, whose first array has `first` of them.
/// Where `mapped` names a device, they are what `nvpm_sg_map` made of them for it.
pub(crate) struct ScatterTable {
    sgl: NonNull<abi::scatterlist>,
    entries: u32,
    first: u32,
    mapped: Option<Device>,
}

// SAFETY: Nothing is bound to the thread that made it.
unsafe impl Send for ScatterTable {}

impl ScatterTable {
    /// The table as the core gets it. There are bus addresses in it and no pages: who looks for
    /// pages, to copy what is there, is to find none, not entries without one.
    pub(crate) fn for_core(&self) -> abi::sg_table {
        abi::sg_table {
            sgl: self.sgl.as_ptr(),
            nents: self.entries,
            orig_nents: 0,
        }
    }

    /// Maps what the entries say, which are physical addresses until then, for `device`. What is
    /// mapped is known by the entries alone.
    pub(crate) fn map(&mut self, device: Device) -> Result<(), Errno> {
        self.unmap();
        // SAFETY: By the type's invariant, and that of `Device`.
        Errno::check(unsafe {
            abi::nvpm_sg_map(device.as_ptr(), self.sgl.as_ptr(), self.entries)
        })?;
        // INVARIANT: Just mapped.
        self.mapped = Some(device);
        Ok(())
    }

    /// Undoes [`Self::map`]. The core may still look at the entries.
    pub(crate) fn unmap(&mut self) {
        if let Some(device) = self.mapped.take() {
            // SAFETY: By the type's invariant, once.
            unsafe { abi::nvpm_sg_unmap(device.as_ptr(), self.sgl.as_ptr(), self.entries) };
        }
    }
}

impl Drop for ScatterTable {
    fn drop(&mut self) {
        self.unmap();
        // SAFETY: By the type's invariant, and nothing uses the list any more: the core has
        // released the region, or never got it.
        unsafe { abi::nvpm_sg_free(self.sgl.as_ptr(), self.first) };
    }
}

#[cfg(nvpm_kunit)]
#[path = "kunit/scatter.rs"]
mod kunit;
