// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The CUDA runtime, as far as programs need it that only allocate and copy
//! (tests/lab/cuda/include/cuda_runtime.h). Its errors are the driver's numbers.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

type Error = u32;

const SUCCESS: Error = 0;
const INVALID_VALUE: Error = 1;
const INVALID_DEVICE: Error = 101;
const INVALID_MEMCPY_DIRECTION: Error = 21;

type Context = *mut c_void;

#[link(name = "cuda")]
extern "C" {
    fn cuInit(flags: u32) -> Error;
    fn cuDevicePrimaryCtxRetain(context: *mut Context, device: c_int) -> Error;
    fn cuCtxGetCurrent(context: *mut Context) -> Error;
    fn cuCtxSetCurrent(context: Context) -> Error;
    fn cuCtxSynchronize() -> Error;
    fn cuMemAlloc_v2(address: *mut u64, size: usize) -> Error;
    fn cuMemFree_v2(address: u64) -> Error;
    fn cuMemcpy(to: u64, from: u64, size: usize) -> Error;
    fn cuMemcpyHtoD_v2(to: u64, from: *const c_void, size: usize) -> Error;
    fn cuMemcpyDtoH_v2(to: *mut c_void, from: u64, size: usize) -> Error;
    fn cuMemcpyDtoD_v2(to: u64, from: u64, size: usize) -> Error;
    fn cuGetErrorString(error: Error, text: *mut *const c_char) -> Error;
}

/// The primary context, which is never given back.
fn primary() -> Result<Context, Error> {
    static PRIMARY: OnceLock<Result<usize, Error>> = OnceLock::new();
    let made = PRIMARY.get_or_init(|| {
        let mut context = ptr::null_mut();
        // SAFETY: results go to a variable that outlives the calls.
        match unsafe { (cuInit(0), cuDevicePrimaryCtxRetain(&raw mut context, 0)) } {
            (SUCCESS, SUCCESS) => Ok(context as usize),
            (SUCCESS, error) | (error, _) => Err(error),
        }
    });
    made.map(ptr::without_provenance_mut)
}

/// A context for this thread: the one that it has, or the primary one.
fn prepared() -> Result<(), Error> {
    let context = primary()?;
    let mut current = ptr::null_mut();
    // SAFETY: the result goes to a variable that outlives the call.
    let error = unsafe { cuCtxGetCurrent(&raw mut current) };
    if error != SUCCESS {
        return Err(error);
    }
    if current.is_null() {
        // SAFETY: a context of this process.
        return code(unsafe { cuCtxSetCurrent(context) });
    }
    Ok(())
}

fn code(error: Error) -> Result<(), Error> {
    if error == SUCCESS {
        Ok(())
    } else {
        Err(error)
    }
}

fn answer(result: Result<(), Error>) -> Error {
    result.err().unwrap_or(SUCCESS)
}

#[no_mangle]
extern "C" fn cudaSetDevice(device: c_int) -> Error {
    if device != 0 {
        return INVALID_DEVICE;
    }
    answer(primary().and_then(|context| {
        // SAFETY: a context of this process.
        code(unsafe { cuCtxSetCurrent(context) })
    }))
}

/// No bytes are no memory, and no error.
#[no_mangle]
extern "C" fn cudaMalloc(address: Option<&mut u64>, size: usize) -> Error {
    let Some(address) = address else {
        return INVALID_VALUE;
    };
    *address = 0;
    if size == 0 {
        return SUCCESS;
    }
    // SAFETY: the result goes to the caller's variable.
    answer(prepared().and_then(|()| code(unsafe { cuMemAlloc_v2(address, size) })))
}

#[no_mangle]
extern "C" fn cudaFree(address: u64) -> Error {
    answer(prepared().and_then(|()| {
        if address == 0 {
            return Ok(());
        }
        // SAFETY: the driver knows what it has given out.
        code(unsafe { cuMemFree_v2(address) })
    }))
}

#[no_mangle]
extern "C" fn cudaMemcpy(to: u64, from: u64, size: usize, kind: u32) -> Error {
    let host = |address: u64| ptr::without_provenance_mut(address as usize);
    answer(prepared().and_then(|()| {
        // SAFETY: the driver checks addresses of the GPU; those of the CPU are
        // the caller's.
        code(unsafe {
            match kind {
                1 => cuMemcpyHtoD_v2(to, host(from), size),
                2 => cuMemcpyDtoH_v2(host(to), from, size),
                3 => cuMemcpyDtoD_v2(to, from, size),
                0 | 4 => cuMemcpy(to, from, size),
                _ => return Err(INVALID_MEMCPY_DIRECTION),
            }
        })
    }))
}

#[no_mangle]
extern "C" fn cudaDeviceSynchronize() -> Error {
    // SAFETY: without arguments.
    answer(prepared().and_then(|()| code(unsafe { cuCtxSynchronize() })))
}

#[no_mangle]
extern "C" fn cudaGetErrorString(error: Error) -> *const c_char {
    let mut text = ptr::null();
    // SAFETY: the result goes to a variable that outlives the call.
    match unsafe { cuGetErrorString(error, &raw mut text) } {
        SUCCESS => text,
        _ => c"unrecognized error code".as_ptr(),
    }
}
