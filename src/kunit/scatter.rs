// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests of scatterlists, read back as the RDMA core and drivers read them.

use core::{
    iter::successors,
    mem::size_of,
    ptr::NonNull, //
};

use super::*;
use crate::{
    extents::{
        longest_segment,
        Range,
        GPU_PAGE, //
    },
    rt::page_size, //
};
use kernel::bindings;

/// The list of all of `extents`.
fn list(extents: impl Iterator<Item = Extent>, total: u64) -> Result<ScatterTable, Errno> {
    let window = Extent {
        start: 0,
        len: total,
    };
    let mut builder = Builder::new(window, u32::MAX);
    for extent in extents {
        builder.extent(extent)?;
    }
    builder.finish()
}

/// What the list of `table` says, up to the entry that is marked as the last.
fn read(table: &abi::sg_table) -> impl Iterator<Item = Extent> {
    let first = NonNull::new(table.sgl.cast::<bindings::scatterlist>());
    successors(first, |entry| {
        // SAFETY: Each is an entry of a list that is alive.
        NonNull::new(unsafe { bindings::sg_next(entry.as_ptr()) })
    })
    .map(|entry| Extent {
        // SAFETY: As above.
        start: unsafe { bindings::sg_dma_address(entry.as_ptr()) },
        // SAFETY: As above.
        len: u64::from(unsafe { bindings::sg_dma_len(entry.as_ptr()) }),
    })
}

/// Pieces of memory far from each other, each longer than the one before.
fn pieces(number: u64) -> impl Iterator<Item = Extent> + Clone {
    (1..=number).map(|piece| Extent {
        start: piece << 32,
        len: piece * page_size(),
    })
}

fn total(pieces: impl Iterator<Item = Extent>) -> u64 {
    pieces.map(|piece| piece.len).sum()
}

/// Entries that fit the kernel's unit of allocation: a longer list is a chain of such arrays,
/// each of which but the last gives one entry away for the link.
fn entries_of_an_array() -> u64 {
    page_size() / size_of::<bindings::scatterlist>() as u64
}

#[kernel::macros::kunit_tests(nv_peer_mem_scatter)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_is_whole() -> Result<(), Errno> {
        let array = entries_of_an_array();
        for number in [1, array - 1, array, array + 1, 8 * array] {
            let table = list(pieces(number), total(pieces(number)))?;
            let core = table.for_core();
            assert!(read(&core).eq(pieces(number)));
            assert_eq!(u64::from(core.nents), number);
            assert_eq!(core.orig_nents, 0);
        }
        Ok(())
    }

    #[test]
    fn a_total_that_is_not_there_is_refused() {
        let all = total(pieces(3));
        assert_eq!(list(pieces(3), all + 1).err(), Some(Errno::IO));
        assert_eq!(list(pieces(3), 0).err(), Some(Errno::IO));
    }

    #[test]
    fn an_empty_list_is_refused() {
        assert_eq!(list(pieces(0), 0).err(), Some(Errno::IO));
    }

    #[test]
    fn a_length_of_more_than_32_bits_is_several_entries() -> Result<(), Errno> {
        let long = Extent {
            start: 1 << 40,
            len: 1 << 32,
        };
        let table = list([long].into_iter(), long.len)?;
        assert_eq!(table.for_core().nents, 2);
        assert_eq!(total(read(&table.for_core())), long.len);
        Ok(())
    }

    #[test]
    fn a_region_is_listed_in_whole_pages_of_the_kernel() -> Result<(), Errno> {
        let page = page_size();
        // Two bytes, of which one is the last of the first page of a pin.
        let range = Range::new(GPU_PAGE + page - 1, 2).ok_or(Errno::INVAL)?;
        let window = range.window(page).ok_or(Errno::INVAL)?;
        let pin = Extent {
            start: 1 << 40,
            len: range.pinned(),
        };
        let mut builder = Builder::new(window, longest_segment(u32::MAX, page));
        builder.extent(pin)?;
        let table = builder.finish()?;
        let seen = Extent {
            start: pin.start,
            len: 2 * page,
        };
        assert!(read(&table.for_core()).eq([seen]));
        Ok(())
    }
}
