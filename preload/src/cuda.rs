// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Asks libcuda (`cuda.h`) whether a pointer is GPU memory, and exports the memory as a dma-buf.
//! The library does not load libcuda, because a process without libcuda has no GPU memory.
#![expect(non_snake_case, reason = "libcuda's own names")]

use core::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void, CStr};
use core::mem;
use core::ops::ControlFlow;
use core::ptr::{null, null_mut};

use crate::initialized::{is_child, may_work};
use crate::libc::Fd;
use crate::loaded::{each_object, Remembered};

/// The name by which the driver and all programs know libcuda.
const NAME: &CStr = c"libcuda.so.1";

/// `CUcontext`.
type Context = *mut c_void;

// CU_POINTER_ATTRIBUTE_...
const CONTEXT: c_int = 1;
const MEMORY_TYPE: c_int = 2;
const SYNC_MEMOPS: c_int = 6;
const DEVICE_ORDINAL: c_int = 9;

const CU_MEMORYTYPE_DEVICE: c_uint = 2;
const CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD: c_int = 1;

// CUDA_ERROR_...
pub(crate) const INVALID_VALUE: c_int = 1;
pub(crate) const OUT_OF_MEMORY: c_int = 2;
pub(crate) const NOT_SUPPORTED: c_int = 801;
/// The code for a missing function, which is not a `CUresult`. The function is missing if libcuda
/// is not in the process, or is too old to have the function.
pub(crate) const NO_FUNCTION: c_int = -1;

/// A failure. It consists of the failed function's name and of its code, a `CUresult` or
/// [`NO_FUNCTION`].
pub(crate) struct Error {
    pub(crate) function: &'static CStr,
    pub(crate) code: c_int,
}

impl Error {
    /// Returns the name of the code.
    pub(crate) fn name(&self) -> &'static CStr {
        if self.code == NO_FUNCTION {
            return c"nothing: this libcuda does not have it";
        }
        let mut name = null();
        // SAFETY: there is room for the pointer.
        let named = unsafe { cuGetErrorName(self.code, &raw mut name) };
        if named.is_err() || name.is_null() {
            return c"an error without a name";
        }
        // SAFETY: libcuda's names of errors are strings that never change.
        unsafe { CStr::from_ptr(name) }
    }
}

/// Returns the function of this name in libcuda, or NULL if the process has no libcuda, or has not
/// initialized CUDA: another thread may close such a libcuda at any time. Stores the function in
/// `last`, which the next call reads.
fn find(name: &CStr, last: &Remembered) -> *const c_void {
    // A child does not walk for nothing, because its walk may never end (gate.rs).
    if is_child() && !may_work() {
        return null();
    }
    let found = each_object(|object, generation| {
        if let Some(found) = last.recall(generation) {
            return ControlFlow::Break(found);
        }
        if object.soname() != Some(NAME) {
            return ControlFlow::Continue(());
        }
        let found = object.function(name);
        last.remember(generation, found);
        ControlFlow::Break(found)
    });
    found.filter(|_| may_work()).unwrap_or(null())
}

/// Defines functions that call the functions of libcuda with the same names, and return a `Result`.
macro_rules! cuda {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => { $(
        /// # Safety
        ///
        /// Each pointer is valid for the reads and writes that cuda.h describes.
        unsafe fn $name($($argument: $type),*) -> Result<(), Error> {
            const NAME: &str = concat!(stringify!($name), "\0");
            const SYMBOL: &CStr = match CStr::from_bytes_with_nul(NAME.as_bytes()) {
                Ok(symbol) => symbol,
                Err(_) => panic!(),
            };
            type Function = Option<unsafe extern "C" fn($($type),*) -> c_int>;
            static LAST: Remembered = Remembered::nothing();
            let found = find(SYMBOL, &LAST);
            // SAFETY: cuda.h declares a function of this name with this type.
            let function = unsafe { mem::transmute::<*const c_void, Function>(found) };
            let code = match function {
                // SAFETY: the caller promises that the pointers are valid.
                Some(function) => unsafe { function($($argument),*) },
                None => NO_FUNCTION,
            };
            if code == 0 { Ok(()) } else { Err(Error { function: SYMBOL, code }) }
        }
    )* };
}

cuda! {
    cuGetErrorName(code: c_int, name: *mut *const c_char);
    cuPointerGetAttribute(value: *mut c_void, attribute: c_int, pointer: u64);
    cuPointerSetAttribute(value: *const c_void, attribute: c_int, pointer: u64);
    cuCtxGetCurrent(context: *mut Context);
    cuCtxPushCurrent_v2(context: Context);
    cuCtxPopCurrent_v2(context: *mut Context);
    cuDeviceGet(device: *mut c_int, ordinal: c_int);
    cuDevicePrimaryCtxRetain(context: *mut Context, device: c_int);
    cuDevicePrimaryCtxRelease_v2(device: c_int);
    cuMemGetHandleForAddressRange(
        handle: *mut c_void,
        start: u64,
        size: usize,
        kind: c_int,
        flags: c_ulonglong
    );
}

/// Returns whether libcuda is in the process and says that `pointer` is memory of a GPU.
pub(crate) fn is_gpu_memory(pointer: u64) -> Result<bool, Error> {
    let mut kind: c_uint = 0;
    // SAFETY: there is room for this attribute.
    match unsafe { cuPointerGetAttribute((&raw mut kind).cast(), MEMORY_TYPE, pointer) } {
        Ok(()) => Ok(kind == CU_MEMORYTYPE_DEVICE),
        // CUDA does not know the memory, or is not in the process at all.
        Err(Error { code: INVALID_VALUE | NO_FUNCTION, .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// A context that the library has given to the thread. The thread loses the context when this
/// object is dropped.
pub(crate) struct Pushed {
    /// The reference to the device's primary context, if the library had to take one.
    _retained: Option<Retained>,
}

/// A reference to the primary context of this device.
struct Retained(c_int);

impl Pushed {
    /// Gives the thread a context of the device that has the memory, if the thread has no context.
    /// Returns `None` if the thread has one. In a thread without a context, libcuda refuses to
    /// export memory (`CUDA_ERROR_INVALID_CONTEXT`).
    pub(crate) fn if_none(pointer: u64) -> Result<Option<Self>, Error> {
        let mut context: Context = null_mut();
        // SAFETY: there is room for the context.
        unsafe { cuCtxGetCurrent(&raw mut context) }?;
        if !context.is_null() {
            return Ok(None);
        }
        // Memory of a pool and mapped memory have no context, so libcuda returns an error or NULL
        // for them. The library then uses the primary context.
        // SAFETY: there is room for this attribute.
        let _ = unsafe { cuPointerGetAttribute((&raw mut context).cast(), CONTEXT, pointer) };
        let mut retained = None;
        if context.is_null() {
            retained = Some(Retained::device_of(pointer, &mut context)?);
        }
        // SAFETY: libcuda named this context just now.
        unsafe { cuCtxPushCurrent_v2(context) }?;
        Ok(Some(Self { _retained: retained }))
    }
}

impl Drop for Pushed {
    fn drop(&mut self) {
        let mut context: Context = null_mut();
        // SAFETY: there is room for the pushed context.
        let _ = unsafe { cuCtxPopCurrent_v2(&raw mut context) };
    }
}

impl Retained {
    /// Retains the primary context of the device that has the memory, and stores it in `context`.
    fn device_of(pointer: u64, context: &mut Context) -> Result<Self, Error> {
        let mut ordinal: c_int = 0;
        // SAFETY: there is room for this attribute.
        unsafe { cuPointerGetAttribute((&raw mut ordinal).cast(), DEVICE_ORDINAL, pointer) }?;
        let mut device: c_int = 0;
        // SAFETY: there is room for the device.
        unsafe { cuDeviceGet(&raw mut device, ordinal) }?;
        // SAFETY: there is room for the context.
        unsafe { cuDevicePrimaryCtxRetain(context, device) }?;
        Ok(Self(device))
    }
}

impl Drop for Retained {
    fn drop(&mut self) {
        // SAFETY: the context was retained once for this reference.
        let _ = unsafe { cuDevicePrimaryCtxRelease_v2(self.0) };
    }
}

/// Exports a range of whole pages of GPU memory as a dma-buf.
pub(crate) fn export(start: u64, size: usize) -> Result<Fd, Error> {
    let mut fd: c_int = -1;
    let handle = (&raw mut fd).cast();
    let kind = CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    // SAFETY: there is room for this kind of handle.
    unsafe { cuMemGetHandleForAddressRange(handle, start, size, kind, 0) }?;
    Ok(Fd(fd))
}

/// Makes CUDA finish each copy to or from this memory before the copying function returns.
/// Otherwise RDMA could read bytes that a copy has not written yet.
pub(crate) fn sync_memops(pointer: u64) -> Result<(), Error> {
    let yes: c_uint = 1;
    // SAFETY: the value has the type that this attribute takes.
    unsafe { cuPointerSetAttribute((&raw const yes).cast(), SYNC_MEMOPS, pointer) }
}
