// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Threads, which are coroutines of one thread of the system.

use std::{
    cell::{Cell, RefCell},
    convert::Infallible,
    rc::Rc,
};

use generator::{Generator, Gn};

/// The words of a stack, with room for the report of a failure.
const STACK: usize = 1 << 16;

thread_local! {
    static THREADS: RefCell<Vec<Rc<Coroutine>>> = const { RefCell::new(Vec::new()) };
    static CURRENT: RefCell<Option<Rc<Coroutine>>> = const { RefCell::new(None) };
}

/// What runs threads, one after the other.
struct Coroutine {
    number: usize,
    /// Not there while it runs.
    generator: RefCell<Option<Generator<'static, (), ()>>>,
    work: RefCell<Option<Box<dyn FnOnce()>>>,
    busy: Cell<bool>,
    /// The address of what it waits for.
    waits_for: Cell<Option<usize>>,
    /// How many points it passes before it stops.
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
            let work = this.work.take().expect("it has something to do");
            work();
            this.busy.set(false);
            stop();
        });
        this.generator.replace(Some(generator));
        this
    }

    /// One that has nothing to do.
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

/// Which thread it is: 0 is the one that has spawned the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadId(usize);

/// A thread.
pub struct Thread(ThreadId);

impl Thread {
    /// Its number, which another one may have later.
    pub fn id(&self) -> ThreadId {
        self.0
    }
}

/// The thread that runs.
pub fn current() -> Thread {
    let number = CURRENT.with_borrow(|current| current.as_ref().map_or(0, |one| one.number));
    Thread(ThreadId(number))
}

/// How far a thread has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stopped {
    /// It has ended.
    Over,
    /// It can go on.
    Paused,
    /// It waits for another one.
    Waiting,
}

/// A thread, and what comes of it.
pub struct JoinHandle<T> {
    coroutine: Rc<Coroutine>,
    result: Rc<RefCell<Option<T>>>,
}

/// Makes a thread, which does not begin by itself.
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
    /// Where the thread is.
    pub fn stopped(&self) -> Stopped {
        match self.coroutine.waits_for.get() {
            _ if self.result.borrow().is_some() => Stopped::Over,
            Some(_) => Stopped::Waiting,
            None => Stopped::Paused,
        }
    }

    /// Lets the thread run until it ends, waits, or has passed so many points.
    pub fn go_on(&self, points: Option<u32>) -> Stopped {
        assert_eq!(self.stopped(), Stopped::Paused);
        let coroutine = &self.coroutine;
        coroutine.points.set(points);
        let before = CURRENT.replace(Some(coroutine.clone()));
        assert!(before.is_none(), "only the first thread lets others run");
        let mut generator = coroutine.generator.take().expect("it does not run");
        generator.resume();
        coroutine.generator.replace(Some(generator));
        CURRENT.take();
        self.stopped()
    }

    /// How many points it would still have passed.
    pub fn points_left(&self) -> Option<u32> {
        self.coroutine.points.get()
    }

    /// What has come of the thread, when it is over.
    pub fn join(self) -> Result<T, Infallible> {
        while self.stopped() == Stopped::Paused {
            self.go_on(None);
        }
        Ok(self.result.take().expect("deadlock"))
    }
}

/// Here another thread may come in between.
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

/// Gives way to the first thread.
#[allow(deprecated)] // The other way needs a value that each function hands on.
fn stop() {
    generator::yield_with(());
}

/// The thread waits until [`wake`] is called for `address`.
pub(crate) fn wait(address: usize) {
    let current = CURRENT.with_borrow(Clone::clone);
    let current = current.expect("deadlock: there is no other thread that could go on");
    current.waits_for.set(Some(address));
    stop();
}

/// Who waits for `address` can go on.
pub(crate) fn wake(address: usize) {
    THREADS.with_borrow(|threads| {
        let waiting = threads
            .iter()
            .filter(|one| one.waits_for.get() == Some(address));
        waiting.for_each(|one| one.waits_for.set(None));
    });
}
