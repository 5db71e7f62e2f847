// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The ground that the module stands on, made of loom instead of the kernel.

use std::{
    fmt,
    ops::{Deref, DerefMut},
    pin::Pin,
};

use loom::sync as model;

use crate::{
    abi,
    errno::Errno,
    world::{may_sleep, note, task, world},
};

pub(crate) use std::sync::atomic::Ordering;

/// How memory is allocated: there is one way here.
pub(crate) struct Flags;
pub(crate) const GFP_KERNEL: Flags = Flags;

/// There was no memory.
#[derive(Debug)]
pub(crate) struct AllocError;

/// An object in memory that the model counts.
struct Counted;

impl Counted {
    fn new() -> Result<Self, AllocError> {
        may_sleep("allocating memory");
        if world().kernel.allocate() {
            Ok(Self)
        } else {
            Err(AllocError)
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        world().kernel.deallocate();
    }
}

macro_rules! complain {
    ($($arg:tt)*) => {
        $crate::rt::say(format_args!($($arg)*))
    };
}
pub(crate) use complain;

/// Puts a message into the trail.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    note(format!("log: {}", text.to_string().trim_end()));
}

/// Shared ownership; loom fails if the last owner is forgotten.
pub(crate) struct Arc<T>(model::Arc<Shared<T>>);

/// What an [`Arc`] points to; the value comes first, so a pointer to it is one to this.
#[repr(C)]
struct Shared<T> {
    value: T,
    _counted: Counted,
}

impl<T> Arc<T> {
    pub(crate) fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        let _counted = Counted::new()?;
        Ok(Self(model::Arc::new(Shared { value, _counted })))
    }

    pub(crate) fn into_raw(this: Self) -> *const T {
        model::Arc::into_raw(this.0).cast()
    }

    /// # Safety
    ///
    /// The pointer must be from `into_raw`, and is taken back once.
    pub(crate) unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: By this function's requirement; see [`Shared`].
        Self(unsafe { model::Arc::from_raw(pointer.cast()) })
    }
}

impl<T> Clone for Arc<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> Deref for Arc<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0.value
    }
}

/// An object of its own.
pub(crate) struct KBox<T>(Box<T>, Counted);

impl<T> KBox<T> {
    pub(crate) fn new(value: T, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(Box::new(value), Counted::new()?))
    }
}

impl<T> Deref for KBox<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

/// A growing array.
pub(crate) struct KVVec<T>(Vec<T>, Counted);

impl<T> KVVec<T> {
    pub(crate) fn with_capacity(capacity: usize, _: Flags) -> Result<Self, AllocError> {
        Ok(Self(Vec::with_capacity(capacity), Counted::new()?))
    }

    pub(crate) fn push(&mut self, value: T, _: Flags) -> Result<(), AllocError> {
        if self.0.len() == self.0.capacity() {
            self.1 = Counted::new()?;
        }
        self.0.push(value);
        Ok(())
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.capacity()
    }
}

impl<T: Clone> KVVec<T> {
    pub(crate) fn extend_from_slice(
        &mut self,
        slice: &[T],
        flags: Flags,
    ) -> Result<(), AllocError> {
        let mut flags = Some(flags);
        slice
            .iter()
            .try_for_each(|value| self.push(value.clone(), flags.take().unwrap_or(GFP_KERNEL)))
    }
}

impl<T> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for KVVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

/// A state behind a spin lock, whose changes threads can wait for.
pub(crate) struct Monitor<S, T> {
    state: model::Mutex<T>,
    changed: model::Condvar,
    fixed: S,
}

impl<S, T> Monitor<S, T> {
    pub(crate) fn new(fixed: S, state: T) -> Result<Arc<Self>, Errno> {
        let monitor = Self {
            state: model::Mutex::new(state),
            changed: model::Condvar::new(),
            fixed,
        };
        Arc::new(monitor, GFP_KERNEL).map_err(|_| Errno::NOMEM)
    }

    pub(crate) fn fixed(&self) -> Pin<&S> {
        // SAFETY: It is in loom's counted memory, and stays there.
        unsafe { Pin::new_unchecked(&self.fixed) }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        Guard::spinning(self.state.lock().unwrap())
    }

    pub(crate) fn wait<'a>(&'a self, guard: &mut Guard<'a, T>) {
        let lock = guard.end();
        may_sleep("waiting");
        *guard = Guard::spinning(self.changed.wait(lock).unwrap());
    }

    pub(crate) fn notify(&self, guard: Guard<'_, T>) {
        drop(guard);
        self.changed.notify_all();
    }
}

/// The state of a [`Monitor`] while it is locked.
pub(crate) struct Guard<'a, T>(Option<model::MutexGuard<'a, T>>);

impl<'a, T> Guard<'a, T> {
    fn spinning(lock: model::MutexGuard<'a, T>) -> Self {
        let task = task();
        task.spinning.set(task.spinning.get() + 1);
        Self(Some(lock))
    }

    fn end(&mut self) -> model::MutexGuard<'a, T> {
        let task = task();
        task.spinning.set(task.spinning.get() - 1);
        self.0.take().expect("the lock is held")
    }
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        if self.0.is_some() {
            self.end();
        }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the lock is held")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the lock is held")
    }
}

/// An atomic pointer that may be a static: it is another one in each world.
pub(crate) struct AtomicPtr<T>(*mut T);

// SAFETY: What is in here is never changed.
unsafe impl<T> Sync for AtomicPtr<T> {}

impl<T> AtomicPtr<T> {
    pub(crate) const fn new(first: *mut T) -> Self {
        Self(first)
    }

    pub(crate) fn store(&self, pointer: *mut T, order: Ordering) {
        in_this_world(self, self.0 as usize).store(pointer as usize, order);
    }

    pub(crate) fn load(&self, order: Ordering) -> *mut T {
        in_this_world(self, self.0 as usize).load(order) as *mut T
    }
}

/// An atomic truth that may be a static.
pub(crate) struct AtomicBool(bool);

impl AtomicBool {
    pub(crate) const fn new(first: bool) -> Self {
        Self(first)
    }

    pub(crate) fn store(&self, value: bool, order: Ordering) {
        in_this_world(self, self.0.into()).store(value.into(), order);
    }

    pub(crate) fn load(&self, order: Ordering) -> bool {
        in_this_world(self, self.0.into()).load(order) != 0
    }
}

/// What stands for a static of the module, which began with the value `first`.
fn in_this_world<T>(it: &T, first: usize) -> std::rc::Rc<model::atomic::AtomicUsize> {
    let address = std::ptr::from_ref(it) as usize;
    world().kernel.atomic(address, first)
}

/// Bytes of a page of the kernel.
pub(crate) fn page_size() -> u64 {
    4096
}

/// Whether the calling thread is about to end.
pub(crate) fn exiting() -> bool {
    task().exiting.get()
}

/// How some messages end.
pub(crate) fn persistent_instead() -> &'static str {
    "; there is another way"
}

/// The calling thread.
pub(crate) fn thread() -> i32 {
    task().thread
}

/// Adds to what an administrator sees.
pub(crate) fn count(figure: abi::nvpm_figure, by: u64) {
    world().kernel.count(figure, by);
}

/// Lets others have the processor.
pub(crate) fn give_way() {
    may_sleep("giving way");
}

/// Lets a moment pass.
pub(crate) fn pause() {
    may_sleep("pausing");
    loom::thread::yield_now();
}
