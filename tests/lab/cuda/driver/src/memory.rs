// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! GPU memory that is allocated, and by whom.
//!
//! The driver is asked for blocks of whole 2 MiB. Buffers of up to 2 MiB share
//! them, each at the first multiple of 512 bytes where it fits, so neighbours may
//! have bytes in the same 64 KiB page; what is larger has blocks of its own. A
//! block goes back to the driver, which revokes what is pinned of it, with the
//! last buffer in it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use crate::context::{self, Context};
use crate::error::Result;
use crate::gpu::{self, gpu, Where, BLOCK};
use crate::handles::around;
use crate::sys::{self, CUdeviceptr, CUresult};
use crate::{answer, ensure, locked, required, space, stream};

/// Where buffers in a block may begin.
const STEP: u64 = 512;

/// Consecutive addresses that were allocated, or mapped, as one.
#[derive(Clone)]
pub struct Buffer {
    pub size: u64,
    /// Of memory that was mapped: none, for no context has it.
    pub context: Option<u64>,
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
        (size <= start + self.size - at).then_some(at)
    }
}

impl Memory {
    fn new_block(&mut self, context: &Context, size: u64) -> Result<u64> {
        let gpu = gpu()?;
        let start = space::take(size, BLOCK, |address| {
            gpu.map(address, size, Where::Fresh { p2p: true }, false)
        })?;
        let block = Block {
            size,
            context: context.handle,
            used: BTreeMap::new(),
        };
        self.blocks.insert(start, block);
        Ok(start)
    }

    /// The first block of a context with room for `size` bytes, and where in it.
    fn room(&self, context: u64, size: u64) -> Option<(u64, u64)> {
        self.blocks
            .iter()
            .filter(|(_, block)| block.context == context && block.size == BLOCK)
            .find_map(|(&start, block)| Some((start, block.room(start, size)?)))
    }

    fn allocate(&mut self, context: &Context, size: u64) -> Result<u64> {
        let (start, address) = match self.room(context.handle, size) {
            Some(found) => found,
            None => {
                let whole = size.checked_next_multiple_of(BLOCK);
                let whole = whole.ok_or(sys::CUDA_ERROR_OUT_OF_MEMORY)?;
                let start = self.new_block(context, whole)?;
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
                id: fresh_id(),
                sync_memops: false,
                p2p: true,
                readable: true,
                writable: true,
            },
        );
        Ok(address)
    }

    /// The context of the buffer that begins there.
    fn owner(&self, address: u64) -> Result<u64> {
        self.buffers
            .get(&address)
            .and_then(|buffer| buffer.context)
            .ok_or(sys::CUDA_ERROR_INVALID_VALUE)
    }

    fn free(&mut self, address: u64) -> Result {
        self.owner(address)?;
        self.buffers.remove(&address);
        let start = around(&self.blocks, address, |block| block.size).map(|(start, _)| start);
        let start = start.ok_or(sys::CUDA_ERROR_UNKNOWN)?;
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

/// Waits for the work of all streams first, as CUDA does. The context is the
/// buffer's: the thread needs none.
#[no_mangle]
pub extern "C" fn cuMemFree_v2(address: CUdeviceptr) -> CUresult {
    answer(|| {
        gpu()?;
        let owner = memory().owner(address)?;
        if let Some(context) = context::get(owner) {
            stream::wait_for_all_of(&context)?;
        }
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

    fn block(size: u64, context: u64, used: &[(u64, u64)]) -> Block {
        Block {
            size,
            context,
            used: used.iter().copied().collect(),
        }
    }

    #[test]
    fn which_block_has_room() {
        let memory = Memory {
            blocks: BTreeMap::from([
                (BLOCK, block(BLOCK, 1, &[(BLOCK, BLOCK)])),
                (2 * BLOCK, block(2 * BLOCK, 1, &[(2 * BLOCK, BLOCK + 1)])),
                (4 * BLOCK, block(BLOCK, 2, &[(4 * BLOCK, 1)])),
                (5 * BLOCK, block(BLOCK, 1, &[(5 * BLOCK, BLOCK / 2 + 1)])),
                (6 * BLOCK, block(BLOCK, 1, &[(6 * BLOCK, 100)])),
            ]),
            buffers: BTreeMap::new(),
        };
        let behind = 5 * BLOCK + BLOCK / 2 + STEP;
        assert_eq!(memory.room(1, 1), Some((5 * BLOCK, behind)));
        assert_eq!(
            memory.room(1, BLOCK / 2 + 1),
            Some((6 * BLOCK, 6 * BLOCK + STEP))
        );
        assert_eq!(memory.room(1, BLOCK), None);
        assert_eq!(memory.room(1, u64::MAX), None);
        assert_eq!(memory.room(2, 1), Some((4 * BLOCK, 4 * BLOCK + STEP)));
        assert_eq!(memory.room(3, 1), None);
    }

    #[test]
    fn rooms_in_a_block() {
        let mut block = block(BLOCK, 1, &[]);
        assert_eq!(block.room(BLOCK, 1), Some(BLOCK));
        block.used.insert(BLOCK, 1);
        assert_eq!(block.room(BLOCK, 1000), Some(BLOCK + 512));
        block.used.insert(BLOCK + 512, 1000);
        assert_eq!(block.room(BLOCK, 8), Some(BLOCK + 1536));
        block.used.remove(&BLOCK);
        assert_eq!(block.room(BLOCK, 512), Some(BLOCK));
        assert_eq!(block.room(BLOCK, 513), Some(BLOCK + 1536));
        assert_eq!(
            block.room(BLOCK, BLOCK - 1536),
            Some(BLOCK + 1536),
            "up to the end"
        );
        assert_eq!(block.room(BLOCK, BLOCK - 1535), None);
    }
}
