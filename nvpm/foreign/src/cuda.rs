// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Calls libcuda, the driver's own library, to find GPUs and to allocate their memory.
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fmt;
use std::os::fd::{FromRawFd, OwnedFd};
use std::ptr::null_mut;

use crate::verbs::{function, load};

pub const LIBRARY: &str = "libcuda.so.1";
pub const OUT_OF_MEMORY: c_int = 2;
pub const NO_DEVICE: c_int = 100;
const NOT_SUPPORTED: c_int = 801;
const SYNC_MEMOPS: c_int = 6;
const DMA_BUF: c_int = 1;

/// The driver gives a buffer of this size its own blocks. Smaller buffers share a block, which the driver keeps while
/// any of the buffers exists, so whole blocks are allocated.
const BLOCK: usize = 2 << 20;

/// A call has failed. The text is like: `cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY`
#[derive(Clone, Debug, PartialEq)]
pub struct Error {
    call: &'static str,
    pub code: c_int,
    name: String,
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {}", self.call, self.name)
    }
}

type Device = c_int;
type Pointer = c_ulonglong;
type Context = *mut c_void;

/// The functions, with the types of their arguments and results as in `<cuda.h>`. Each result is a `CUresult`.
struct Functions {
    get_error_name: unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int,
    init: unsafe extern "C" fn(c_uint) -> c_int,
    device_get_count: unsafe extern "C" fn(*mut c_int) -> c_int,
    device_get: unsafe extern "C" fn(*mut Device, c_int) -> c_int,
    device_get_pci_bus_id: unsafe extern "C" fn(*mut c_char, c_int, Device) -> c_int,
    primary_retain: unsafe extern "C" fn(*mut Context, Device) -> c_int,
    primary_release: unsafe extern "C" fn(Device) -> c_int,
    set_current: unsafe extern "C" fn(Context) -> c_int,
    mem_alloc: unsafe extern "C" fn(*mut Pointer, usize) -> c_int,
    mem_free: unsafe extern "C" fn(Pointer) -> c_int,
    copy_to: unsafe extern "C" fn(Pointer, *const c_void, usize) -> c_int,
    copy_from: unsafe extern "C" fn(*mut c_void, Pointer, usize) -> c_int,
    set_attribute: unsafe extern "C" fn(*const c_void, c_int, Pointer) -> c_int,
    // The libcuda of a driver before 515 lacks this function.
    export: Option<unsafe extern "C" fn(*mut c_void, Pointer, usize, c_int, c_ulonglong) -> c_int>,
}

pub struct Library {
    functions: Functions,
    failed: Cell<Option<Error>>,
}

impl Library {
    /// Loads libcuda. The error is the text of the dynamic linker.
    pub fn open() -> Result<Self, String> {
        let library = load(LIBRARY)?;
        let functions = Functions {
            get_error_name: function!(library, "cuGetErrorName")?,
            init: function!(library, "cuInit")?,
            device_get_count: function!(library, "cuDeviceGetCount")?,
            device_get: function!(library, "cuDeviceGet")?,
            device_get_pci_bus_id: function!(library, "cuDeviceGetPCIBusId")?,
            primary_retain: function!(library, "cuDevicePrimaryCtxRetain")?,
            primary_release: function!(library, "cuDevicePrimaryCtxRelease_v2")?,
            set_current: function!(library, "cuCtxSetCurrent")?,
            mem_alloc: function!(library, "cuMemAlloc_v2")?,
            mem_free: function!(library, "cuMemFree_v2")?,
            copy_to: function!(library, "cuMemcpyHtoD_v2")?,
            copy_from: function!(library, "cuMemcpyDtoH_v2")?,
            set_attribute: function!(library, "cuPointerSetAttribute")?,
            export: function!(library, "cuMemGetHandleForAddressRange").ok(),
        };
        Ok(Self { functions, failed: Cell::new(None) })
    }

    pub fn init(&self) -> Result<(), Error> {
        // SAFETY: The function requires only that no flag is set.
        self.checked("cuInit", unsafe { (self.functions.init)(0) })
    }

    /// Returns the error of the last memory that could not be freed, since the last call.
    pub fn release_failure(&self) -> Option<Error> {
        self.failed.take()
    }

    /// Returns the GPUs; none if CUDA cannot count them.
    pub fn gpus(&self) -> Result<Vec<Gpu<'_>>, Error> {
        let mut count = 0;
        // SAFETY: The function requires a place for the number.
        if unsafe { (self.functions.device_get_count)(&raw mut count) } != 0 {
            return Ok(Vec::new());
        }
        (0..count).map(|index| Gpu::new(self, index)).collect()
    }

    fn checked(&self, call: &'static str, code: c_int) -> Result<(), Error> {
        if code == 0 { Ok(()) } else { Err(Error { call, code, name: self.error_name(code) }) }
    }

    fn error_name(&self, code: c_int) -> String {
        let mut name = std::ptr::null();
        // SAFETY: The function requires a place for the text, and takes any number.
        unsafe { (self.functions.get_error_name)(code, &raw mut name) };
        if name.is_null() {
            return format!("error {code}");
        }
        // SAFETY: The text is a constant of the library, which ends with a zero.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

pub struct Gpu<'l> {
    library: &'l Library,
    /// The number in nvidia-smi.
    pub index: c_int,
    /// The PCI address, as sysfs has it.
    pub pci: String,
    device: Device,
    context: Cell<Option<Context>>,
}

impl<'l> Gpu<'l> {
    fn new(library: &'l Library, index: c_int) -> Result<Self, Error> {
        const LENGTH: c_int = 32;
        let (mut device, mut name) = (0, [0u8; LENGTH as usize]);
        // SAFETY: The function requires a place for the device, and checks the number.
        library.checked("cuDeviceGet", unsafe { (library.functions.device_get)(&raw mut device, index) })?;
        // SAFETY: The array has LENGTH bytes, and the device is one of CUDA.
        let code = unsafe { (library.functions.device_get_pci_bus_id)(name.as_mut_ptr().cast(), LENGTH, device) };
        library.checked("cuDeviceGetPCIBusId", code)?;
        let pci = CStr::from_bytes_until_nul(&name).unwrap_or_default().to_string_lossy().to_lowercase();
        Ok(Self { library, index, pci, device, context: Cell::new(None) })
    }

    /// Makes this GPU current, so that allocations take its memory. The context is kept for the next RDMA device,
    /// because making a context takes a while.
    pub fn make_current(&self) -> Result<(), Error> {
        let functions = &self.library.functions;
        let mut context = self.context.get().unwrap_or(null_mut());
        if context.is_null() {
            // SAFETY: The function requires a place for the context, and the device is one of CUDA.
            let code = unsafe { (functions.primary_retain)(&raw mut context, self.device) };
            self.library.checked("cuDevicePrimaryCtxRetain", code)?;
            self.context.set(Some(context));
        }
        // SAFETY: The context is retained.
        self.library.checked("cuCtxSetCurrent", unsafe { (functions.set_current)(context) })
    }

    /// Gives the context back.
    pub fn release(&self) -> Result<(), Error> {
        if self.context.take().is_none() {
            return Ok(());
        }
        let functions = &self.library.functions;
        // SAFETY: NULL takes the current context away from the thread.
        self.library.checked("cuCtxSetCurrent", unsafe { (functions.set_current)(null_mut()) })?;
        // SAFETY: The context was retained once, and is released once.
        let code = unsafe { (functions.primary_release)(self.device) };
        self.library.checked("cuDevicePrimaryCtxRelease_v2", code)
    }

    pub fn memory(&self, size: usize) -> Result<Memory<'l>, Error> {
        Memory::new(self.library, size)
    }
}

/// Returns the size of the blocks that are allocated for SIZE bytes.
pub fn blocks(size: usize) -> usize {
    size.div_ceil(BLOCK).max(2) * BLOCK
}

/// Memory of the current GPU. It is freed by `free()`, or at the end.
pub struct Memory<'l> {
    library: &'l Library,
    size: usize,
    address: Pointer,
    is_freed: Cell<bool>,
}

impl<'l> Memory<'l> {
    fn new(library: &'l Library, size: usize) -> Result<Self, Error> {
        let mut address = 0;
        // SAFETY: The function requires a place for the address. Without a current context it fails.
        let code = unsafe { (library.functions.mem_alloc)(&raw mut address, blocks(size)) };
        library.checked("cuMemAlloc_v2", code)?;
        let memory = Self { library, size, address, is_freed: Cell::new(false) };
        // With this attribute, copies wait for earlier work, and are complete when they return.
        let on: c_uint = 1;
        // SAFETY: The attribute's value is an unsigned number, and the address is one of CUDA.
        let code = unsafe { (library.functions.set_attribute)((&raw const on).cast(), SYNC_MEMOPS, address) };
        library.checked("cuPointerSetAttribute", code)?;
        Ok(memory)
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    /// Returns the memory as a dma-buf. All blocks are exported, because only whole pages can be exported.
    pub fn exported(&self) -> Result<OwnedFd, Error> {
        const CALL: &str = "cuMemGetHandleForAddressRange";
        let Some(export) = self.library.functions.export else {
            let name = format!("{LIBRARY} does not have it: it belongs to a driver before 515");
            return Err(Error { call: CALL, code: NOT_SUPPORTED, name });
        };
        let mut descriptor: c_int = -1;
        let to = (&raw mut descriptor).cast();
        // SAFETY: The handle of a dma-buf is a descriptor, for which there is room. CUDA checks the range.
        self.library.checked(CALL, unsafe { export(to, self.address, blocks(self.size), DMA_BUF, 0) })?;
        // SAFETY: The call has succeeded, so the descriptor is open, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
    }

    /// Copies DATA to the start of the memory.
    pub fn put(&self, data: &[u8]) -> Result<(), Error> {
        let length = data.len().min(self.size);
        // SAFETY: Both places have LENGTH bytes. If the memory was freed, CUDA refuses the address.
        let code = unsafe { (self.library.functions.copy_to)(self.address, data.as_ptr().cast(), length) };
        self.library.checked("cuMemcpyHtoD_v2", code)
    }

    /// Returns a copy of the memory.
    pub fn get(&self) -> Result<Vec<u8>, Error> {
        let mut data = vec![0u8; self.size];
        // SAFETY: Both places have as many bytes. If the memory was freed, CUDA refuses the address.
        let code = unsafe { (self.library.functions.copy_from)(data.as_mut_ptr().cast(), self.address, data.len()) };
        self.library.checked("cuMemcpyDtoH_v2", code)?;
        Ok(data)
    }

    /// Frees the memory, also while it is registered.
    pub fn free(&self) -> Result<(), Error> {
        if self.is_freed.replace(true) {
            return Ok(());
        }
        // SAFETY: The memory was allocated, and only here it is freed, once.
        self.library.checked("cuMemFree_v2", unsafe { (self.library.functions.mem_free)(self.address) })
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.free() {
            self.library.failed.set(Some(error));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_whole_blocks() {
        for (size, expected) in [(1, 4 << 20), (4 << 20, 4 << 20), ((4 << 20) + 1, 6 << 20), (1 << 30, 1 << 30)] {
            assert_eq!(blocks(size), expected, "{size}");
        }
    }
}
