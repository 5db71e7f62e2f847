// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What threads share, over loom; and lines for the log, which go into the trail.

use std::{
    fmt,
    ops::{Deref, DerefMut},
};

use loom::sync as model;

use crate::{
    alloc::{Counted, Flags},
    error::Result,
    world::{note, task},
};

/// Shared ownership; loom fails if the last owner is forgotten.
pub struct Arc<T>(model::Arc<Shared<T>>);

/// What an [`Arc`] points to; the value comes first, so a pointer to it is one to this.
#[repr(C)]
struct Shared<T> {
    value: T,
    _counted: Counted,
}

impl<T> Arc<T> {
    pub fn into_raw(this: Self) -> *const T {
        model::Arc::into_raw(this.0).cast()
    }

    /// # Safety
    ///
    /// The pointer must be from `into_raw`.
    pub unsafe fn from_raw(pointer: *const T) -> Self {
        // SAFETY: By this function's requirement; see [`Shared`].
        Self(unsafe { model::Arc::from_raw(pointer.cast()) })
    }
}

/// Makes what is pinned where it is.
pub trait InPlaceInit<T>: Sized {
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
pub struct SpinLock<T>(model::Mutex<T>);

impl<T> SpinLock<T> {
    pub fn new(value: T) -> Self {
        Self(model::Mutex::new(value))
    }

    pub fn lock(&self) -> Guard<'_, T> {
        let guard = self.0.lock().unwrap();
        let task = task();
        task.spinning.set(task.spinning.get() + 1);
        Guard(Some(guard))
    }
}

#[macro_export]
macro_rules! new_spinlock {
    ($value:expr, $name:literal) => {
        $crate::sync::SpinLock::new($value)
    };
}

/// The value of a [`SpinLock`] while it is locked.
pub struct Guard<'a, T>(Option<model::MutexGuard<'a, T>>);

impl<T> Drop for Guard<'_, T> {
    fn drop(&mut self) {
        let task = task();
        task.spinning.set(task.spinning.get() - 1);
        self.0.take();
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

/// Puts a message into the trail.
pub fn say(text: fmt::Arguments<'_>) {
    note(format!("log: {}", text.to_string().trim_end()));
}

#[macro_export]
macro_rules! pr_warn { ($($arg:tt)*) => { $crate::sync::say(format_args!($($arg)*)) } }
#[macro_export]
macro_rules! pr_err { ($($arg:tt)*) => { $crate::sync::say(format_args!($($arg)*)) } }
#[macro_export]
macro_rules! pr_info { ($($arg:tt)*) => { $crate::sync::say(format_args!($($arg)*)) } }

