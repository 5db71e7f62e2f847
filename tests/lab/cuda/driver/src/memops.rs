// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Words in memory that a stream waits for, or writes.

use std::slice;
use std::thread;

use crate::error::Result;
use crate::gpu::gpu;
use crate::stream::{self, Stream};
use crate::sys::{self, CUdeviceptr, CUresult, CUstream, CUstreamBatchMemOpParams};
use crate::{answer, ensure, host, memory};

/// A word of 4 or 8 bytes.
#[derive(Clone, Copy)]
struct Word {
    address: u64,
    size: u64,
    device: bool,
}

impl Word {
    fn new(address: u64, size: u64, write: bool) -> Result<Self> {
        let device = memory::is_device(address, size, write)?;
        ensure(
            address % size == 0 && (device || host::reachable(address, size)),
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        Ok(Self {
            address,
            size,
            device,
        })
    }

    fn get(self) -> Result<u64> {
        let mut value = 0u64;
        if self.device {
            gpu()?.copy(&raw mut value as u64, self.address, self.size)?;
            return Ok(value);
        }
        // SAFETY: aligned and reachable, by new(); the program keeps memory that
        // it has registered for as long as its streams use it.
        Ok(unsafe {
            match self.size {
                4 => host::read::<u32>(self.address).into(),
                _ => host::read(self.address),
            }
        })
    }

    fn set(self, value: u64) -> Result {
        if self.device {
            return gpu()?.copy(self.address, &raw const value as u64, self.size);
        }
        // SAFETY: as in get().
        unsafe {
            match self.size {
                4 => host::write(self.address, value as u32),
                _ => host::write(self.address, value),
            }
        }
        Ok(())
    }

    /// The same distance on both sides of 0, whatever the size.
    fn at_least(self, found: u64, value: u64) -> bool {
        match self.size {
            4 => (found as u32).wrapping_sub(value as u32) as i32 >= 0,
            _ => found.wrapping_sub(value) as i64 >= 0,
        }
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.size)
    }
}

#[derive(Clone, Copy)]
enum Operation {
    Wait {
        word: Word,
        value: u64,
        until: u32,
    },
    Write {
        word: Word,
        value: u64,
    },
    /// Nothing is on its way in this GPU, and memory has an order.
    Nothing,
}

impl Operation {
    fn wait(address: u64, size: u64, value: u64, flags: u32) -> Result<Self> {
        let until = flags & !sys::CU_STREAM_WAIT_VALUE_FLUSH;
        ensure(
            until <= sys::CU_STREAM_WAIT_VALUE_NOR,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        let word = Word::new(address, size, false)?;
        Ok(Self::Wait { word, value, until })
    }

    fn write(address: u64, size: u64, value: u64, flags: u32) -> Result<Self> {
        ensure(
            flags & !sys::CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER == 0,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        let word = Word::new(address, size, true)?;
        Ok(Self::Write { word, value })
    }

    fn of(params: &CUstreamBatchMemOpParams) -> Result<Self> {
        // SAFETY: every arm begins with it.
        let operation = unsafe { params.operation };
        // SAFETY: plain numbers, of which any are good. Both arms are the same.
        let it = unsafe { &params.waitValue };
        // SAFETY: numbers, likewise.
        let value = unsafe { it.__bindgen_anon_1.value64 };
        let short = value & u64::from(u32::MAX);
        match operation {
            sys::CU_STREAM_MEM_OP_WAIT_VALUE_32 => Self::wait(it.address, 4, short, it.flags),
            sys::CU_STREAM_MEM_OP_WAIT_VALUE_64 => Self::wait(it.address, 8, value, it.flags),
            sys::CU_STREAM_MEM_OP_WRITE_VALUE_32 => Self::write(it.address, 4, short, it.flags),
            sys::CU_STREAM_MEM_OP_WRITE_VALUE_64 => Self::write(it.address, 8, value, it.flags),
            sys::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES | sys::CU_STREAM_MEM_OP_BARRIER => {
                Ok(Self::Nothing)
            }
            _ => Err(sys::CUDA_ERROR_NOT_SUPPORTED),
        }
    }

    fn run(self, stream: &Stream) -> Result {
        let Self::Wait { word, value, until } = self else {
            return match self {
                Self::Write { word, value } => word.set(value),
                _ => Ok(()),
            };
        };
        while !stream.stopped() {
            let found = word.get()?;
            let met = match until {
                sys::CU_STREAM_WAIT_VALUE_GEQ => word.at_least(found, value),
                sys::CU_STREAM_WAIT_VALUE_EQ => found == value,
                sys::CU_STREAM_WAIT_VALUE_AND => found & value != 0,
                _ => !(found | value) & word.mask() != 0,
            };
            if met {
                break;
            }
            thread::yield_now();
        }
        Ok(())
    }
}

fn enqueue(stream: CUstream, operation: Result<Operation>) -> CUresult {
    answer(|| {
        let stream = stream::find(stream)?;
        let operation = operation?;
        stream::enqueue(&stream, move |stream| operation.run(stream))
    })
}

#[no_mangle]
pub extern "C" fn cuStreamWaitValue32_v2(
    stream: CUstream,
    address: CUdeviceptr,
    value: u32,
    flags: u32,
) -> CUresult {
    enqueue(stream, Operation::wait(address, 4, value.into(), flags))
}

#[no_mangle]
pub extern "C" fn cuStreamWaitValue64_v2(
    stream: CUstream,
    address: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CUresult {
    enqueue(stream, Operation::wait(address, 8, value, flags))
}

#[no_mangle]
pub extern "C" fn cuStreamWriteValue32_v2(
    stream: CUstream,
    address: CUdeviceptr,
    value: u32,
    flags: u32,
) -> CUresult {
    enqueue(stream, Operation::write(address, 4, value.into(), flags))
}

#[no_mangle]
pub extern "C" fn cuStreamWriteValue64_v2(
    stream: CUstream,
    address: CUdeviceptr,
    value: u64,
    flags: u32,
) -> CUresult {
    enqueue(stream, Operation::write(address, 8, value, flags))
}

/// All of them, or none.
#[no_mangle]
pub extern "C" fn cuStreamBatchMemOp_v2(
    stream: CUstream,
    count: u32,
    operations: *mut CUstreamBatchMemOpParams,
    flags: u32,
) -> CUresult {
    answer(|| {
        let stream = stream::find(stream)?;
        ensure(
            count > 0 && count <= 256 && !operations.is_null() && flags == 0,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        // SAFETY: the caller's array of so many.
        let operations = unsafe { slice::from_raw_parts(operations, count as usize) };
        let operations = operations
            .iter()
            .map(Operation::of)
            .collect::<Result<Vec<_>>>()?;
        stream::enqueue(&stream, move |stream| {
            operations
                .into_iter()
                .try_for_each(|operation| operation.run(stream))
        })
    })
}
