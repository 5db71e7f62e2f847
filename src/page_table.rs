// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The driver describes pinned memory by page tables and DMA mappings. This file reads them and
//! checks their values.
//!
//! C header: `nv-p2p.h`.

use core::{
    marker::PhantomData,
    ptr::{null_mut, NonNull},
    slice,
};

use kernel::prelude::*;

use crate::{
    abi,
    device::{Device, DeviceRef},
    errno::{eopnotsupp, number, to_result},
    extents::{Extents, Range},
    ratelimit::pr_warn_ratelimited,
};

/// The UUID of a GPU, or zeros if the driver does not report the UUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub(crate) struct Gpu(pub(crate) [u8; 16]);

/// A page table of the driver.
///
/// # Invariants
///
/// The table came from a successful call to pin. The driver may free the table at any later time.
/// Every function that reads the table therefore requires that the driver does not free the table
/// during the call.
#[derive(Clone, Copy)]
pub(crate) struct PageTable(NonNull<abi::nvidia_p2p_page_table>);

// SAFETY: As long as the driver has not freed the table, any thread may follow the pointer.
unsafe impl Send for PageTable {}

impl PageTable {
    /// Converts the pointer that the driver has stored. Returns [`None`] if the pointer is NULL.
    ///
    /// # Safety
    ///
    /// The call to pin must have succeeded.
    pub(crate) unsafe fn from_driver(table: *mut abi::nvidia_p2p_page_table) -> Option<Self> {
        // INVARIANT: By this function's requirement the call to pin has succeeded.
        NonNull::new(table).map(Self)
    }

    pub(crate) fn as_ptr(self) -> *mut abi::nvidia_p2p_page_table {
        self.0.as_ptr()
    }

    /// Returns the physical addresses of the pages, as extents.
    ///
    /// # Safety
    ///
    /// The driver must not free the table during the call.
    pub(crate) unsafe fn extents(&self, range: &Range) -> Result<Extents> {
        // SAFETY: By the type's invariant the pointer is to a table of the driver. By this
        // function's requirement the driver does not free the table during the call.
        let table = unsafe { self.0.as_ref() };
        // SAFETY: `table` is a reference, so it is valid for reading.
        if !unsafe { abi::nvpm_page_table_known(table) } {
            return Err(unknown_version("page table", table.version));
        }
        let (page, entries) = page_size("pinned", table.page_size, table.entries, range)?;
        if table.pages.is_null() {
            return Err(EIO);
        }
        // SAFETY: The driver's `pages` has `entries` pointers for as long as the table exists.
        let pages = unsafe { slice::from_raw_parts(table.pages, entries) };
        Extents::collect(pages, page, |&entry| {
            // SAFETY: Each pointer is to an object of the driver that exists as long as the table.
            unsafe { (*entry).physical_address }
        })
    }

    /// Tells whether the memory is behind a coherent link. The kernel treats such memory as RAM, so
    /// this module must not map it as memory of a device. Returns an error if the kernel has not
    /// onlined the memory yet, because until then neither this module nor the driver can map the
    /// memory.
    ///
    /// # Safety
    ///
    /// [`Self::extents`] must have succeeded, and the driver must not free the table before this
    /// function returns.
    unsafe fn is_coherent(&self) -> Result<bool> {
        // SAFETY: By this function's requirement the driver does not free the table during the
        // call, and `extents` has checked the table's version and pages.
        let coherent = unsafe { abi::nvpm_page_table_coherent(self.0.as_ptr()) };
        if coherent < 0 {
            pr_warn_ratelimited!("GPU memory behind a coherent link is not online: nothing can reach it before the driver has given it to the kernel (numactl -H shows the GPU's node; nvidia-persistenced brings it online)\n");
        }
        to_result(coherent.min(0))?;
        Ok(coherent > 0)
    }

    /// Returns the physical addresses of the pages, and whether the memory is behind a coherent
    /// link.
    ///
    /// # Safety
    ///
    /// The driver must not free the table during the call.
    pub(crate) unsafe fn location(&self, range: &Range) -> Result<(Extents, bool)> {
        // SAFETY: By this function's requirement the driver does not free the table during the
        // call.
        let extents = unsafe { self.extents(range) }?;
        // SAFETY: By this function's requirement the driver does not free the table during the
        // call. `extents` has succeeded.
        let coherent = unsafe { self.is_coherent() }?;
        Ok((extents, coherent))
    }

    /// Lets the driver map the pages for `device`.
    ///
    /// # Safety
    ///
    /// The driver must not free the table before the result is dropped.
    pub(crate) unsafe fn map<'a>(&self, device: Device<'_>) -> Result<DriverMapping<'a>> {
        let mut mapping = null_mut();
        // SAFETY: By the invariant of `Device`, the device exists. By this function's requirement,
        // the table exists. `mapping` is valid for the driver to store a pointer.
        to_result(unsafe {
            abi::nvidia_p2p_dma_map_pages(device.as_pci(), self.as_ptr(), &mut mapping)
        })?;
        // INVARIANT: The driver has just made the mapping from the table for this device. By this
        // function's requirement, the table exists as long as the result.
        Ok(DriverMapping {
            mapping: NonNull::new(mapping).ok_or(EIO)?,
            table: *self,
            device: DeviceRef::new(device),
            _table: PhantomData,
        })
    }

    /// Returns the GPU that has the memory.
    ///
    /// # Safety
    ///
    /// The driver must not free the table during the call.
    pub(crate) unsafe fn gpu(&self) -> Gpu {
        // SAFETY: By this function's requirement the driver does not free the table during the
        // call.
        let uuid = unsafe { abi::nvpm_page_table_uuid(self.0.as_ptr()) };
        // SAFETY: The pointer is NULL, or is valid for reading 16 bytes as long as the table
        // exists.
        unsafe { uuid.cast::<Gpu>().as_ref() }
            .copied()
            .unwrap_or_default()
    }
}

/// Logs that the driver's object has a version that this module does not know, and returns the
/// error for the user.
fn unknown_version(made: &str, version: u32) -> Error {
    pr_warn_ratelimited!(
        "the NVIDIA driver's {made} has version {version:#x}, which this module does not know; install a version of nv_peer_mem that fits the driver\n"
    );
    eopnotsupp()
}

/// Returns the page size in bytes and the number of pages, as the driver has reported them. Returns
/// an error if this module does not know the page size, or if the pages together are not as long as
/// the pinned range. `done` is the verb for the message in the log: "pinned" or "mapped".
fn page_size(done: &str, kind: u32, entries: u32, range: &Range) -> Result<(u64, usize)> {
    let page: u64 = match kind {
        abi::NVIDIA_P2P_PAGE_SIZE_4KB => 4 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_64KB => 64 << 10,
        abi::NVIDIA_P2P_PAGE_SIZE_128KB => 128 << 10,
        _ => {
            pr_warn_ratelimited!(
                "the NVIDIA driver's page size type {kind} is unknown to this module\n"
            );
            return Err(eopnotsupp());
        }
    };
    if u64::from(entries).checked_mul(page) != Some(range.pinned_len()) {
        pr_warn_ratelimited!(
            "the NVIDIA driver {done} {entries} pages of {page} bytes for a range of {} bytes\n",
            range.pinned_len()
        );
        return Err(EIO);
    }
    let entries = usize::try_from(entries).map_err(|_| EIO)?;
    Ok((page, entries))
}

/// The driver's mapping of the pages of a table that exists for `'a`. Dropping this object lets the
/// driver undo the mapping.
///
/// # Invariants
///
/// The driver has made `mapping` from `table` for `device`, and was not asked to undo the mapping.
/// The driver does not free `table` before this object is dropped.
pub(crate) struct DriverMapping<'a> {
    mapping: NonNull<abi::nvidia_p2p_dma_mapping>,
    table: PageTable,
    device: DeviceRef,
    _table: PhantomData<&'a PageTable>,
}

// SAFETY: The driver lets any task undo a mapping, and does not change the mapping before.
unsafe impl Send for DriverMapping<'_> {}

impl DriverMapping<'_> {
    pub(crate) fn device(&self) -> Device<'_> {
        self.device.get()
    }

    /// Returns the bus addresses to which the driver has mapped `range`, as extents.
    pub(crate) fn extents(&self, range: &Range) -> Result<Extents> {
        // SAFETY: By the type's invariant the driver has made the mapping, and has not undone it.
        let mapping = unsafe { self.mapping.as_ref() };
        // SAFETY: `mapping` is a reference, so it is valid for reading.
        if !unsafe { abi::nvpm_dma_mapping_known(mapping) } {
            return Err(unknown_version("DMA mapping", mapping.version));
        }
        let (page, entries) = page_size("mapped", mapping.page_size_type, mapping.entries, range)?;
        if mapping.dma_addresses.is_null() {
            return Err(EIO);
        }
        // SAFETY: The driver's `dma_addresses` has `entries` words for as long as the mapping
        // exists.
        let addresses = unsafe { slice::from_raw_parts(mapping.dma_addresses, entries) };
        Extents::collect(addresses, page, |&address| address)
    }
}

impl Drop for DriverMapping<'_> {
    fn drop(&mut self) {
        let device = self.device.get().as_pci();
        // SAFETY: By the type's invariant the mapping was made from this table for this device, and
        // was not undone before. `self` has a reference to the device, and the table still exists.
        let ret = unsafe {
            abi::nvidia_p2p_dma_unmap_pages(device, self.table.as_ptr(), self.mapping.as_ptr())
        };
        if let Err(error) = to_result(ret) {
            pr_warn_ratelimited!(
                "the NVIDIA driver did not unmap GPU memory (error {})\n",
                number(&error)
            );
        }
    }
}
