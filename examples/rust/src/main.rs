// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Registers GPU memory for RDMA, as a starting point for your own program.
//!
//! ```text
//! cargo run -- [RDMA-DEVICE]
//! ```
//!
//! While a [`Region`] lives, the network card reads and writes the memory of its [`GpuBuffer`].
//! Work requests use the region's keys as usual. The region borrows the buffer, so the registration
//! ends before the memory is freed.

mod ffi;

use std::env;
use std::ffi::CStr;
use std::io;
use std::marker::PhantomData;
use std::process::ExitCode;
use std::ptr::{self, NonNull};

const SIZE: usize = 4 << 20;

type Error = Box<dyn std::error::Error>;

/// Converts the result of a CUDA call. `what` is the name of the call.
fn cuda(what: &str, result: ffi::CUresult) -> Result<(), Error> {
    if result == 0 {
        return Ok(());
    }
    let mut name = ptr::null();
    // SAFETY: `name` is valid for writing a pointer. CUDA keeps the text for ever.
    let known = unsafe { ffi::cuGetErrorName(result, &mut name) } == 0;
    let name = if known {
        // SAFETY: cuGetErrorName() succeeded, so `name` points to a text that ends with NUL.
        unsafe { CStr::from_ptr(name) }.to_string_lossy()
    } else {
        "unknown error".into()
    };
    Err(format!("{what}: {name}").into())
}

/// A CUDA context of the first GPU, which is current for this thread.
struct Gpu(ffi::CUcontext);

impl Gpu {
    fn open() -> Result<Self, Error> {
        let mut context = ptr::null_mut();
        // SAFETY: the call takes no pointers.
        cuda("cuInit", unsafe { ffi::cuInit(0) })?;
        // SAFETY: `context` is valid for writing.
        cuda("cuCtxCreate", unsafe {
            ffi::cuCtxCreate_v2(&mut context, 0, 0)
        })?;
        Ok(Self(context))
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        // SAFETY: open() made the context, and nothing uses the context any more.
        unsafe { ffi::cuCtxDestroy_v2(self.0) };
    }
}

struct GpuBuffer<'gpu> {
    address: u64,
    size: usize,
    gpu: PhantomData<&'gpu Gpu>,
}

impl<'gpu> GpuBuffer<'gpu> {
    fn new(_: &'gpu Gpu, size: usize) -> Result<Self, Error> {
        let mut address = 0;
        // SAFETY: `address` is valid for writing.
        cuda("cuMemAlloc", unsafe {
            ffi::cuMemAlloc_v2(&mut address, size)
        })?;
        Ok(Self {
            address,
            size,
            gpu: PhantomData,
        })
    }
}

impl Drop for GpuBuffer<'_> {
    fn drop(&mut self) {
        // SAFETY: new() allocated the memory, which is not registered any more.
        unsafe { ffi::cuMemFree_v2(self.address) };
    }
}

/// An RDMA device with a protection domain.
struct Hca {
    context: NonNull<ffi::ibv_context>,
    pd: NonNull<ffi::ibv_pd>,
}

impl Hca {
    fn open(name: Option<&str>) -> Result<Self, Error> {
        let context = open_device(name).ok_or_else(|| {
            format!(
                "no RDMA device {}: ibv_devices lists the devices of this machine",
                name.unwrap_or("at all")
            )
        })?;
        // SAFETY: `context` is an open device.
        match NonNull::new(unsafe { ffi::ibv_alloc_pd(context.as_ptr()) }) {
            Some(pd) => Ok(Self { context, pd }),
            None => Err(format!("ibv_alloc_pd: {}", io::Error::last_os_error()).into()),
        }
    }
}

fn open_device(name: Option<&str>) -> Option<NonNull<ffi::ibv_context>> {
    // SAFETY: the list ends with NULL, and is freed after its last use.
    unsafe {
        let list = ffi::ibv_get_device_list(ptr::null_mut());
        let mut found = None;
        let mut next = list;
        while !next.is_null() && !(*next).is_null() && found.is_none() {
            let its_name = CStr::from_ptr(ffi::ibv_get_device_name(*next));
            if name.is_none_or(|name| its_name.to_bytes() == name.as_bytes()) {
                found = NonNull::new(ffi::ibv_open_device(*next));
            }
            next = next.add(1);
        }
        if !list.is_null() {
            ffi::ibv_free_device_list(list);
        }
        found
    }
}

impl Drop for Hca {
    fn drop(&mut self) {
        // SAFETY: open() made the device and the protection domain, and all registrations have
        // ended.
        unsafe {
            ffi::ibv_dealloc_pd(self.pd.as_ptr());
            ffi::ibv_close_device(self.context.as_ptr());
        }
    }
}

/// A registration.
struct Region<'a> {
    mr: NonNull<ffi::ibv_mr>,
    of: PhantomData<(&'a Hca, &'a GpuBuffer<'a>)>,
}

impl<'a> Region<'a> {
    fn new(hca: &'a Hca, buffer: &'a GpuBuffer<'_>) -> Result<Self, Error> {
        let access = ffi::LOCAL_WRITE | ffi::REMOTE_WRITE | ffi::REMOTE_READ;
        let address = buffer.address as *mut _;
        // SAFETY: the range is the buffer's, and the buffer outlives the registration.
        let mr = unsafe { ffi::ibv_reg_mr(hca.pd.as_ptr(), address, buffer.size, access) };
        let mr = NonNull::new(mr).ok_or_else(|| {
            let error = io::Error::last_os_error();
            let hint = match error.raw_os_error() {
                Some(ffi::EFAULT) => ": is nv_peer_mem loaded?",
                _ => "",
            };
            format!("ibv_reg_mr: {error}{hint}")
        })?;
        Ok(Self {
            mr,
            of: PhantomData,
        })
    }

    fn keys(&self) -> (u32, u32) {
        // SAFETY: the registration exists until drop().
        let mr = unsafe { self.mr.as_ref() };
        (mr.lkey, mr.rkey)
    }
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        // SAFETY: new() made the registration, and nothing uses the registration any more.
        unsafe { ffi::ibv_dereg_mr(self.mr.as_ptr()) };
    }
}

fn run(device: Option<&str>) -> Result<(), Error> {
    let hca = Hca::open(device)?;
    let gpu = Gpu::open()?;
    let buffer = GpuBuffer::new(&gpu, SIZE)?;
    let region = Region::new(&hca, &buffer)?;
    let (lkey, rkey) = region.keys();
    println!(
        "{SIZE} bytes of GPU memory at {:#x}: lkey {lkey:#x}, rkey {rkey:#x}",
        buffer.address
    );
    Ok(())
}

fn main() -> ExitCode {
    match run(env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
