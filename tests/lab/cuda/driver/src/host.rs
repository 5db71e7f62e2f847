// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Memory of the CPU that the GPU can reach. Its address is the same for both.

use std::alloc::{self, Layout};
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr;
use std::sync::Mutex;

use crate::context;
use crate::error::Result;
use crate::handles::{around, overlaps};
use crate::sys::{self, CUdeviceptr, CUresult};
use crate::{answer, ensure, locked, required};

const PAGE: usize = 4096;

pub struct Host {
    size: u64,
    flags: u32,
    pub context: u64,
    /// Whether we have allocated it, or the program has registered its own.
    ours: bool,
}

static HOST: Mutex<BTreeMap<u64, Host>> = Mutex::new(BTreeMap::new());

/// The context, the start and the size of such memory around an address.
pub fn range_at(address: u64) -> Option<(u64, u64, u64)> {
    let host = locked(&HOST);
    let (start, range) = around(&host, address, |range| range.size)?;
    Some((range.context, start, range.size))
}

/// Whether the GPU can reach all of these bytes.
pub fn reachable(address: u64, size: u64) -> bool {
    range_at(address).is_some_and(|(_, start, length)| address - start + size <= length)
}

fn add(address: u64, size: u64, flags: u32, ours: bool) -> Result {
    let context = context::current()?.handle;
    let mut host = locked(&HOST);
    ensure(
        !overlaps(&host, address, size, |range| range.size),
        sys::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED,
    )?;
    let range = Host {
        size,
        flags,
        context,
        ours,
    };
    host.insert(address, range);
    Ok(())
}

fn layout(size: u64) -> Result<Layout> {
    Layout::from_size_align(size as usize, PAGE).map_err(|_| sys::CUDA_ERROR_OUT_OF_MEMORY)
}

fn allocate(place: Option<&mut *mut c_void>, size: usize, flags: u32) -> Result {
    let known = sys::CU_MEMHOSTALLOC_PORTABLE
        | sys::CU_MEMHOSTALLOC_DEVICEMAP
        | sys::CU_MEMHOSTALLOC_WRITECOMBINED;
    let place = required(place)?;
    context::current()?;
    ensure(
        size > 0 && flags & !known == 0,
        sys::CUDA_ERROR_INVALID_VALUE,
    )?;
    // SAFETY: not of no bytes.
    let memory = unsafe { alloc::alloc_zeroed(layout(size as u64)?) };
    ensure(!memory.is_null(), sys::CUDA_ERROR_OUT_OF_MEMORY)?;
    add(memory.expose_provenance() as u64, size as u64, flags, true)?;
    *place = memory.cast();
    Ok(())
}

/// Forgets a range, if it is of that kind and starts there.
fn remove(address: u64, ours: bool, error: CUresult) -> Result<Host> {
    context::current()?;
    let mut host = locked(&HOST);
    ensure(
        host.get(&address).is_some_and(|range| range.ours == ours),
        error,
    )?;
    host.remove(&address).ok_or(error)
}

fn release(address: u64, range: &Host) {
    if let (true, Ok(layout)) = (range.ours, layout(range.size)) {
        let memory = ptr::with_exposed_provenance_mut::<u8>(address as usize);
        // SAFETY: allocated by allocate() with the same layout, and just forgotten.
        unsafe { alloc::dealloc(memory, layout) };
    }
}

/// What a context that ends has left.
pub fn free_all_of(context: u64) {
    locked(&HOST).retain(|&address, range| {
        if range.context == context {
            release(address, range);
        }
        range.context != context
    });
}

#[no_mangle]
pub extern "C" fn cuMemHostAlloc(
    address: Option<&mut *mut c_void>,
    size: usize,
    flags: u32,
) -> CUresult {
    answer(|| allocate(address, size, flags))
}

#[no_mangle]
pub extern "C" fn cuMemAllocHost_v2(address: Option<&mut *mut c_void>, size: usize) -> CUresult {
    answer(|| allocate(address, size, 0))
}

#[no_mangle]
pub extern "C" fn cuMemFreeHost(address: *mut c_void) -> CUresult {
    answer(|| {
        let range = remove(address as u64, true, sys::CUDA_ERROR_INVALID_VALUE)?;
        release(address as u64, &range);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemHostRegister_v2(address: *mut c_void, size: usize, flags: u32) -> CUresult {
    answer(|| {
        let known = sys::CU_MEMHOSTREGISTER_PORTABLE
            | sys::CU_MEMHOSTREGISTER_DEVICEMAP
            | sys::CU_MEMHOSTREGISTER_IOMEMORY
            | sys::CU_MEMHOSTREGISTER_READ_ONLY;
        ensure(
            !address.is_null() && size > 0 && flags & !known == 0,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        add(address as u64, size as u64, flags, false)
    })
}

#[no_mangle]
pub extern "C" fn cuMemHostUnregister(address: *mut c_void) -> CUresult {
    answer(|| {
        let error = sys::CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
        remove(address as u64, false, error).map(|_| ())
    })
}

#[no_mangle]
pub extern "C" fn cuMemHostGetDevicePointer_v2(
    device: Option<&mut CUdeviceptr>,
    address: *mut c_void,
    flags: u32,
) -> CUresult {
    answer(|| {
        let place = required(device)?;
        context::current()?;
        ensure(
            flags == 0 && reachable(address as u64, 1),
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        *place = address as u64;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemHostGetFlags(flags: Option<&mut u32>, address: *mut c_void) -> CUresult {
    answer(|| {
        let place = required(flags)?;
        context::current()?;
        let host = locked(&HOST);
        let (_, range) = around(&host, address as u64, |range| range.size)
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        *place = range.flags;
        Ok(())
    })
}

/// A word that the program may change while we look.
///
/// # Safety
///
/// It is aligned, and in memory that is [`reachable`].
pub unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: by the caller's promise.
    unsafe { ptr::with_exposed_provenance::<T>(address as usize).read_volatile() }
}

/// # Safety
///
/// It is aligned, and in memory that is [`reachable`].
pub unsafe fn write<T: Copy>(address: u64, value: T) {
    // SAFETY: by the caller's promise.
    unsafe { ptr::with_exposed_provenance_mut::<T>(address as usize).write_volatile(value) }
}
