// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The functions of the copies of libibverbs that have registered memory, without any lock.
//!
//! The key is the address of a static function, which the protection domain's context has from the
//! copy that made the domain (`Pd::maker`). The domain exists, so that copy is mapped. The copy may
//! still be another than at the time of remembering: a program may close one copy, and open another
//! file at the same address. So an entry also has the code around the key, and the beginning of the
//! file with the headers and, as linkers place it, the build ID. An entry is used only if memory
//! still has both.
//!
//! - The code around the key is in the same page as the key, so the page is mapped.
//! - If that code is the same, with the distances in it to other parts of the library, then the
//!   library begins where the entry's library began, so the headers are mapped.
//! - If the headers are the same, with the size of each segment and the place of the table of
//!   sections, then the file is the same, and has the same functions.
//!
//! An entry never changes after it has its key. So a reader needs no lock, and nothing that a fork
//! may leave half done. If all entries are used, further copies are looked up each time.

use core::ffi::c_void;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::elf::Object;
use crate::verbs::Addresses;

/// The size of a word, in bytes.
const WORD: usize = 8;
/// The words of code around the key: a line of the cache, which never crosses a page.
const AROUND: usize = 8;
/// The words at the beginning of a library: its headers need most of them.
const BEGINNING: usize = 128;

struct Entry {
    /// The address of the static function; 0 as long as the entry is not used.
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
/// The number of entries that threads have taken in order to fill them.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// Returns the functions of the copy that has the static function at `key`, if they are known.
///
/// # Safety
///
/// `key` is the address of a function that stays mapped.
pub(crate) unsafe fn recall(key: usize) -> Option<Addresses> {
    let is_valid = |entry: &&Entry| {
        let start = entry.start.load(Ordering::Relaxed);
        // SAFETY: the page of the key is mapped, and readable as it was for this key.
        let same_code = unsafe { has(line(key), &entry.around) };
        // SAFETY: the header of this file says why the beginning is mapped.
        same_code && unsafe { has(start, &entry.beginning) }
    };
    let mut used = ENTRIES.iter().filter(|entry| entry.key.load(Ordering::Acquire) == key);
    let entry = used.find(is_valid)?;
    Some(entry.found.each_ref().map(|one| one.load(Ordering::Relaxed).cast_const()))
}

/// Remembers the functions of the copy `object`, which has the static function at `key`. Only a
/// thread that walks through the list of objects calls this function, so one thread at a time.
pub(crate) fn remember(key: usize, object: &Object<'_>, found: Addresses) {
    let Some(start) = object.beginning(BEGINNING * WORD) else {
        return;
    };
    // An atomic addition would call a function that some C libraries for arm64 do not have.
    let taken = TAKEN.load(Ordering::Relaxed);
    let Some(entry) = ENTRIES.get(taken).filter(|_| object.is_readable(key, 1)) else {
        return;
    };
    TAKEN.store(taken + 1, Ordering::Relaxed);
    // SAFETY: the key's page is mapped and readable, and the object stays while it is shown.
    unsafe { copy(line(key), &entry.around) };
    // SAFETY: the object has so many bytes at its beginning, and stays while it is shown.
    unsafe { copy(start, &entry.beginning) };
    for (place, one) in entry.found.iter().zip(found) {
        place.store(one.cast_mut(), Ordering::Relaxed);
    }
    entry.start.store(start, Ordering::Relaxed);
    entry.key.store(key, Ordering::Release);
}

/// Returns the address of the line that contains `address`.
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

/// Returns whether memory has these words.
///
/// # Safety
///
/// `start` is the address of a word, and so many words there are mapped and readable.
unsafe fn has(start: usize, words: &[AtomicU64]) -> bool {
    words.iter().enumerate().all(|(number, one)| {
        // SAFETY: the caller promises it.
        one.load(Ordering::Relaxed) == unsafe { word(start, number) }
    })
}

/// Copies words of memory.
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
