// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What is known of an address.

use std::ffi::c_void;
use std::slice;

use crate::error::Result;
use crate::gpu::gpu;
use crate::memory::{buffer_at, memory, Buffer};
use crate::sys::{self, CUdeviceptr, CUpointer_attribute, CUresult};
use crate::{answer, context, ensure, host};

/// What an address belongs to.
enum Owner {
    Gpu(u64, Buffer),
    /// Context, start and size of memory of the CPU that the GPU can reach.
    Cpu(u64, u64, u64),
}

impl Owner {
    fn of(address: u64) -> Option<Self> {
        if let Some((start, buffer)) = buffer_at(address) {
            return Some(Self::Gpu(start, buffer));
        }
        host::range_at(address).map(|(context, start, size)| Self::Cpu(context, start, size))
    }

    fn range(&self) -> (u64, u64) {
        match self {
            Self::Gpu(start, buffer) => (*start, buffer.size),
            Self::Cpu(_, start, size) => (*start, *size),
        }
    }
}

/// Writes a value where the program wants it.
///
/// # Safety
///
/// There is room for it.
unsafe fn put<T>(data: *mut c_void, value: T) {
    // SAFETY: by the caller's promise.
    unsafe { data.cast::<T>().write_unaligned(value) }
}

/// # Safety
///
/// At `data` there is room for what the attribute is.
unsafe fn get(data: *mut c_void, attribute: CUpointer_attribute, address: u64) -> Result {
    let owner = Owner::of(address).ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
    let (start, size) = owner.range();
    // SAFETY: by the caller's promise, in each of them.
    unsafe {
        match (attribute, &owner) {
            (sys::CU_POINTER_ATTRIBUTE_CONTEXT, Owner::Cpu(context, ..)) => put(data, *context),
            (sys::CU_POINTER_ATTRIBUTE_CONTEXT, Owner::Gpu(_, buffer)) => {
                put(data, buffer.context.unwrap_or(0));
            }
            (sys::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Owner::Gpu(..)) => {
                put(data, sys::CU_MEMORYTYPE_DEVICE);
            }
            (sys::CU_POINTER_ATTRIBUTE_MEMORY_TYPE, Owner::Cpu(..)) => {
                put(data, sys::CU_MEMORYTYPE_HOST);
            }
            (sys::CU_POINTER_ATTRIBUTE_DEVICE_POINTER, _)
            | (sys::CU_POINTER_ATTRIBUTE_HOST_POINTER, Owner::Cpu(..)) => put(data, address),
            // Drivers have not looked at them for a long time.
            (sys::CU_POINTER_ATTRIBUTE_P2P_TOKENS, Owner::Gpu(..)) => put(
                data,
                sys::CUDA_POINTER_ATTRIBUTE_P2P_TOKENS {
                    p2pToken: 0,
                    vaSpaceToken: 0,
                },
            ),
            (sys::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, Owner::Gpu(_, buffer)) => {
                put(data, u32::from(buffer.sync_memops));
            }
            (sys::CU_POINTER_ATTRIBUTE_BUFFER_ID, Owner::Gpu(_, buffer)) => put(data, buffer.id),
            (sys::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, _) => put(data, 0i32),
            (
                sys::CU_POINTER_ATTRIBUTE_IS_MANAGED
                | sys::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                _,
            ) => put(data, 0u32),
            (sys::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, _) => put(data, start),
            (sys::CU_POINTER_ATTRIBUTE_RANGE_SIZE, _) => put(data, size),
            (sys::CU_POINTER_ATTRIBUTE_MAPPED, _) => put(data, 1u32),
            (sys::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, _) => put(data, 0u64),
            (sys::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, owner) => put(
                data,
                u32::from(matches!(owner, Owner::Gpu(_, buffer) if buffer.p2p)),
            ),
            (sys::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, _) => put(data, 0u64),
            _ => return Err(sys::CUDA_ERROR_INVALID_VALUE),
        }
    }
    Ok(())
}

#[no_mangle]
pub extern "C" fn cuPointerGetAttribute(
    data: *mut c_void,
    attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> CUresult {
    answer(|| {
        gpu()?;
        ensure(!data.is_null(), sys::CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: the caller has room for what he asks for.
        unsafe { get(data, attribute, address) }
    })
}

/// Of memory that CUDA does not know, all of them are 0.
#[no_mangle]
pub extern "C" fn cuPointerGetAttributes(
    count: u32,
    attributes: *mut CUpointer_attribute,
    data: *mut *mut c_void,
    address: CUdeviceptr,
) -> CUresult {
    answer(|| {
        gpu()?;
        ensure(
            count > 0 && !attributes.is_null() && !data.is_null(),
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        // SAFETY: the caller's arrays of so many.
        let (attributes, data) = unsafe {
            (
                slice::from_raw_parts(attributes, count as usize),
                slice::from_raw_parts(data, count as usize),
            )
        };
        for (&attribute, &data) in attributes.iter().zip(data) {
            // SAFETY: the caller has room for what he asks for.
            if unsafe { get(data, attribute, address) }.is_err() {
                // SAFETY: likewise.
                unsafe { clear(data, attribute) };
            }
        }
        Ok(())
    })
}

/// # Safety
///
/// At `data` there is room for what the attribute is.
unsafe fn clear(data: *mut c_void, attribute: CUpointer_attribute) {
    // SAFETY: by the caller's promise.
    unsafe {
        match attribute {
            sys::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => put(data, -2i32),
            sys::CU_POINTER_ATTRIBUTE_MEMORY_TYPE
            | sys::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
            | sys::CU_POINTER_ATTRIBUTE_IS_MANAGED
            | sys::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE
            | sys::CU_POINTER_ATTRIBUTE_MAPPED
            | sys::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => put(data, 0u32),
            _ => put(data, 0u64),
        }
    }
}

#[no_mangle]
pub extern "C" fn cuPointerSetAttribute(
    value: *const c_void,
    attribute: CUpointer_attribute,
    address: CUdeviceptr,
) -> CUresult {
    answer(|| {
        context::current()?;
        ensure(
            !value.is_null() && attribute == sys::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        // SAFETY: what this attribute is, by the caller's word.
        let value = unsafe { value.cast::<u32>().read_unaligned() };
        let (start, _) = buffer_at(address).ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        if let Some(buffer) = memory().buffers.get_mut(&start) {
            // Copies are synchronous with it anyway: it is remembered, no more.
            buffer.sync_memops = value != 0;
        }
        Ok(())
    })
}
