// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What programs look for, or link to, and this GPU cannot do.

use crate::sys::{self, CUresult};

/// Whatever arguments a caller has, none is looked at.
macro_rules! unsupported {
    ($($name:ident)*) => {
        $(#[no_mangle]
        pub extern "C" fn $name() -> CUresult {
            sys::CUDA_ERROR_NOT_SUPPORTED
        })*
    };
}

unsupported! {
    cuCtxEnablePeerAccess
    cuDeviceCanAccessPeer
    cuFlushGPUDirectRDMAWrites
    cuFuncGetAttribute
    cuIpcCloseMemHandle
    cuIpcGetMemHandle
    cuIpcOpenMemHandle_v2
    cuLaunchKernel
    cuMemAllocAsync
    cuMemAllocManaged
    cuMemAllocPitch_v2
    cuMemExportToShareableHandle
    cuMemFreeAsync
    cuMemGetHandleForAddressRange
    cuMemGetInfo_v2
    cuMemImportFromShareableHandle
    cuMemPoolCreate
    cuMemPoolDestroy
    cuMemPoolExportPointer
    cuMemPoolExportToShareableHandle
    cuMemPoolImportFromShareableHandle
    cuMemPoolImportPointer
    cuMemPoolSetAccess
    cuMemRangeGetAttribute
    cuModuleGetFunction
    cuModuleLoad
    cuModuleLoadData
    cuModuleUnload
    cuMemcpyPeer
    cuStreamCreateWithPriority
}
