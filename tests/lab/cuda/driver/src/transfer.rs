// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Copying and filling. Every byte goes through the driver, as it goes through
//! a copy engine on a GPU.

use std::ffi::c_void;

use crate::context;
use crate::error::Result;
use crate::gpu::gpu;
use crate::stream;
use crate::sys::{self, CUdeviceptr, CUresult, CUstream};
use crate::{answer, ensure, host, memory};

/// How much of a filling is prepared at once.
const PIECE: u64 = 64 << 10;

/// What a call's name says of an address.
#[derive(Clone, Copy)]
enum Side {
    Gpu(u64),
    Cpu(u64),
    Either(u64),
}

impl Side {
    /// The address, if what is there is of that kind. Memory of the CPU that the
    /// GPU can reach is good where the GPU's is wanted.
    fn check(self, size: u64, write: bool) -> Result<u64> {
        let (Self::Gpu(address) | Self::Cpu(address) | Self::Either(address)) = self;
        let device = memory::is_device(address, size, write)?;
        let fits = match self {
            Self::Gpu(_) => device || host::reachable(address, size),
            Self::Cpu(_) | Self::Either(_) => address != 0,
        };
        ensure(fits, sys::CUDA_ERROR_INVALID_VALUE)?;
        Ok(address)
    }
}

/// In order with what the stream was given before; at once where there is none.
fn copy(to: Side, from: Side, size: usize, stream: Option<CUstream>) -> CUresult {
    answer(|| {
        let context = context::current()?;
        let size = size as u64;
        if size == 0 {
            return Ok(());
        }
        let (to, from) = (to.check(size, true)?, from.check(size, false)?);
        let gpu = gpu()?;
        match stream {
            None => stream::at_once(&context, || gpu.copy(to, from, size)),
            Some(stream) => {
                let stream = stream::find(stream)?;
                stream::enqueue(&stream, move |_| gpu.copy(to, from, size))
            }
        }
    })
}

/// `count` times `value`, of which each has to be aligned.
fn fill(to: u64, value: &[u8], count: usize, stream: Option<CUstream>) -> CUresult {
    answer(|| {
        let context = context::current()?;
        let width = value.len() as u64;
        let size = (count as u64)
            .checked_mul(width)
            .filter(|_| to % width == 0)
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        if size == 0 {
            return Ok(());
        }
        let to = Side::Gpu(to).check(size, true)?;
        let piece = value.repeat((size.min(PIECE) / width) as usize);
        let gpu = gpu()?;
        let work = move || {
            let from = piece.as_ptr() as u64;
            (0..size)
                .step_by(PIECE as usize)
                .try_for_each(|at| gpu.copy(to + at, from, PIECE.min(size - at)))
        };
        match stream {
            None => stream::at_once(&context, work),
            Some(stream) => stream::enqueue(&stream::find(stream)?, move |_| work()),
        }
    })
}

#[no_mangle]
pub extern "C" fn cuMemcpy(to: CUdeviceptr, from: CUdeviceptr, size: usize) -> CUresult {
    copy(Side::Either(to), Side::Either(from), size, None)
}

#[no_mangle]
pub extern "C" fn cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, size: usize) -> CUresult {
    copy(Side::Gpu(to), Side::Cpu(from as u64), size, None)
}

#[no_mangle]
pub extern "C" fn cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, size: usize) -> CUresult {
    copy(Side::Cpu(to as u64), Side::Gpu(from), size, None)
}

#[no_mangle]
pub extern "C" fn cuMemcpyDtoD_v2(to: CUdeviceptr, from: CUdeviceptr, size: usize) -> CUresult {
    copy(Side::Gpu(to), Side::Gpu(from), size, None)
}

#[no_mangle]
pub extern "C" fn cuMemcpyAsync(
    to: CUdeviceptr,
    from: CUdeviceptr,
    size: usize,
    stream: CUstream,
) -> CUresult {
    copy(Side::Either(to), Side::Either(from), size, Some(stream))
}

#[no_mangle]
pub extern "C" fn cuMemcpyHtoDAsync_v2(
    to: CUdeviceptr,
    from: *const c_void,
    size: usize,
    stream: CUstream,
) -> CUresult {
    copy(Side::Gpu(to), Side::Cpu(from as u64), size, Some(stream))
}

#[no_mangle]
pub extern "C" fn cuMemcpyDtoHAsync_v2(
    to: *mut c_void,
    from: CUdeviceptr,
    size: usize,
    stream: CUstream,
) -> CUresult {
    copy(Side::Cpu(to as u64), Side::Gpu(from), size, Some(stream))
}

#[no_mangle]
pub extern "C" fn cuMemcpyDtoDAsync_v2(
    to: CUdeviceptr,
    from: CUdeviceptr,
    size: usize,
    stream: CUstream,
) -> CUresult {
    copy(Side::Gpu(to), Side::Gpu(from), size, Some(stream))
}

#[no_mangle]
pub extern "C" fn cuMemsetD8_v2(to: CUdeviceptr, value: u8, count: usize) -> CUresult {
    fill(to, &[value], count, None)
}

#[no_mangle]
pub extern "C" fn cuMemsetD16_v2(to: CUdeviceptr, value: u16, count: usize) -> CUresult {
    fill(to, &value.to_ne_bytes(), count, None)
}

#[no_mangle]
pub extern "C" fn cuMemsetD32_v2(to: CUdeviceptr, value: u32, count: usize) -> CUresult {
    fill(to, &value.to_ne_bytes(), count, None)
}

#[no_mangle]
pub extern "C" fn cuMemsetD8Async(
    to: CUdeviceptr,
    value: u8,
    count: usize,
    stream: CUstream,
) -> CUresult {
    fill(to, &[value], count, Some(stream))
}

#[no_mangle]
pub extern "C" fn cuMemsetD32Async(
    to: CUdeviceptr,
    value: u32,
    count: usize,
    stream: CUstream,
) -> CUresult {
    fill(to, &value.to_ne_bytes(), count, Some(stream))
}
