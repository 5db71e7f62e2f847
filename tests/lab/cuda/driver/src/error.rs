// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Errors, by number, name and description.

use std::ffi::{c_char, CStr};
use std::ptr;

use crate::sys::{self, CUresult};
use crate::{answer, required};

pub type Result<T = ()> = std::result::Result<T, CUresult>;

macro_rules! errors {
    ($($name:ident $text:literal)*) => {
        /// Name and description of each error.
        fn known(error: CUresult) -> Option<(&'static CStr, &'static CStr)> {
            let (name, text) = match error {
                $(sys::$name => (concat!(stringify!($name), "\0"), concat!($text, "\0")),)*
                _ => return None,
            };
            let c = |text: &'static str| CStr::from_bytes_with_nul(text.as_bytes()).ok();
            Some((c(name)?, c(text)?))
        }
    };
}

errors! {
    CUDA_SUCCESS "no error"
    CUDA_ERROR_INVALID_VALUE "invalid argument"
    CUDA_ERROR_OUT_OF_MEMORY "out of memory"
    CUDA_ERROR_NOT_INITIALIZED "initialization error"
    CUDA_ERROR_DEINITIALIZED "driver shutting down"
    CUDA_ERROR_STUB_LIBRARY "CUDA driver is a stub library"
    CUDA_ERROR_DEVICE_UNAVAILABLE "CUDA-capable device(s) is/are busy or unavailable"
    CUDA_ERROR_NO_DEVICE "no CUDA-capable device is detected"
    CUDA_ERROR_INVALID_DEVICE "invalid device ordinal"
    CUDA_ERROR_DEVICE_NOT_LICENSED "device doesn't have valid Grid license"
    CUDA_ERROR_INVALID_IMAGE "device kernel image is invalid"
    CUDA_ERROR_INVALID_CONTEXT "invalid device context"
    CUDA_ERROR_MAP_FAILED "mapping of buffer object failed"
    CUDA_ERROR_UNMAP_FAILED "unmapping of buffer object failed"
    CUDA_ERROR_ALREADY_MAPPED "resource already mapped"
    CUDA_ERROR_NOT_MAPPED "resource not mapped"
    CUDA_ERROR_ECC_UNCORRECTABLE "uncorrectable ECC error encountered"
    CUDA_ERROR_UNSUPPORTED_LIMIT "limit is not supported on this architecture"
    CUDA_ERROR_PEER_ACCESS_UNSUPPORTED "peer access is not supported between these two devices"
    CUDA_ERROR_OPERATING_SYSTEM "OS call failed or operation not supported on this OS"
    CUDA_ERROR_INVALID_HANDLE "invalid resource handle"
    CUDA_ERROR_ILLEGAL_STATE "the operation cannot be performed in the present state"
    CUDA_ERROR_NOT_FOUND "named symbol not found"
    CUDA_ERROR_NOT_READY "device not ready"
    CUDA_ERROR_ILLEGAL_ADDRESS "an illegal memory access was encountered"
    CUDA_ERROR_LAUNCH_TIMEOUT "the launch timed out and was terminated"
    CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE "cannot set while device is active in this process"
    CUDA_ERROR_CONTEXT_IS_DESTROYED "context is destroyed"
    CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED "part or all of the requested memory range is already mapped"
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED "pointer does not correspond to a registered memory region"
    CUDA_ERROR_MISALIGNED_ADDRESS "misaligned address"
    CUDA_ERROR_INVALID_ADDRESS_SPACE "operation not supported on global/shared address space"
    CUDA_ERROR_LAUNCH_FAILED "unspecified launch failure"
    CUDA_ERROR_NOT_PERMITTED "operation not permitted"
    CUDA_ERROR_NOT_SUPPORTED "operation not supported"
    CUDA_ERROR_SYSTEM_NOT_READY "system not yet initialized"
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH "system has unsupported display driver / cuda driver combination"
    CUDA_ERROR_TIMEOUT "wait operation timed out"
    CUDA_ERROR_UNKNOWN "unknown error"
}

fn tell(place: Option<&mut *const c_char>, text: Option<&'static CStr>) -> CUresult {
    answer(|| {
        let place = required(place)?;
        *place = text.map_or(ptr::null(), CStr::as_ptr);
        text.map(|_| ()).ok_or(sys::CUDA_ERROR_INVALID_VALUE)
    })
}

#[no_mangle]
pub extern "C" fn cuGetErrorName(error: CUresult, name: Option<&mut *const c_char>) -> CUresult {
    tell(name, known(error).map(|(name, _)| name))
}

#[no_mangle]
pub extern "C" fn cuGetErrorString(error: CUresult, text: Option<&mut *const c_char>) -> CUresult {
    tell(text, known(error).map(|(_, text)| text))
}
