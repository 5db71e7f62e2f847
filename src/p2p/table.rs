// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The driver's page table: what it says of pinned memory.

use core::{
    ptr::NonNull,
    slice, //
};

use super::{
    pieces::Pieces,
    verdict::Gpu, //
};
use crate::{
    abi,
    errno::Errno,
    extents::{
        runs,
        Extent,
        Range, //
    },
    rt::{
        self,
        complain, //
    }, //
};

/// A page table of the driver.
///
/// # Invariants
///
/// Came from a successful call to pin. Whoever reads it must know that the driver has not freed it.
#[derive(Clone, Copy)]
pub(super) struct PageTable(pub(super) NonNull<abi::nvidia_p2p_page_table>);

impl PageTable {
    /// Gives the pages to `each`, as extents of physical addresses, neighbours merged.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    pub(super) unsafe fn extents(
        &self,
        range: &Range,
        each: impl FnMut(Extent) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        // SAFETY: By the type's invariant and this function's requirement the table is alive.
        let table = unsafe { self.0.as_ref() };
        // SAFETY: A reference is a valid pointer.
        if !unsafe { abi::nvpm_page_table_known(table) } {
            complain!(
                "the NVIDIA driver's page table has version {:#x}, which this module does not know; install a version that fits the driver\n",
                table.version
            );
            return Err(Errno::OPNOTSUPP);
        }
        let (page, entries) = whole("pinned", table.page_size, table.entries, range)?;
        if table.pages.is_null() {
            return Err(Errno::IO);
        }
        // SAFETY: The driver's `pages` has `entries` pointers, each to a page, for as long as the
        // table is alive.
        let pages = unsafe { slice::from_raw_parts(table.pages, entries) };
        let address = |&entry: &*mut abi::nvidia_p2p_page| {
            // SAFETY: As above.
            unsafe { (*entry).physical_address }
        };
        runs(pages, page, address, rt::give_way, each)
    }
}

impl PageTable {
    /// Where the pages are, copied.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    pub(super) unsafe fn pieces(&self, range: &Range) -> Result<Pieces, Errno> {
        let mut pieces = Pieces::new();
        // SAFETY: By this function's requirement.
        unsafe { self.extents(range, |extent| pieces.push(extent, range.pinned())) }?;
        Ok(pieces)
    }

    /// Whether it is memory behind a coherent link: RAM to the kernel, and nothing that is mapped
    /// as a device's memory is. An error if the kernel has not brought it online: neither we nor
    /// the driver can map it then.
    ///
    /// # Safety
    ///
    /// As above; and [`Self::pieces`] has found the table in order.
    pub(super) unsafe fn coherent(&self) -> Result<bool, Errno> {
        // SAFETY: By this function's requirement.
        let coherent = unsafe { abi::nvpm_page_table_coherent(self.0.as_ptr()) };
        if coherent < 0 {
            complain!("GPU memory behind a coherent link is not online: nothing can reach it before the driver has given it to the kernel (numactl -H shows the GPU's node; nvidia-persistenced brings it online)\n");
        }
        Errno::check(coherent.min(0))?;
        Ok(coherent > 0)
    }

    /// The GPU whose memory it is.
    ///
    /// # Safety
    ///
    /// The driver must not free the table meanwhile.
    pub(super) unsafe fn gpu(&self) -> Result<Gpu, Errno> {
        // SAFETY: By this function's requirement; the UUID hangs on the table.
        unsafe { Gpu::from_uuid(abi::nvpm_page_table_gpu(self.0.as_ptr())) }
    }
}

/// Bytes of a page and number of pages, of what the driver says it has `done` with the range: all
/// of it, or an error.
pub(super) fn whole(
    done: &str,
    kind: u32,
    entries: u32,
    range: &Range,
) -> Result<(u64, usize), Errno> {
    let page: u64 = match kind {
        abi::NVIDIA_P2P_PAGE_SIZE_4KB => 4 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_64KB => 64 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_128KB => 128 << 10,
        _ => {
            complain!("the NVIDIA driver's page size {kind} is not one that this module knows\n");
            return Err(Errno::OPNOTSUPP);
        }
    };
    if u64::from(entries).checked_mul(page) != Some(range.pinned()) {
        complain!(
            "the NVIDIA driver {done} {entries} pages of {page} bytes for {} bytes\n",
            range.pinned()
        );
        return Err(Errno::IO);
    }
    let entries = usize::try_from(entries).map_err(|_| Errno::IO)?;
    Ok((page, entries))
}
