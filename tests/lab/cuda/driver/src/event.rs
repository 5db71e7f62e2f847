// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Events: moments in the work of streams.

use std::ptr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use crate::context;
use crate::error::Result;
use crate::gpu::gpu;
use crate::handles::{self, Handles};
use crate::stream::{self, Stream};
use crate::sys::{self, CUevent, CUresult, CUstream};
use crate::{answer, ensure, locked, required};

struct Event {
    flags: u32,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// How often it was recorded, and how many of these are past.
    recorded: u64,
    past: u64,
    at: Option<Instant>,
}

static EVENTS: Handles<Event> = Handles::new();

fn find(event: CUevent) -> Result<Arc<Event>> {
    gpu()?;
    EVENTS
        .get(event as u64)
        .ok_or(sys::CUDA_ERROR_INVALID_HANDLE)
}

impl Event {
    fn recorded(&self) -> u64 {
        locked(&self.state).recorded
    }

    fn pass(&self, count: u64) {
        let mut state = locked(&self.state);
        state.past = state.past.max(count);
        state.at = Some(Instant::now());
        self.changed.notify_all();
    }

    /// Until so many records of it are past, or the stream that waits ends.
    fn wait_for(&self, count: u64, stream: Option<&Stream>) {
        let mut state = locked(&self.state);
        while state.past < count && !stream.is_some_and(Stream::stopped) {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Streams that end may be waiting here.
pub fn wake_all() {
    for event in EVENTS.all() {
        let _state = locked(&event.state);
        event.changed.notify_all();
    }
}

#[no_mangle]
pub extern "C" fn cuEventCreate(event: Option<&mut CUevent>, flags: u32) -> CUresult {
    answer(|| {
        let place = required(event)?;
        context::current()?;
        let known = sys::CU_EVENT_BLOCKING_SYNC | sys::CU_EVENT_DISABLE_TIMING;
        ensure(
            flags & sys::CU_EVENT_INTERPROCESS == 0,
            sys::CUDA_ERROR_NOT_SUPPORTED,
        )?;
        ensure(flags & !known == 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        let handle = handles::fresh();
        let event = Event {
            flags,
            state: Mutex::default(),
            changed: Condvar::new(),
        };
        EVENTS.insert(handle, Arc::new(event));
        *place = ptr::without_provenance_mut(handle as usize);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuEventDestroy_v2(event: CUevent) -> CUresult {
    answer(|| {
        find(event)?;
        EVENTS.remove(event as u64);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuEventRecord(event: CUevent, stream: CUstream) -> CUresult {
    answer(|| {
        let (event, stream) = (find(event)?, stream::find(stream)?);
        let count = {
            let mut state = locked(&event.state);
            state.recorded += 1;
            state.recorded
        };
        stream::enqueue(&stream, move |_| {
            event.pass(count);
            Ok(())
        })
    })
}

#[no_mangle]
pub extern "C" fn cuStreamWaitEvent(stream: CUstream, event: CUevent, flags: u32) -> CUresult {
    answer(|| {
        let (event, stream) = (find(event)?, stream::find(stream)?);
        ensure(flags == 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        let count = event.recorded();
        stream::enqueue(&stream, move |stream| {
            event.wait_for(count, Some(stream));
            Ok(())
        })
    })
}

/// One that was never recorded is past.
#[no_mangle]
pub extern "C" fn cuEventQuery(event: CUevent) -> CUresult {
    answer(|| {
        let event = find(event)?;
        let state = locked(&event.state);
        ensure(state.past == state.recorded, sys::CUDA_ERROR_NOT_READY)
    })
}

#[no_mangle]
pub extern "C" fn cuEventSynchronize(event: CUevent) -> CUresult {
    answer(|| {
        let event = find(event)?;
        event.wait_for(event.recorded(), None);
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuEventElapsedTime(
    milliseconds: Option<&mut f32>,
    start: CUevent,
    end: CUevent,
) -> CUresult {
    answer(|| {
        let place = required(milliseconds)?;
        let moment = |event| -> Result<Instant> {
            let event: Arc<Event> = find(event)?;
            let state = locked(&event.state);
            ensure(
                event.flags & sys::CU_EVENT_DISABLE_TIMING == 0 && state.recorded > 0,
                sys::CUDA_ERROR_INVALID_HANDLE,
            )?;
            state
                .at
                .filter(|_| state.past == state.recorded)
                .ok_or(sys::CUDA_ERROR_NOT_READY)
        };
        let (start, end) = (moment(start)?, moment(end)?);
        *place = if end >= start {
            (end - start).as_secs_f32() * 1000.0
        } else {
            -(start - end).as_secs_f32() * 1000.0
        };
        Ok(())
    })
}
