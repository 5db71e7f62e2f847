// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Arrays as the kernel's crate has them, of which the next may find no memory; and a count of how
//! often other threads could run.

use std::{cell::Cell, ops::Deref};

/// How memory is allocated: there is one way here.
#[derive(Clone, Copy)]
pub(crate) struct Flags;
pub(crate) const GFP_KERNEL: Flags = Flags;

/// There was no memory.
#[derive(Debug)]
pub struct AllocError;

thread_local! {
    /// How many allocations succeed from now on.
    pub(crate) static MEMORY: Cell<u32> = const { Cell::new(u32::MAX) };
    /// How often other threads could run.
    pub(crate) static TURNS: Cell<usize> = const { Cell::new(0) };
}

fn allocate() -> Result<(), AllocError> {
    let left = MEMORY.get().checked_sub(1);
    MEMORY.set(left.ok_or(AllocError)?);
    Ok(())
}

/// A growing array.
pub(crate) struct KVVec<T>(Vec<T>);

impl<T> KVVec<T> {
    pub(crate) fn with_capacity(capacity: usize, _: Flags) -> Result<Self, AllocError> {
        allocate().map(|()| Self(Vec::with_capacity(capacity)))
    }

    pub(crate) fn push(&mut self, value: T, _: Flags) -> Result<(), AllocError> {
        if self.0.len() == self.0.capacity() {
            allocate()?;
        }
        self.0.push(value);
        Ok(())
    }
}

impl<T> Deref for KVVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

#[no_mangle]
extern "C" fn nvpm_cond_resched() {
    TURNS.set(TURNS.get() + 1);
}
