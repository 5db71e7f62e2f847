// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Contexts: whose memory, streams and events are whose, and which one a thread
//! works with.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ptr;
use std::sync::{Arc, Mutex};

use crate::error::Result;
use crate::gpu;
use crate::handles::{self, Handles};
use crate::sys::{self, CUcontext, CUdevice, CUresult};
use crate::{answer, device, ensure, host, locked, memory, required, stream};

pub struct Context {
    pub handle: u64,
    flags: u32,
    primary: bool,
    /// Work that names no stream.
    pub default_stream: Arc<stream::Stream>,
}

static CONTEXTS: Handles<Context> = Handles::new();

/// Those that were destroyed. A thread may have one of them all the same, and what
/// it does in it fails.
static DESTROYED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// The one that all parts of a program can share, and how many do.
static PRIMARY: Mutex<Option<(u64, usize)>> = Mutex::new(None);

thread_local! {
    static STACK: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// The context of this thread.
pub fn current() -> Result<Arc<Context>> {
    gpu::gpu()?;
    let top = STACK.with_borrow(|stack| stack.last().copied());
    match top {
        None | Some(0) => Err(sys::CUDA_ERROR_INVALID_CONTEXT),
        Some(handle) => CONTEXTS
            .get(handle)
            .ok_or(sys::CUDA_ERROR_CONTEXT_IS_DESTROYED),
    }
}

pub fn get(handle: u64) -> Option<Arc<Context>> {
    CONTEXTS.get(handle)
}

fn find(context: CUcontext) -> Result<Arc<Context>> {
    gpu::gpu()?;
    CONTEXTS
        .get(context as u64)
        .ok_or(sys::CUDA_ERROR_INVALID_CONTEXT)
}

pub fn pointer(handle: u64) -> CUcontext {
    ptr::without_provenance_mut(handle as usize)
}

fn create(flags: u32, primary: bool) -> Result<Arc<Context>> {
    ensure(
        flags & !sys::CU_CTX_FLAGS_MASK == 0,
        sys::CUDA_ERROR_INVALID_VALUE,
    )?;
    let handle = handles::fresh();
    let context = Arc::new(Context {
        handle,
        flags,
        primary,
        default_stream: stream::Stream::new(handle, 0),
    });
    CONTEXTS.insert(handle, Arc::clone(&context));
    Ok(context)
}

/// Whoever still uses its memory is told to stop before it returns.
fn destroy(handle: u64) {
    locked(&DESTROYED).insert(handle);
    if let Some(context) = CONTEXTS.remove(handle) {
        stream::end_all_of(&context);
        memory::free_all_of(handle);
        host::free_all_of(handle);
    }
}

#[no_mangle]
pub extern "C" fn cuCtxCreate_v2(
    context: Option<&mut CUcontext>,
    flags: u32,
    device: CUdevice,
) -> CUresult {
    answer(|| {
        let place = required(context)?;
        device::check(device)?;
        let context = create(flags, false)?;
        STACK.with_borrow_mut(|stack| stack.push(context.handle));
        *place = pointer(context.handle);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxDestroy_v2(context: CUcontext) -> CUresult {
    answer(|| {
        let context = find(context)?;
        ensure(!context.primary, sys::CUDA_ERROR_INVALID_CONTEXT)?;
        STACK.with_borrow_mut(|stack| {
            if stack.last() == Some(&context.handle) {
                stack.pop();
            }
        });
        destroy(context.handle);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxPushCurrent_v2(context: CUcontext) -> CUresult {
    answer(|| {
        let handle = find(context)?.handle;
        STACK.with_borrow_mut(|stack| stack.push(handle));
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxPopCurrent_v2(context: Option<&mut CUcontext>) -> CUresult {
    answer(|| {
        gpu::gpu()?;
        let handle = STACK
            .with_borrow_mut(Vec::pop)
            .ok_or(sys::CUDA_ERROR_INVALID_CONTEXT)?;
        if let Some(place) = context {
            *place = pointer(handle);
        }
        Ok(())
    })
}

/// NULL takes the context of this thread away. One that was destroyed is taken as
/// well; only the next call that needs a context fails.
#[no_mangle]
pub extern "C" fn cuCtxSetCurrent(context: CUcontext) -> CUresult {
    answer(|| {
        gpu::gpu()?;
        let handle = context as u64;
        if handle != 0 && !locked(&DESTROYED).contains(&handle) {
            find(context)?;
        }
        STACK.with_borrow_mut(|stack| {
            stack.pop();
            stack.extend((handle != 0).then_some(handle));
        });
        Ok(())
    })
}

/// NULL where this thread has none.
#[no_mangle]
pub extern "C" fn cuCtxGetCurrent(context: Option<&mut CUcontext>) -> CUresult {
    answer(|| {
        gpu::gpu()?;
        let top = STACK.with_borrow(|stack| stack.last().copied());
        *required(context)? = pointer(top.unwrap_or(0));
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxGetDevice(device: Option<&mut CUdevice>) -> CUresult {
    answer(|| {
        current()?;
        *required(device)? = 0;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxGetFlags(flags: Option<&mut u32>) -> CUresult {
    answer(|| {
        *required(flags)? = current()?.flags;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxGetApiVersion(context: CUcontext, version: Option<&mut u32>) -> CUresult {
    answer(|| {
        if context.is_null() {
            current()?;
        } else {
            find(context)?;
        }
        // That of cuCtxCreate_v2.
        *required(version)? = 3020;
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuCtxSynchronize() -> CUresult {
    answer(|| stream::wait_for_all_of(&*current()?))
}

#[no_mangle]
pub extern "C" fn cuDevicePrimaryCtxRetain(
    context: Option<&mut CUcontext>,
    device: CUdevice,
) -> CUresult {
    answer(|| {
        let place = required(context)?;
        device::check(device)?;
        let mut primary = locked(&PRIMARY);
        let (handle, users) = match *primary {
            Some((handle, users)) => (handle, users + 1),
            None => (create(0, true)?.handle, 1),
        };
        *primary = Some((handle, users));
        *place = pointer(handle);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(device: CUdevice) -> CUresult {
    answer(|| {
        device::check(device)?;
        let mut primary = locked(&PRIMARY);
        let (handle, users) = primary.ok_or(sys::CUDA_ERROR_INVALID_CONTEXT)?;
        *primary = (users > 1).then_some((handle, users - 1));
        if primary.is_none() {
            destroy(handle);
        }
        Ok(())
    })
}

/// Everything in it goes, whoever uses it.
#[no_mangle]
pub extern "C" fn cuDevicePrimaryCtxReset_v2(device: CUdevice) -> CUresult {
    answer(|| {
        device::check(device)?;
        if let Some((handle, _)) = locked(&PRIMARY).take() {
            destroy(handle);
        }
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuDevicePrimaryCtxGetState(
    device: CUdevice,
    flags: Option<&mut u32>,
    active: Option<&mut i32>,
) -> CUresult {
    answer(|| {
        device::check(device)?;
        *required(flags)? = 0;
        *required(active)? = locked(&PRIMARY).is_some().into();
        Ok(())
    })
}
