// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share, over loom; and lines for the log, which go into the trail.

use std::{
    any::TypeId,
    cell::{RefCell, RefMut},
    fmt,
    ops::{Deref, DerefMut},
};

use loom::sync as model;

use crate::{
    alloc::{Counted, Flags},
    error::Result,
    map_type::Pairs,
    world::{note, task},
};

/// Shared ownership; loom fails if the last owner is forgotten.
pub(crate) struct Arc<T>(model::Arc<Shared<T>>);

/// What an [`Arc`] points to; the value comes first, so a pointer to it is one to this.
#[repr(C)]
struct Shared<T> {
    value: T,
    _counted: Counted,
}

impl<T> Arc<T> {
    pub(crate) fn into_raw(this: Self) -> *const T {
        model::Arc::into_raw(this.0).cast()
    }

    /// # Safety
    ///
    /// The pointer must be from `into_raw`.
    pub(crate) unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: By this function's requirement; see [`Shared`].
        Self(unsafe { model::Arc::from_raw(pointer.cast()) })
    }
}

/// Makes what is pinned where it is.
pub(crate) trait InPlaceInit<T>: Sized {
    fn pin_init(value: T, flags: Flags) -> Result<Self>;
}

impl<T> InPlaceInit<T> for Arc<T> {
    fn pin_init(value: T, _: Flags) -> Result<Self> {
        let _counted = Counted::new()?;
        Ok(Self(model::Arc::new(Shared { value, _counted })))
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

/// A value behind a spin lock.
pub(crate) struct SpinLock<T> {
    /// None where the order in which threads take it cannot matter.
    explored: Option<model::Mutex<()>>,
    value: RefCell<T>,
}

// SAFETY: All threads of a model are one of the system's, and the lock is theirs in turn.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T: 'static> SpinLock<T> {
    pub(crate) fn new(value: T) -> Self {
        // Who asks first about a pair asks the driver; another one asks too, and gets the same answer.
        let explored = TypeId::of::<T>() != TypeId::of::<Pairs>();
        Self {
            explored: explored.then(|| model::Mutex::new(())),
            value: RefCell::new(value),
        }
    }

    pub(crate) fn lock(&self) -> Guard<'_, T> {
        let explored = self.explored.as_ref().map(|lock| lock.lock().unwrap());
        let task = task();
        task.spinning.set(task.spinning.get() + 1);
        Guard {
            value: self.value.borrow_mut(),
            _explored: explored,
        }
    }
}

macro_rules! new_spinlock {
    ($value:expr, $name:literal) => {
        $crate::sync::SpinLock::new($value)
    };
}
pub(crate) use new_spinlock;

/// The value of a [`SpinLock`] while it is locked.
pub(crate) struct Guard<'a, T> {
    value: RefMut<'a, T>,
    _explored: Option<model::MutexGuard<'a, ()>>,
}

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let task = task();
        task.spinning.set(task.spinning.get() - 1);
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.value
    }
}

/// Puts a message into the trail.
pub(crate) fn say(text: fmt::Arguments<'_>) {
    note(format!("log: {}", text.to_string().trim_end()));
}

macro_rules! print {
    ($($arg:tt)*) => {
        $crate::sync::say(format_args!($($arg)*))
    };
}
pub(crate) use {print as pr_err, print as pr_warn};
