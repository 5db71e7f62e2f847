// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Addresses, memory and the mapping of one to the other as separate things.
//!
//! Memory that was made has an address from the driver, which the program never
//! learns; each mapping is a further address of it. What is pinned of a mapping
//! is revoked when that is unmapped; the memory goes with its handle and with the
//! last mapping.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::slice;
use std::sync::{Mutex, MutexGuard};

use crate::error::Result;
use crate::gpu::{self, gpu, Where, BLOCK};
use crate::handles::{around, fresh, overlaps};
use crate::memory::{fresh_id, memory, Buffer};
use crate::sys::{
    self, CUdeviceptr, CUmemAccessDesc, CUmemAllocationProp, CUmemGenericAllocationHandle, CUresult,
};
use crate::{answer, ensure, locked, required, space};

#[derive(Clone, Copy)]
struct Physical {
    /// The address that the driver knows it by.
    hidden: u64,
    size: u64,
    bar_offset: u64,
    prop: CUmemAllocationProp,
    references: u32,
}

// SAFETY: the one pointer in it, of another operating system, is never followed.
unsafe impl Send for Physical {}

struct Vmm {
    /// Sizes of reservations by their start.
    reserved: BTreeMap<u64, u64>,
    physical: BTreeMap<u64, Physical>,
    /// Which memory is mapped where.
    mapped: BTreeMap<u64, u64>,
}

static VMM: Mutex<Vmm> = Mutex::new(Vmm {
    reserved: BTreeMap::new(),
    physical: BTreeMap::new(),
    mapped: BTreeMap::new(),
});

/// Addresses and sizes are of whole blocks.
fn whole(numbers: &[u64]) -> Result {
    ensure(
        numbers.iter().all(|number| number % BLOCK == 0),
        sys::CUDA_ERROR_INVALID_VALUE,
    )
}

fn vmm() -> Result<MutexGuard<'static, Vmm>> {
    gpu()?;
    Ok(locked(&VMM))
}

fn check_prop(prop: Option<&CUmemAllocationProp>) -> Result<&CUmemAllocationProp> {
    let prop = required(prop)?;
    ensure(
        prop.type_ == sys::CU_MEM_ALLOCATION_TYPE_PINNED,
        sys::CUDA_ERROR_INVALID_VALUE,
    )?;
    ensure(
        prop.location.type_ == sys::CU_MEM_LOCATION_TYPE_DEVICE
            && prop.requestedHandleTypes == sys::CU_MEM_HANDLE_TYPE_NONE,
        sys::CUDA_ERROR_NOT_SUPPORTED,
    )?;
    ensure(prop.location.id == 0, sys::CUDA_ERROR_INVALID_DEVICE)?;
    Ok(prop)
}

impl Vmm {
    /// The mappings that make up exactly this range.
    fn mappings(&self, address: u64, size: u64) -> Result<Vec<(u64, u64)>> {
        let memory = memory();
        let mut found = Vec::new();
        let mut at = address;
        while at < address + size {
            let buffer = self.mapped.get(&at).and_then(|_| memory.buffers.get(&at));
            let buffer = buffer.ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
            found.push((at, buffer.size));
            at += buffer.size;
        }
        ensure(
            at == address + size && size > 0,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        Ok(found)
    }
}

#[no_mangle]
pub extern "C" fn cuMemGetAllocationGranularity(
    granularity: Option<&mut usize>,
    prop: Option<&CUmemAllocationProp>,
    _option: u32,
) -> CUresult {
    answer(|| {
        gpu()?;
        check_prop(prop)?;
        *required(granularity)? = BLOCK as usize;
        Ok(())
    })
}

/// The hint is not taken, as CUDA may do.
#[no_mangle]
pub extern "C" fn cuMemAddressReserve(
    address: Option<&mut CUdeviceptr>,
    size: usize,
    alignment: usize,
    _hint: CUdeviceptr,
    flags: u64,
) -> CUresult {
    answer(|| {
        let place = required(address)?;
        let mut vmm = vmm()?;
        let size = size as u64;
        whole(&[size])?;
        ensure(
            size > 0 && flags == 0 && (alignment == 0 || alignment.is_power_of_two()),
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        let start = space::take(size, BLOCK.max(alignment as u64), |start| {
            gpu::reserve(start, size, false)
        })?;
        vmm.reserved.insert(start, size);
        *place = start;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemAddressFree(address: CUdeviceptr, size: usize) -> CUresult {
    answer(|| {
        let mut vmm = vmm()?;
        let size = size as u64;
        ensure(
            vmm.reserved.get(&address) == Some(&size)
                && vmm.mapped.range(address..address + size).next().is_none(),
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        gpu::unmap(address, size).map_err(|_| sys::CUDA_ERROR_OPERATING_SYSTEM)?;
        vmm.reserved.remove(&address);
        space::give(address);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemCreate(
    handle: Option<&mut CUmemGenericAllocationHandle>,
    size: usize,
    prop: Option<&CUmemAllocationProp>,
    flags: u64,
) -> CUresult {
    answer(|| {
        let place = required(handle)?;
        let mut vmm = vmm()?;
        let prop = *check_prop(prop)?;
        let size = size as u64;
        whole(&[size])?;
        ensure(size > 0 && flags == 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        let p2p = prop.allocFlags.gpuDirectRDMACapable != 0;
        let hidden = gpu()?
            .map(0, size, Where::Fresh { p2p }, false)
            .map_err(|_| sys::CUDA_ERROR_OUT_OF_MEMORY)?;
        let bar_offset = gpu()?
            .bar_offset(hidden)
            .map_err(|_| sys::CUDA_ERROR_OPERATING_SYSTEM)?;
        let physical = Physical {
            hidden,
            size,
            bar_offset,
            prop,
            references: 1,
        };
        *place = fresh();
        vmm.physical.insert(*place, physical);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemRelease(handle: CUmemGenericAllocationHandle) -> CUresult {
    answer(|| {
        let mut vmm = vmm()?;
        let physical = vmm
            .physical
            .get_mut(&handle)
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        physical.references -= 1;
        if physical.references == 0 {
            let Physical { hidden, size, .. } = *physical;
            vmm.physical.remove(&handle);
            gpu::unmap(hidden, size).map_err(|_| sys::CUDA_ERROR_OPERATING_SYSTEM)?;
        }
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemRetainAllocationHandle(
    handle: Option<&mut CUmemGenericAllocationHandle>,
    address: *mut c_void,
) -> CUresult {
    answer(|| {
        let place = required(handle)?;
        let mut vmm = vmm()?;
        let start = {
            let memory = memory();
            around(&memory.buffers, address as u64, |buffer| buffer.size).map(|(start, _)| start)
        };
        let found = start.and_then(|start| vmm.mapped.get(&start)).copied();
        let found = found.ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        // A handle that was released is not given out again here.
        let physical = vmm.physical.get_mut(&found);
        physical.ok_or(sys::CUDA_ERROR_NOT_SUPPORTED)?.references += 1;
        *place = found;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemGetAllocationPropertiesFromHandle(
    prop: Option<&mut CUmemAllocationProp>,
    handle: CUmemGenericAllocationHandle,
) -> CUresult {
    answer(|| {
        let place = required(prop)?;
        let vmm = vmm()?;
        let physical = vmm.physical.get(&handle);
        *place = physical.ok_or(sys::CUDA_ERROR_INVALID_VALUE)?.prop;
        Ok(())
    })
}

/// All of what was made: more than that CUDA does not map, and a part is not mapped here.
#[no_mangle]
pub extern "C" fn cuMemMap(
    address: CUdeviceptr,
    size: usize,
    offset: usize,
    handle: CUmemGenericAllocationHandle,
    flags: u64,
) -> CUresult {
    answer(|| {
        let mut vmm = vmm()?;
        let size = size as u64;
        let physical = *vmm
            .physical
            .get(&handle)
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        whole(&[address, size])?;
        ensure(flags == 0 && size > 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        ensure(
            offset == 0 && size == physical.size,
            sys::CUDA_ERROR_NOT_SUPPORTED,
        )?;
        let (start, length) = around(&vmm.reserved, address, |size| *size)
            .map(|(start, &length)| (start, length))
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        let mut memory = memory();
        ensure(
            size <= start + length - address
                && !overlaps(&memory.buffers, address, size, |buffer| buffer.size),
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        let p2p = physical.prop.allocFlags.gpuDirectRDMACapable != 0;
        let bar_offset = physical.bar_offset;
        gpu()?
            .map(address, size, Where::Again { bar_offset, p2p }, true)
            .map_err(|_| sys::CUDA_ERROR_MAP_FAILED)?;
        vmm.mapped.insert(address, handle);
        let buffer = Buffer {
            size,
            context: None,
            id: fresh_id(),
            sync_memops: false,
            p2p,
            readable: false,
            writable: false,
        };
        memory.buffers.insert(address, buffer);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemUnmap(address: CUdeviceptr, size: usize) -> CUresult {
    answer(|| {
        let mut vmm = vmm()?;
        for (start, length) in vmm.mappings(address, size as u64)? {
            gpu::reserve(start, length, true).map_err(|_| sys::CUDA_ERROR_UNMAP_FAILED)?;
            memory().buffers.remove(&start);
            vmm.mapped.remove(&start);
        }
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuMemSetAccess(
    address: CUdeviceptr,
    size: usize,
    access: *const CUmemAccessDesc,
    count: usize,
) -> CUresult {
    answer(|| {
        let vmm = vmm()?;
        ensure(
            !access.is_null() && count == 1,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        // SAFETY: the caller's array of so many.
        let access = unsafe { slice::from_raw_parts(access, count) };
        for desc in access {
            ensure(
                desc.location.type_ == sys::CU_MEM_LOCATION_TYPE_DEVICE && desc.location.id == 0,
                sys::CUDA_ERROR_INVALID_DEVICE,
            )?;
            for (start, _) in vmm.mappings(address, size as u64)? {
                if let Some(buffer) = memory().buffers.get_mut(&start) {
                    buffer.readable = desc.flags & sys::CU_MEM_ACCESS_FLAGS_PROT_READ != 0;
                    buffer.writable = desc.flags == sys::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
                }
            }
        }
        Ok(())
    })
}
