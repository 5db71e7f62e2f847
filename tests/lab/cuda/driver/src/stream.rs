// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Streams: work that a thread for each of them does in order.
//!
//! Between the default stream of a context and the others there is the order
//! that CUDA calls legacy: what is given to the default stream begins when all
//! that the others had by then is done, and the other way round. Streams made
//! with CU_STREAM_NON_BLOCKING are left out of that.

use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::context::{self, Context};
use crate::error::Result;
use crate::gpu::gpu;
use crate::handles::{self, Handles};
use crate::sys::{self, CUcontext, CUresult, CUstream};
use crate::{answer, ensure, event, locked, required};

type Work = Box<dyn FnOnce(&Stream) -> Result + Send>;

pub struct Stream {
    handle: u64,
    context: u64,
    flags: u32,
    state: Mutex<State>,
    changed: Condvar,
    /// Whoever waits for something gives up.
    stop: AtomicBool,
}

#[derive(Default)]
struct State {
    queue: VecDeque<Work>,
    submitted: u64,
    done: u64,
    /// Of the first work that failed. What comes after it is not done.
    error: Option<CUresult>,
    /// A thread works on it.
    worker: bool,
    /// The program has let go of it.
    closing: bool,
}

/// Those that programs have made, and those that they have let go of before all
/// was done.
static STREAMS: Handles<Stream> = Handles::new();

impl Stream {
    pub fn new(context: u64, flags: u32) -> Arc<Self> {
        Arc::new(Self {
            handle: handles::fresh(),
            context,
            flags,
            state: Mutex::default(),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
        })
    }

    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn blocking(&self) -> bool {
        self.flags & sys::CU_STREAM_NON_BLOCKING == 0
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed
            .wait(state)
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn submit(self: &Arc<Self>, work: Work) -> Result {
        let mut state = locked(&self.state);
        if let Some(error) = state.error {
            return Err(error);
        }
        state.queue.push_back(work);
        state.submitted += 1;
        if !state.worker {
            state.worker = true;
            let stream = Arc::clone(self);
            thread::spawn(move || stream.run());
        }
        self.changed.notify_all();
        Ok(())
    }

    fn run(&self) {
        let mut state = locked(&self.state);
        loop {
            if let Some(work) = state.queue.pop_front() {
                let skip = state.error.is_some() || self.stopped();
                drop(state);
                let result = if skip { Ok(()) } else { work(self) };
                state = locked(&self.state);
                state.done += 1;
                state.error = state.error.or(result.err());
                self.changed.notify_all();
            } else if state.closing || self.stopped() {
                state.worker = false;
                STREAMS.remove(self.handle);
                self.changed.notify_all();
                return;
            } else {
                state = self.wait(state);
            }
        }
    }

    fn submitted(&self) -> u64 {
        locked(&self.state).submitted
    }

    /// Until as much as `count` is done.
    fn wait_for(&self, count: u64) -> Result {
        let mut state = locked(&self.state);
        while state.done < count && !self.stopped() {
            state = self.wait(state);
        }
        state.error.map_or(Ok(()), Err)
    }

    fn tell_to_stop(&self) {
        let _state = locked(&self.state);
        self.stop.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }

    fn join(&self) {
        let mut state = locked(&self.state);
        while state.worker {
            state = self.wait(state);
        }
    }
}

pub fn find(stream: CUstream) -> Result<Arc<Stream>> {
    gpu()?;
    match stream as u64 {
        0 | 1 => Ok(Arc::clone(&context::current()?.default_stream)),
        2 => Err(sys::CUDA_ERROR_NOT_SUPPORTED),
        handle => find_made(handle),
    }
}

/// One that the program has made, and not let go of.
fn find_made(handle: u64) -> Result<Arc<Stream>> {
    STREAMS
        .get(handle)
        .filter(|stream| !locked(&stream.state).closing)
        .ok_or(sys::CUDA_ERROR_INVALID_HANDLE)
}

/// The streams of a context but for its default stream.
fn others_of(context: u64) -> Vec<Arc<Stream>> {
    let mut streams = STREAMS.all();
    streams.retain(|stream| stream.context == context);
    streams
}

/// What has to be done before that which `stream` gets now.
fn before(stream: &Arc<Stream>) -> Result<Vec<(Arc<Stream>, u64)>> {
    let context = context::get(stream.context).ok_or(sys::CUDA_ERROR_CONTEXT_IS_DESTROYED)?;
    let mut streams = if Arc::ptr_eq(stream, &context.default_stream) {
        others_of(context.handle)
    } else {
        vec![Arc::clone(&context.default_stream)]
    };
    streams.retain(|other| other.blocking() && stream.blocking());
    let counted = streams.into_iter().map(|stream| {
        let count = stream.submitted();
        (stream, count)
    });
    Ok(counted.collect())
}

/// `work` is done when its turn comes.
pub fn enqueue(
    stream: &Arc<Stream>,
    work: impl FnOnce(&Stream) -> Result + Send + 'static,
) -> Result {
    let before = before(stream)?;
    stream.submit(Box::new(move |stream| {
        for (other, count) in before {
            other.wait_for(count)?;
        }
        work(stream)
    }))
}

/// `work` of the default stream, for which the caller waits.
pub fn at_once(context: &Context, work: impl FnOnce() -> Result) -> Result {
    let stream = &context.default_stream;
    for (other, count) in before(stream)? {
        other.wait_for(count)?;
    }
    stream.wait_for(stream.submitted())?;
    work()
}

pub fn wait_for_all_of(context: &Context) -> Result {
    for stream in others_of(context.handle) {
        stream.wait_for(stream.submitted())?;
    }
    let stream = &context.default_stream;
    stream.wait_for(stream.submitted())
}

/// No thread works for the context after this.
pub fn end_all_of(context: &Context) {
    let mut streams = others_of(context.handle);
    streams.push(Arc::clone(&context.default_stream));
    for stream in &streams {
        stream.tell_to_stop();
    }
    event::wake_all();
    for stream in streams {
        stream.join();
        STREAMS.remove(stream.handle);
    }
}

#[no_mangle]
pub extern "C" fn cuStreamCreate(stream: Option<&mut CUstream>, flags: u32) -> CUresult {
    answer(|| {
        let place = required(stream)?;
        let context = context::current()?;
        ensure(
            flags & !sys::CU_STREAM_NON_BLOCKING == 0,
            sys::CUDA_ERROR_INVALID_VALUE,
        )?;
        let stream = Stream::new(context.handle, flags);
        *place = std::ptr::without_provenance_mut(stream.handle as usize);
        STREAMS.insert(stream.handle, stream);
        Ok(())
    })
}

/// What it still has to do is done all the same.
#[no_mangle]
pub extern "C" fn cuStreamDestroy_v2(stream: CUstream) -> CUresult {
    answer(|| {
        gpu()?;
        let stream = find_made(stream as u64)?;
        let mut state = locked(&stream.state);
        state.closing = true;
        if !state.worker {
            STREAMS.remove(stream.handle);
        }
        stream.changed.notify_all();
        Ok(())
    })
}

#[no_mangle]
pub extern "C" fn cuStreamQuery(stream: CUstream) -> CUresult {
    answer(|| {
        let stream = find(stream)?;
        let state = locked(&stream.state);
        if let Some(error) = state.error {
            return Err(error);
        }
        ensure(state.done == state.submitted, sys::CUDA_ERROR_NOT_READY)
    })
}

#[no_mangle]
pub extern "C" fn cuStreamSynchronize(stream: CUstream) -> CUresult {
    answer(|| {
        let stream = find(stream)?;
        stream.wait_for(stream.submitted())
    })
}

#[no_mangle]
pub extern "C" fn cuStreamGetCtx(stream: CUstream, context: Option<&mut CUcontext>) -> CUresult {
    answer(|| {
        *required(context)? = context::pointer(find(stream)?.context);
        Ok(())
    })
}

/// What a program wants to be told with.
struct Data(*mut c_void);

// SAFETY: only handed to the program's own function, which expects it from
// another thread.
unsafe impl Send for Data {}

impl Data {
    /// By a call, so that a closure takes all of it, and not the pointer alone.
    fn get(&self) -> *mut c_void {
        self.0
    }
}

#[no_mangle]
pub extern "C" fn cuStreamAddCallback(
    stream: CUstream,
    callback: sys::CUstreamCallback,
    data: *mut c_void,
    flags: u32,
) -> CUresult {
    answer(|| {
        let callback = required(callback)?;
        ensure(flags == 0, sys::CUDA_ERROR_INVALID_VALUE)?;
        let (handle, data) = (stream as usize, Data(data));
        enqueue(&find(stream)?, move |_| {
            // SAFETY: the program's function, called as it asked for.
            unsafe {
                callback(
                    std::ptr::without_provenance_mut(handle),
                    sys::CUDA_SUCCESS,
                    data.get(),
                );
            }
            Ok(())
        })
    })
}

#[no_mangle]
pub extern "C" fn cuLaunchHostFunc(
    stream: CUstream,
    function: sys::CUhostFn,
    data: *mut c_void,
) -> CUresult {
    answer(|| {
        let function = required(function)?;
        let data = Data(data);
        enqueue(&find(stream)?, move |_| {
            // SAFETY: the program's function, called as it asked for.
            unsafe { function(data.get()) };
            Ok(())
        })
    })
}
