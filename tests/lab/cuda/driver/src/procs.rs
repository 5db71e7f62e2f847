// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Calls by their names.

use std::ffi::{c_char, c_int, c_void, CStr};
use std::ptr;

use crate::error::Result;
use crate::sys::{self, CUresult};
use crate::unsupported::*;
use crate::{
    answer, context::*, device::*, ensure, error::*, event::*, host::*, memops::*, memory::*,
    pointer::*, required, stream::*, transfer::*, vmm::*,
};

struct Proc {
    /// As the linker knows it.
    symbol: &'static str,
    /// The CUDA version that brought this form of it.
    since: c_int,
    function: *const c_void,
}

// SAFETY: addresses of functions, the same in every thread.
unsafe impl Sync for Proc {}

macro_rules! procs {
    ($($since:literal: $($symbol:ident)*;)*) => {
        static PROCS: &[Proc] = &[$($(Proc {
            symbol: stringify!($symbol),
            since: $since,
            function: $symbol as *const c_void,
        },)*)*];
    };
}

procs! {
    2000: cuInit cuDeviceGet cuDeviceGetCount cuDeviceGetName cuDeviceGetAttribute cuCtxGetDevice
        cuCtxSynchronize cuMemFreeHost cuStreamCreate cuStreamQuery cuStreamSynchronize cuEventCreate
        cuEventQuery cuEventRecord cuEventSynchronize cuEventElapsedTime cuModuleGetFunction
        cuModuleLoad cuModuleLoadData cuModuleUnload;
    2020: cuDriverGetVersion cuMemHostAlloc;
    2030: cuMemHostGetFlags;
    3020: cuDeviceTotalMem_v2 cuCtxCreate_v2 cuCtxGetApiVersion cuMemAlloc_v2 cuMemFree_v2
        cuMemGetAddressRange_v2 cuMemAllocHost_v2 cuMemHostGetDevicePointer_v2 cuMemcpyHtoD_v2
        cuMemcpyDtoH_v2 cuMemcpyDtoD_v2 cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2
        cuMemcpyDtoDAsync_v2 cuMemsetD8_v2 cuMemsetD16_v2 cuMemsetD32_v2 cuMemsetD8Async
        cuMemsetD32Async cuStreamWaitEvent cuMemAllocPitch_v2 cuMemGetInfo_v2;
    4000: cuCtxDestroy_v2 cuCtxPushCurrent_v2 cuCtxPopCurrent_v2 cuCtxSetCurrent cuCtxGetCurrent
        cuMemHostUnregister cuMemcpy cuMemcpyAsync cuStreamDestroy_v2 cuEventDestroy_v2
        cuPointerGetAttribute cuDeviceCanAccessPeer cuCtxEnablePeerAccess cuLaunchKernel
        cuMemcpyPeer;
    4010: cuDeviceGetPCIBusId cuDeviceGetByPCIBusId cuIpcGetMemHandle cuIpcCloseMemHandle;
    5000: cuStreamAddCallback;
    5050: cuStreamCreateWithPriority;
    6000: cuGetErrorName cuGetErrorString cuPointerSetAttribute cuMemAllocManaged;
    6050: cuMemHostRegister_v2;
    7000: cuDevicePrimaryCtxRetain cuDevicePrimaryCtxGetState cuCtxGetFlags cuPointerGetAttributes;
    8000: cuMemRangeGetAttribute;
    9020: cuDeviceGetUuid cuStreamGetCtx;
    10000: cuLaunchHostFunc;
    10020: cuMemAddressReserve cuMemAddressFree cuMemCreate cuMemRelease cuMemMap cuMemUnmap
        cuMemSetAccess cuMemGetAllocationGranularity cuMemGetAllocationPropertiesFromHandle
        cuMemExportToShareableHandle cuMemImportFromShareableHandle;
    11000: cuDevicePrimaryCtxRelease_v2 cuDevicePrimaryCtxReset_v2 cuMemRetainAllocationHandle
        cuIpcOpenMemHandle_v2;
    11020: cuMemAllocAsync cuMemFreeAsync cuMemPoolCreate cuMemPoolDestroy cuMemPoolExportPointer
        cuMemPoolExportToShareableHandle cuMemPoolImportFromShareableHandle cuMemPoolImportPointer
        cuMemPoolSetAccess;
    11030: cuGetProcAddress cuFlushGPUDirectRDMAWrites;
    11070: cuStreamWaitValue32_v2 cuStreamWaitValue64_v2 cuStreamWriteValue32_v2
        cuStreamWriteValue64_v2 cuStreamBatchMemOp_v2 cuMemGetHandleForAddressRange;
    12000: cuGetProcAddress_v2;
}

/// Whether a symbol is a form of the call of that name.
fn is_form_of(symbol: &str, name: &str) -> bool {
    let version = |rest: &str| {
        rest.strip_prefix("_v")
            .is_some_and(|number| number.parse::<u8>().is_ok())
    };
    symbol
        .strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || version(rest))
}

/// The newest form that the version of the caller knows; or whether there is
/// only a newer one.
fn look_up(name: &str, version: c_int) -> std::result::Result<*const c_void, u32> {
    let forms = || PROCS.iter().filter(|proc| is_form_of(proc.symbol, name));
    let newest = forms()
        .filter(|proc| proc.since <= version)
        .max_by_key(|proc| proc.since);
    match (newest, forms().next()) {
        (Some(proc), _) => Ok(proc.function),
        (None, Some(_)) => Err(sys::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT),
        (None, None) => Err(sys::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND),
    }
}

fn tell(
    symbol: *const c_char,
    function: Option<&mut *mut c_void>,
    version: c_int,
    flags: u64,
    status: Option<&mut u32>,
) -> Result {
    let place = required(function)?;
    ensure(!symbol.is_null(), sys::CUDA_ERROR_INVALID_VALUE)?;
    // Streams of each thread are not to be had.
    ensure(flags & !1 == 0, sys::CUDA_ERROR_NOT_SUPPORTED)?;
    // SAFETY: the caller's string.
    let name = unsafe { CStr::from_ptr(symbol) }
        .to_str()
        .map_err(|_| sys::CUDA_ERROR_INVALID_VALUE)?;
    let found = look_up(name, version);
    *place = found.unwrap_or(ptr::null()).cast_mut();
    let has_status = status.is_some();
    if let Some(status) = status {
        *status = found.err().unwrap_or(sys::CU_GET_PROC_ADDRESS_SUCCESS);
    }
    ensure(found.is_ok() || has_status, sys::CUDA_ERROR_NOT_FOUND)
}

#[no_mangle]
pub extern "C" fn cuGetProcAddress(
    symbol: *const c_char,
    function: Option<&mut *mut c_void>,
    version: c_int,
    flags: u64,
) -> CUresult {
    answer(|| tell(symbol, function, version, flags, None))
}

#[no_mangle]
pub extern "C" fn cuGetProcAddress_v2(
    symbol: *const c_char,
    function: Option<&mut *mut c_void>,
    version: c_int,
    flags: u64,
    status: Option<&mut u32>,
) -> CUresult {
    answer(|| tell(symbol, function, version, flags, status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        assert!(is_form_of("cuMemAlloc_v2", "cuMemAlloc"));
        assert!(is_form_of("cuMemAlloc_v2", "cuMemAlloc_v2"));
        assert!(!is_form_of("cuMemAllocHost_v2", "cuMemAlloc"));
        assert_eq!(
            look_up("cuMemAlloc", 12040),
            Ok(cuMemAlloc_v2 as *const c_void)
        );
        assert_eq!(
            look_up("cuGetProcAddress", 11040),
            Ok(cuGetProcAddress as *const c_void)
        );
        assert_eq!(
            look_up("cuGetProcAddress", 12000),
            Ok(cuGetProcAddress_v2 as *const c_void)
        );
        assert_eq!(
            look_up("cuMemMap", 9000),
            Err(sys::CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT)
        );
        assert_eq!(
            look_up("cuNothing", 12040),
            Err(sys::CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND)
        );
    }
}
