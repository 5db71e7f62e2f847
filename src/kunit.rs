// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Tests that run inside the kernel, because they check this module against the kernel's own
//! scatterlists and constants.
//!
//! The module contains the tests only if the kernel has KUnit (`build/in-kernel.mk`). The results
//! are in the kernel's log and in `/sys/kernel/debug/kunit/nv_peer_mem_*/results`.

use core::{
    iter::successors,
    mem::size_of,
    ptr::NonNull,
    sync::atomic::{AtomicI64, AtomicU32, Ordering},
};

use kernel::{bindings, prelude::*};

use crate::{
    abi::{self, ffi::c_int, page_size},
    device::Device,
    dma::Mapping,
    errno::{edquot, eopnotsupp, to_result},
    extents::{Extent, Extents, Range, GPU_PAGE},
    ratelimit::ratelimit,
};

#[kernel::macros::kunit_tests(nv_peer_mem_ratelimit)]
mod ratelimit_tests {
    use super::*;

    #[test]
    fn error_numbers_are_the_kernels() {
        assert_eq!(eopnotsupp().to_errno(), -(bindings::EOPNOTSUPP as i32));
        assert_eq!(edquot().to_errno(), -(bindings::EDQUOT as i32));
        let enotsupp = -(bindings::ENOTSUPP as i32);
        assert_eq!(to_result(enotsupp), Err(eopnotsupp()));
    }

    #[test]
    fn warnings_end() {
        // The rate limit allows 10 warnings in 5 seconds. Even a slow machine makes more than 10
        // calls in that time, so the limit must refuse one of these calls.
        let ended = (0..1000).any(|_| !ratelimit());
        // SAFETY: A test is running.
        unsafe { abi::nvpm_kunit_warn_again() };
        assert!(ended);
        assert!(ratelimit());
    }
}

/// The distance between a physical address and the bus address that the replaced DMA API returns
/// for it.
const OFFSET: u64 = 1 << 44;

// The replaced DMA API counts its calls in these variables.
static MAPPED: AtomicU32 = AtomicU32::new(0);
static UNMAPPED: AtomicU32 = AtomicU32::new(0);
static BALANCE: AtomicI64 = AtomicI64::new(0);
static FAILS_AFTER: AtomicU32 = AtomicU32::new(0);

/// Replaces the DMA API until the test's end. The replacement maps `fails_after` segments, and then
/// fails.
fn replace_dma(fails_after: u32) {
    MAPPED.store(0, Ordering::Relaxed);
    UNMAPPED.store(0, Ordering::Relaxed);
    BALANCE.store(0, Ordering::Relaxed);
    FAILS_AFTER.store(fails_after, Ordering::Relaxed);
    // SAFETY: A test is running. The only pointer that the functions follow is `addr`.
    unsafe { abi::nvpm_kunit_replace_dma(Some(dma_map), Some(dma_unmap)) };
}

/// Returns how many segments were mapped, and how many were unmapped. Also returns whether the
/// mapped segments were the same as the unmapped ones.
fn dma_calls() -> (u32, u32, bool) {
    (
        MAPPED.load(Ordering::Relaxed),
        UNMAPPED.load(Ordering::Relaxed),
        BALANCE.load(Ordering::Relaxed) == 0,
    )
}

/// Returns a number that is different for each segment of these tests. If the numbers of all mapped
/// segments and of all unmapped segments have the same sum, they are the same segments.
fn weight(address: u64, len: usize) -> i64 {
    (address as i64).wrapping_mul(31).wrapping_add(len as i64)
}

/// Replaces `nvpm_dma_map`.
///
/// # Safety
///
/// `addr` must be valid for writing.
unsafe extern "C" fn dma_map(
    _device: *mut abi::device,
    phys: u64,
    len: usize,
    addr: *mut u64,
) -> c_int {
    if MAPPED.load(Ordering::Relaxed) == FAILS_AFTER.load(Ordering::Relaxed) {
        return EIO.to_errno();
    }
    MAPPED.fetch_add(1, Ordering::Relaxed);
    BALANCE.fetch_add(weight(phys + OFFSET, len), Ordering::Relaxed);
    // SAFETY: By this function's requirement `addr` is valid for writing.
    unsafe { *addr = phys + OFFSET };
    0
}

/// Replaces `nvpm_dma_unmap`.
extern "C" fn dma_unmap(_device: *mut abi::device, addr: u64, len: usize) {
    UNMAPPED.fetch_add(1, Ordering::Relaxed);
    BALANCE.fetch_sub(weight(addr, len), Ordering::Relaxed);
}

/// Returns the physical address of GPU page `page`. No page follows another page directly, so each
/// page is one extent.
fn physical(page: u32) -> u64 {
    u64::from(page) << 32
}

/// Maps a number of GPU pages for a PCI device. The machine that runs these tests has no IOMMU.
fn mapped(pages: u32) -> Result<Mapping> {
    // SAFETY: A test is running.
    let device = unsafe { abi::nvpm_kunit_pci_device() };
    // SAFETY: The pointer is NULL or to a device that KUnit keeps until the test's end.
    let device = unsafe { Device::from_raw(device) }?;
    let mut addresses = KVVec::new();
    for page in 1..=pages {
        addresses.push(physical(page), GFP_KERNEL)?;
    }
    let extents = Extents::collect(&addresses, GPU_PAGE, |&address| address)?;
    let range = Range::new(0, u64::from(pages) * GPU_PAGE).ok_or(EINVAL)?;
    Mapping::new(device, &extents, &range)
}

/// Reads `table` as the RDMA core does, up to the entry that is marked as the last one.
fn read(table: &abi::sg_table) -> impl Iterator<Item = Extent> {
    let first = NonNull::new(table.sgl.cast::<bindings::scatterlist>());
    successors(first, |entry| {
        // SAFETY: The pointer is to an entry of the table's list, which exists because the caller
        // keeps the mapping.
        NonNull::new(unsafe { bindings::sg_next(entry.as_ptr()) })
    })
    .map(|entry| Extent {
        // SAFETY: The pointer is to an entry of the table's list, which exists because the caller
        // keeps the mapping.
        start: unsafe { bindings::sg_dma_address(entry.as_ptr()) },
        // SAFETY: The pointer is to an entry of the table's list, which exists because the caller
        // keeps the mapping.
        len: u64::from(unsafe { bindings::sg_dma_len(entry.as_ptr()) }),
    })
}

/// Returns the number of scatterlist entries that fit in a page of the kernel. The kernel makes a
/// longer list as a chain of arrays.
fn entries_of_a_page() -> u32 {
    page_size() as u32 / size_of::<bindings::scatterlist>() as u32
}

#[kernel::macros::kunit_tests(nv_peer_mem_dma)]
mod dma_tests {
    use super::*;

    #[test]
    fn a_list_of_any_length_is_mapped_read_and_unmapped() -> Result {
        let page = entries_of_a_page();
        for pages in [1, page - 1, page, page + 1, 8 * page] {
            replace_dma(u32::MAX);
            let mapping = mapped(pages)?;
            let table = mapping.for_core();
            assert_eq!(table.nents, pages);
            assert_eq!(table.orig_nents, 0);
            assert!(read(&table).eq((1..=pages).map(|page| Extent {
                start: physical(page) + OFFSET,
                len: GPU_PAGE,
            })));
            assert_eq!(dma_calls(), (pages, 0, false));
            let list = mapping.unmap();
            assert_eq!(dma_calls(), (pages, pages, true));
            drop(list);
            assert_eq!(dma_calls(), (pages, pages, true));
        }
        Ok(())
    }

    #[test]
    fn a_failure_unmaps_what_was_mapped_before() {
        let mapped_before = entries_of_a_page() + 1;
        replace_dma(mapped_before);
        assert_eq!(mapped(2 * mapped_before).err(), Some(EIO));
        assert_eq!(dma_calls(), (mapped_before, mapped_before, true));
    }
}
