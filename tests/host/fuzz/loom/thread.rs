// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Implements threads as coroutines of one system thread.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    rc::Rc,
};

use generator::{Generator, Gn};

/// The size of a stack in words. The stack is large enough for the report of a failure.
const STACK: usize = 1 << 16;

thread_local! {
    static THREADS: RefCell<Vec<Rc<Coroutine>>> = const { RefCell::new(Vec::new()) };
    static CURRENT: RefCell<Option<Rc<Coroutine>>> = const { RefCell::new(None) };
}

/// A coroutine. It runs one thread at a time, and runs another thread after that thread has ended.
struct Coroutine {
    number: usize,
    /// The coroutine's stack and state. [`None`] while the coroutine runs.
    generator: RefCell<Option<Generator<'static, (), ()>>>,
    work: RefCell<Option<Box<dyn FnOnce()>>>,
    busy: Cell<bool>,
    /// The address of the object for which the thread waits, if it waits.
    waits_for: Cell<Option<usize>>,
    /// The number of points that the thread still passes before it stops. If this is [`None`], the
    /// thread does not stop.
    points: Cell<Option<u32>>,
}

impl Coroutine {
    fn new(number: usize) -> Rc<Self> {
        let this = Rc::new(Self {
            number,
            generator: RefCell::default(),
            work: RefCell::default(),
            busy: Cell::new(false),
            waits_for: Cell::new(None),
            points: Cell::new(None),
        });
        let generator = Gn::new_opt(STACK, move || loop {
            let this = THREADS.with_borrow(|threads| threads[number - 1].clone());
            let work = this.work.take().expect("a started thread has work");
            work();
            this.busy.set(false);
            stop();
        });
        this.generator.replace(Some(generator));
        this
    }

    /// Returns a coroutine that runs no thread now. If there is none, makes a new coroutine.
    fn idle() -> Rc<Self> {
        THREADS.with_borrow_mut(|threads| {
            let idle = threads.iter().find(|one| !one.busy.get()).cloned();
            idle.unwrap_or_else(|| {
                threads.push(Self::new(threads.len() + 1));
                threads[threads.len() - 1].clone()
            })
        })
    }
}

/// The number of a thread. The thread that spawns the others has the number 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(usize);

/// A thread.
pub struct Thread(ThreadId);

impl Thread {
    /// Returns the thread's number. After the thread has ended, another thread may have the same
    /// number.
    pub fn id(&self) -> ThreadId {
        self.0
    }
}

/// Returns the running thread.
pub fn current() -> Thread {
    let number = CURRENT.with_borrow(|current| current.as_ref().map_or(0, |one| one.number));
    Thread(ThreadId(number))
}

/// The progress of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// The thread has ended.
    Over,
    /// The thread can continue.
    Paused,
    /// The thread waits for another thread.
    Waiting,
}

/// A thread, and its result.
pub struct JoinHandle<T> {
    coroutine: Rc<Coroutine>,
    result: Rc<RefCell<Option<T>>>,
}

/// Makes a thread. The thread runs only during calls to [`JoinHandle::go_on`] and
/// [`JoinHandle::join`].
pub fn spawn<T: 'static>(work: impl FnOnce() -> T + 'static) -> JoinHandle<T> {
    let coroutine = Coroutine::idle();
    coroutine.busy.set(true);
    let result = Rc::new(RefCell::new(None));
    let place = result.clone();
    coroutine.work.replace(Some(Box::new(move || {
        let result = work();
        place.replace(Some(result));
    })));
    JoinHandle { coroutine, result }
}

impl<T> JoinHandle<T> {
    /// Returns the thread's progress.
    pub fn stopped(&self) -> Stopped {
        match self.coroutine.waits_for.get() {
            _ if self.result.borrow().is_some() => Stopped::Over,
            Some(_) => Stopped::Waiting,
            None => Stopped::Paused,
        }
    }

    /// Lets the thread run until it ends, waits, or has passed `points` points.
    pub fn go_on(&self, points: Option<u32>) -> Stopped {
        assert_eq!(self.stopped(), Stopped::Paused);
        let coroutine = &self.coroutine;
        coroutine.points.set(points);
        let before = CURRENT.replace(Some(coroutine.clone()));
        assert!(before.is_none(), "only the first thread lets others run");
        let mut generator = coroutine
            .generator
            .take()
            .expect("the thread is not running");
        generator.resume();
        coroutine.generator.replace(Some(generator));
        CURRENT.take();
        self.stopped()
    }

    /// Returns how many points the thread would still have passed before its stop.
    pub fn points_left(&self) -> Option<u32> {
        self.coroutine.points.get()
    }

    /// Runs the thread to its end, and returns its result.
    pub fn join(self) -> Result<T, Infallible> {
        while self.stopped() == Stopped::Paused {
            self.go_on(None);
        }
        Ok(self.result.take().expect("deadlock"))
    }
}

/// Marks a point at which the thread may stop so that another thread runs.
pub fn point() {
    let stops = CURRENT.with_borrow(|current| {
        let Some(one) = current else { return false };
        let left = one.points.get();
        one.points.set(left.map(|left| left.saturating_sub(1)));
        left == Some(0)
    });
    if stops {
        stop();
    }
}

/// Stops this thread, and lets the first thread continue.
#[allow(deprecated)] // Its replacement needs a value that each caller would have to pass on.
fn stop() {
    generator::yield_with(());
}

/// Makes the thread wait until [`wake`] is called for `address`.
pub(crate) fn wait(address: usize) {
    let current = CURRENT.with_borrow(Clone::clone);
    let current = current.expect("deadlock: there is no other thread that could go on");
    current.waits_for.set(Some(address));
    stop();
}

/// Ends the waits of all threads that wait for `address`.
pub(crate) fn wake(address: usize) {
    THREADS.with_borrow(|threads| {
        let waiting = threads
            .iter()
            .filter(|one| one.waits_for.get() == Some(address));
        waiting.for_each(|one| one.waits_for.set(None));
    });
}
