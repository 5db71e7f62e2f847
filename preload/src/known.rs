// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Stores the functions of each copy of libibverbs after the first registration with the copy, so
//! that later registrations find the functions without any lock.
//!
//! The key of an entry is the address of a static function of the copy. The context of a protection
//! domain contains this address (`Pd::maker`). As long as the domain exists, the copy that made it
//! is mapped. But this may be another copy than the one in the entry, because a program may close
//! one copy and open another file at the same address. An entry therefore also contains the code
//! around the key, and the beginning of the file, which has the headers and usually the build ID.
//! An entry is used only if the memory still contains the same code and the same beginning of the
//! file.
//!
//! - The code around the key is in the same page as the key, so the page is mapped.
//! - The code contains distances to other parts of the library. If the code is the same, the
//!   library therefore begins at the same address as the entry's library, so its headers are
//!   mapped.
//! - The headers contain the size of each segment and the place of the table of sections. If the
//!   headers are the same, the file is therefore the same, and has the same functions.
//!
//! An entry does not change after its key is stored. A reader therefore needs no lock, and a fork
//! cannot leave an entry in a state that readers could misunderstand. If all entries are used,
//! further copies are not stored, and are looked up at each registration.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::elf::Object;
use crate::verbs::Addresses;

/// The size of a word, in bytes.
const WORD: usize = 8;
/// The number of words of code around the key. These words are one line of the processor's cache,
/// and a line is always within a page.
const AROUND: usize = 8;
/// The number of words at the beginning of a library. The headers fill most of these words.
const BEGINNING: usize = 128;

struct Entry {
    /// The address of the static function, or 0 as long as the entry is not used.
    key: AtomicUsize,
    around: [AtomicU64; AROUND],
    /// The address of the library's beginning.
    start: AtomicUsize,
    beginning: [AtomicU64; BEGINNING],
    found: [AtomicPtr<c_void>; 5],
}

impl Entry {
    const fn unused() -> Self {
        Self {
            key: AtomicUsize::new(0),
            around: [const { AtomicU64::new(0) }; AROUND],
            start: AtomicUsize::new(0),
            beginning: [const { AtomicU64::new(0) }; BEGINNING],
            found: [const { AtomicPtr::new(null_mut()) }; 5],
        }
    }
}

static ENTRIES: [Entry; 16] = [const { Entry::unused() }; 16];
/// The number of entries that are used, or that a thread is filling.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the functions of the copy that has the static function at `key`, if they are known.
///
/// # Safety
///
/// `key` is the address of a function that stays mapped.
pub(crate) unsafe fn recall(key: usize) -> Option<Addresses> {
    let is_valid = |entry: &&Entry| {
        let start = entry.start.load(Ordering::Relaxed);
        // SAFETY: the page of the key is mapped, and readable, because it contains a function.
        let same_code = unsafe { has(line(key), &entry.around) };
        // SAFETY: the header of this file says why the beginning is mapped.
        same_code && unsafe { has(start, &entry.beginning) }
    };
    let mut used = ENTRIES.iter().filter(|entry| entry.key.load(Ordering::Acquire) == key);
    let entry = used.find(is_valid)?;
    Some(entry.found.each_ref().map(|one| one.load(Ordering::Relaxed).cast_const()))
}

/// Stores the functions of the copy `object`, which has the static function at `key`. The caller
/// must be in a walk through the list of objects, so two threads never call this function at the
/// same time.
pub(crate) fn remember(key: usize, object: &Object<'_>, found: Addresses) {
    let Some(start) = object.beginning(BEGINNING * WORD) else {
        return;
    };
    // An atomic addition would call a function that the C library does not have on some arm64
    // systems, and is not needed, because only one thread is here at a time.
    let taken = TAKEN.load(Ordering::Relaxed);
    let Some(entry) = ENTRIES.get(taken).filter(|_| object.is_readable(key, 1)) else {
        return;
    };
    TAKEN.store(taken + 1, Ordering::Relaxed);
    // SAFETY: the key's page is mapped and readable, and the object stays mapped during the walk.
    unsafe { copy(line(key), &entry.around) };
    // SAFETY: the object has `BEGINNING` words at its beginning, and stays mapped during the walk.
    unsafe { copy(start, &entry.beginning) };
    for (place, one) in entry.found.iter().zip(found) {
        place.store(one.cast_mut(), Ordering::Relaxed);
    }
    entry.start.store(start, Ordering::Relaxed);
    entry.key.store(key, Ordering::Release);
}

/// Returns the address of the line of the cache that contains `address`.
fn line(address: usize) -> usize {
    address & !(AROUND * WORD - 1)
}

/// Returns the word with this number after `start`.
///
/// # Safety
///
/// `start` is the address of a word, and the word with this number is mapped and readable.
unsafe fn word(start: usize, number: usize) -> u64 {
    let at = (start + number * WORD) as *const u64;
    // SAFETY: the caller promises it. A debugger may change code at any time.
    unsafe { at.read_volatile() }
}

/// Returns whether the memory at `start` contains these words.
///
/// # Safety
///
/// `start` is the address of a word, and as many words as `words` has are mapped and readable
/// there.
unsafe fn has(start: usize, words: &[AtomicU64]) -> bool {
    words.iter().enumerate().all(|(number, one)| {
        // SAFETY: the caller promises it.
        one.load(Ordering::Relaxed) == unsafe { word(start, number) }
    })
}

/// Copies words of memory from `start` to `words`.
///
/// # Safety
///
/// The same as for `has`.
unsafe fn copy(start: usize, words: &[AtomicU64]) {
    for (number, one) in words.iter().enumerate() {
        // SAFETY: the caller promises it.
        one.store(unsafe { word(start, number) }, Ordering::Relaxed);
    }
}
