// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Compares the results of the module's arithmetic with the results of models, whose code is slow
//! but obvious. The module's files are compiled unchanged in this crate.
//!
//! The tests try all small cases, and large cases at random. The random choices of each run follow
//! from a new seed. A failure prints the seed, so that `HOST_SEED=... tests/run host` can repeat
//! the run.
#![cfg(test)]
#![allow(dead_code)]

extern crate self as kernel;

#[path = "../../../src/abi.rs"]
mod abi;
#[path = "../../../src/errno.rs"]
mod errno;
#[path = "../../../src/kernel/error.rs"]
pub mod error;
#[path = "../../../src/extents.rs"]
mod extents;
#[path = "../../../src/resched.rs"]
mod resched;
#[path = "../../../src/sg_table.rs"]
mod sg_table;

mod random;
mod units;

mod collect;
mod error_numbers;
mod pipeline;
mod range;
mod segments;

/// The part of the kernel's crate that the files use.
pub(crate) mod prelude {
    pub(crate) use crate::alloc::{KVVec, GFP_KERNEL};
    pub(crate) use crate::error::{code::*, Error, Result};
}

/// Arrays whose next allocation can be made to fail.
mod alloc {
    use std::{cell::Cell, ops::Deref};

    /// The mode of an allocation. The tests have only one mode.
    pub(crate) struct Flags;
    pub(crate) const GFP_KERNEL: Flags = Flags;

    /// The error for an allocation that has failed.
    pub struct AllocError;

    thread_local! {
        /// The number of allocations that succeed from now on.
        pub(crate) static MEMORY: Cell<u32> = const { Cell::new(u32::MAX) };
        /// The number of times that the module has let other threads run.
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
}

#[no_mangle]
extern "C" fn nvpm_cond_resched() {
    alloc::TURNS.set(alloc::TURNS.get() + 1);
}

/// Makes a scatterlist as one array, so that each entry follows the entry before it in memory.
#[no_mangle]
extern "C" fn nvpm_sg_alloc(table: *mut abi::sg_table, entries: u32) -> i32 {
    let list = vec![abi::scatterlist::default(); entries as usize];
    let sgl = Box::leak(list.into_boxed_slice()).as_mut_ptr();
    // SAFETY: The caller's pointer is valid.
    unsafe {
        *table = abi::sg_table {
            sgl,
            nents: entries,
            orig_nents: entries,
        };
    }
    0
}

thread_local! {
    /// The address after the last entry of the list that is being read.
    static END: std::cell::Cell<*mut abi::scatterlist> = const { std::cell::Cell::new(std::ptr::null_mut()) };
}

#[no_mangle]
extern "C" fn nvpm_sg_next(entry: *mut abi::scatterlist) -> *mut abi::scatterlist {
    // SAFETY: The entry is part of a list, so the next address is at most the end of the list.
    let next = unsafe { entry.add(1) };
    if next == END.get() {
        return std::ptr::null_mut();
    }
    next
}

#[no_mangle]
extern "C" fn sg_free_table(table: *mut abi::sg_table) {
    // SAFETY: `nvpm_sg_alloc` leaked a box with this number of entries.
    unsafe {
        let list = std::ptr::slice_from_raw_parts_mut((*table).sgl, (*table).orig_nents as usize);
        drop(Box::from_raw(list));
    }
}
