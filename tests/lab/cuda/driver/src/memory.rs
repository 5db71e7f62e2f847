// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPU memory that is allocated, and by whom.
//!
//! The driver is asked for blocks of whole 2 MiB. What is larger than half a
//! block has blocks of its own; smaller buffers share one, at distances of 512
//! bytes, so neighbours may have bytes in the same 64 KiB page. A block goes back
//! to the driver, which revokes what is pinned of it, with the last buffer in it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::context::{self, Context};
use crate::error::Result;
use crate::gpu::{self, gpu, Where, BLOCK};
use crate::handles::around;
use crate::sys::{self, CUdeviceptr, CUresult};
use crate::{answer, ensure, locked, required, space, stream};

/// The largest buffer that shares a block.
const SHARED_MAX: u64 = BLOCK / 2;

/// Where buffers in a block may begin.
const STEP: u64 = 512;

/// Consecutive addresses that were allocated, or mapped, as one.
#[derive(Clone)]
pub struct Buffer {
    pub size: u64,
    /// Of memory that was mapped: none, for no context has it.
    pub context: Option<u64>,
    /// As the driver mapped it: the buffer itself, or the block that it is in.
    pub block: u64,
    /// Never that of another buffer in this process.
    pub id: u64,
    pub sync_memops: bool,
    /// Whether others may pin it.
    pub p2p: bool,
    pub readable: bool,
    pub writable: bool,
}

struct Block {
    size: u64,
    /// Small buffers may be added to it.
    shared: bool,
    context: u64,
    /// Sizes of the buffers in it, by their addresses.
    used: BTreeMap<u64, u64>,
}

pub struct Memory {
    blocks: BTreeMap<u64, Block>,
    pub buffers: BTreeMap<u64, Buffer>,
}

static MEMORY: Mutex<Memory> = Mutex::new(Memory {
    blocks: BTreeMap::new(),
    buffers: BTreeMap::new(),
});

pub fn memory() -> MutexGuard<'static, Memory> {
    locked(&MEMORY)
}

pub fn fresh_id() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(1);
    LAST.fetch_add(1, Ordering::Relaxed)
}

/// The buffer around an address, and where it begins.
pub fn buffer_at(address: u64) -> Option<(u64, Buffer)> {
    let memory = memory();
    let (start, buffer) = around(&memory.buffers, address, |buffer| buffer.size)?;
    Some((start, buffer.clone()))
}

/// Whether these bytes are the GPU's: then all of them must be, and accessible.
pub fn is_device(address: u64, size: u64, write: bool) -> Result<bool> {
    let memory = memory();
    let end = address
        .checked_add(size)
        .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
    let mut at = address;
    while at < end || at == address {
        match around(&memory.buffers, at, |buffer| buffer.size) {
            None => {
                ensure(at == address, sys::CUDA_ERROR_INVALID_VALUE)?;
                return Ok(false);
            }
            Some((start, buffer)) => {
                let permitted = if write {
                    buffer.writable
                } else {
                    buffer.readable
                };
                ensure(permitted, sys::CUDA_ERROR_INVALID_VALUE)?;
                at = start + buffer.size;
                // What is mapped may go on in the next mapping.
                ensure(
                    at >= end || buffer.context.is_none(),
                    sys::CUDA_ERROR_INVALID_VALUE,
                )?;
            }
        }
    }
    Ok(true)
}

impl Block {
    /// The first room for `size` bytes.
    fn room(&self, start: u64, size: u64) -> Option<u64> {
        let mut at = start;
        for (&used, &length) in &self.used {
            if used - at >= size {
                break;
            }
            at = (used + length).next_multiple_of(STEP);
        }
        (at + size <= start + self.size).then_some(at)
    }
}

impl Memory {
    fn new_block(&mut self, context: &Context, size: u64, shared: bool) -> Result<u64> {
        let gpu = gpu()?;
        let start = space::take(size, BLOCK, |address| {
            gpu.map(address, size, Where::Fresh { p2p: true }, false)
        })?;
        let block = Block {
            size,
            shared,
            context: context.handle,
            used: BTreeMap::new(),
        };
        self.blocks.insert(start, block);
        Ok(start)
    }

    fn allocate(&mut self, context: &Context, size: u64) -> Result<u64> {
        let shared = size <= SHARED_MAX;
        let room = self.blocks.iter().find_map(|(&start, block)| {
            let fits = shared && block.shared && block.context == context.handle;
            Some((start, block.room(start, size).filter(|_| fits)?))
        });
        let (start, address) = match room {
            Some(found) => found,
            None => {
                let whole = size.checked_next_multiple_of(BLOCK);
                let whole = whole.ok_or(sys::CUDA_ERROR_OUT_OF_MEMORY)?;
                let start = self.new_block(context, whole, shared)?;
                (start, start)
            }
        };
        if let Some(block) = self.blocks.get_mut(&start) {
            block.used.insert(address, size);
        }
        self.buffers.insert(
            address,
            Buffer {
                size,
                context: Some(context.handle),
                block: start,
                id: fresh_id(),
                sync_memops: false,
                p2p: true,
                readable: true,
                writable: true,
            },
        );
        Ok(address)
    }

    fn free(&mut self, address: u64) -> Result {
        let buffer = self
            .buffers
            .get(&address)
            .filter(|buffer| buffer.context.is_some())
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)?;
        let start = buffer.block;
        self.buffers.remove(&address);
        let Some(block) = self.blocks.get_mut(&start) else {
            return Err(sys::CUDA_ERROR_UNKNOWN);
        };
        block.used.remove(&address);
        if block.used.is_empty() {
            let size = block.size;
            self.blocks.remove(&start);
            gpu::unmap(start, size).map_err(|_| sys::CUDA_ERROR_OPERATING_SYSTEM)?;
            space::give(start);
        }
        Ok(())
    }
}

/// What a context that ends has left.
pub fn free_all_of(context: u64) {
    let mut memory = memory();
    let left: Vec<u64> = memory
        .buffers
        .iter()
        .filter(|(_, buffer)| buffer.context == Some(context))
        .map(|(&address, _)| address)
        .collect();
    for address in left {
        // Only the kernel could fail here, and nobody is left to be told.
        let _ = memory.free(address);
    }
}

#[no_mangle]
pub extern "C" fn cuMemAlloc_v2(address: Option<&mut CUdeviceptr>, size: usize) -> CUresult {
    answer(|| {
        let place = required(address)?;
        let context = context::current()?;
        ensure(size > 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        *place = memory().allocate(&context, size as u64)?;
        Ok(())
    })
}

/// Waits for the work of all streams first, as CUDA does.
#[no_mangle]
pub extern "C" fn cuMemFree_v2(address: CUdeviceptr) -> CUresult {
    answer(|| {
        stream::wait_for_all_of(&*context::current()?)?;
        memory().free(address)
    })
}

#[no_mangle]
pub extern "C" fn cuMemGetAddressRange_v2(
    start: Option<&mut CUdeviceptr>,
    size: Option<&mut usize>,
    address: CUdeviceptr,
) -> CUresult {
    answer(|| {
        context::current()?;
        let (first, buffer) = buffer_at(address).ok_or(sys::CUDA_ERROR_NOT_FOUND)?;
        if let Some(place) = start {
            *place = first;
        }
        if let Some(place) = size {
            *place = buffer.size as usize;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rooms_in_a_block() {
        let mut block = Block {
            size: BLOCK,
            shared: true,
            context: 1,
            used: BTreeMap::new(),
        };
        assert_eq!(block.room(BLOCK, 1), Some(BLOCK));
        block.used.insert(BLOCK, 1);
        assert_eq!(block.room(BLOCK, 1000), Some(BLOCK + 512));
        block.used.insert(BLOCK + 512, 1000);
        assert_eq!(block.room(BLOCK, 8), Some(BLOCK + 1536));
        block.used.remove(&BLOCK);
        assert_eq!(block.room(BLOCK, 512), Some(BLOCK));
        assert_eq!(block.room(BLOCK, 513), Some(BLOCK + 1536));
        assert_eq!(block.room(BLOCK, BLOCK), None);
    }
}
