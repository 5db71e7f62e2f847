// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The one device, and what it can do.

use std::ffi::{c_char, c_int, CStr};

use crate::error::Result;
use crate::gpu::{self, gpu, Slot};
use crate::sys::{self, CUdevice, CUdevice_attribute, CUresult, CUuuid};
use crate::{answer, ensure, required};

const NAME: &str = "Simulated GPU of the lab";

/// Whether there is such a device.
pub fn check(device: CUdevice) -> Result {
    gpu()?;
    ensure(device == 0, sys::CUDA_ERROR_INVALID_DEVICE)
}

#[no_mangle]
pub extern "C" fn cuInit(flags: u32) -> CUresult {
    answer(|| {
        ensure(flags == 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        gpu::initialize()
    })
}

/// Needs no cuInit().
#[no_mangle]
pub extern "C" fn cuDriverGetVersion(version: Option<&mut c_int>) -> CUresult {
    answer(|| {
        *required(version)? = sys::CUDA_VERSION as c_int;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceGet(device: Option<&mut CUdevice>, ordinal: c_int) -> CUresult {
    answer(|| {
        let place = required(device)?;
        check(ordinal)?;
        *place = ordinal;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceGetCount(count: Option<&mut c_int>) -> CUresult {
    answer(|| {
        gpu()?;
        *required(count)? = 1;
        Ok(())
    })
}

/// Writes what fits of a text, and an end.
fn put_text(place: *mut c_char, size: c_int, text: &str) -> Result {
    let room = usize::try_from(size).unwrap_or(0);
    ensure(!place.is_null() && room > 0, sys::CUDA_ERROR_INVALID_VALUE)?;
    let shown = &text.as_bytes()[..text.len().min(room - 1)];
    // SAFETY: the caller has room for `room` bytes, which is more than these.
    unsafe {
        place.copy_from_nonoverlapping(shown.as_ptr().cast(), shown.len());
        place.add(shown.len()).write(0);
    }
    Ok(())
}

#[no_mangle]
pub extern "C" fn cuDeviceGetName(name: *mut c_char, size: c_int, device: CUdevice) -> CUresult {
    answer(|| {
        check(device)?;
        put_text(name, size, NAME)
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceGetUuid(uuid: Option<&mut CUuuid>, device: CUdevice) -> CUresult {
    answer(|| {
        check(device)?;
        let mut bytes = *b"nv-lab-gpu\0\0\0\0\0\0";
        bytes[15] = gpu()?.slot.device as u8;
        required(uuid)?.bytes = bytes.map(|byte| byte as c_char);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceTotalMem_v2(size: Option<&mut usize>, device: CUdevice) -> CUresult {
    answer(|| {
        check(device)?;
        *required(size)? = gpu()?.size as usize;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceGetPCIBusId(id: *mut c_char, size: c_int, device: CUdevice) -> CUresult {
    answer(|| {
        check(device)?;
        let Slot {
            domain,
            bus,
            device,
            function,
        } = gpu()?.slot;
        put_text(
            id,
            size,
            &format!("{domain:04X}:{bus:02X}:{device:02X}.{function:X}"),
        )
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceGetByPCIBusId(
    device: Option<&mut CUdevice>,
    id: *const c_char,
) -> CUresult {
    answer(|| {
        let place = required(device)?;
        ensure(!id.is_null(), sys::CUDA_ERROR_INVALID_VALUE)?;
        // SAFETY: the caller's string.
        let id = unsafe { CStr::from_ptr(id) };
        let slot = id.to_str().ok().and_then(Slot::parse);
        ensure(slot == Some(gpu()?.slot), sys::CUDA_ERROR_INVALID_DEVICE)?;
        *place = 0;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDeviceGetAttribute(
    value: Option<&mut c_int>,
    attribute: CUdevice_attribute,
    device: CUdevice,
) -> CUresult {
    answer(|| {
        check(device)?;
        *required(value)? = self::attribute(attribute, &gpu()?.slot)?;
        Ok(())
    })
}

fn attribute(attribute: CUdevice_attribute, slot: &Slot) -> Result<c_int> {
    Ok(match attribute {
        sys::CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID => slot.domain,
        sys::CU_DEVICE_ATTRIBUTE_PCI_BUS_ID => slot.bus,
        sys::CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID => slot.device,
        sys::CU_DEVICE_ATTRIBUTE_WARP_SIZE => 32,
        sys::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR => 8,
        sys::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR => 0,
        // By every device: each stream waits for what the network card writes.
        sys::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING => 200,
        sys::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY
        | sys::CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING
        | sys::CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM
        | sys::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1
        | sys::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1
        | sys::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1
        | sys::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES
        | sys::CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS
        | sys::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR => 1,
        sys::CU_DEVICE_ATTRIBUTE_INTEGRATED
        | sys::CU_DEVICE_ATTRIBUTE_ECC_ENABLED
        | sys::CU_DEVICE_ATTRIBUTE_TCC_DRIVER
        | sys::CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY
        | sys::CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS
        | sys::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS
        | sys::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES
        | sys::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST
        | sys::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS
        | sys::CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED
        | sys::CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED => 0,
        sys::CU_DEVICE_ATTRIBUTE_COMPUTE_MODE => sys::CU_COMPUTEMODE_DEFAULT as i32,
        _ => return Err(sys::CUDA_ERROR_NOT_SUPPORTED),
    })
}
