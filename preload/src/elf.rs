// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Looks up symbols of an object, which is a program or a library that the process has mapped. The
//! object's own tables contain the symbols (`elf.h`).
//!
//! `dlsym()` reads the same tables. This library does not use `dlsym()` for them, because `dlsym()`
//! takes the lock of the dynamic linker. A thread that is inside `dlopen()` holds that lock while
//! constructors run. A constructor may wait for a thread that registers memory, so a registration
//! that waited for the lock would be a deadlock.

use core::ffi::{c_char, c_void, CStr};
use core::mem;
use core::slice;

const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;

const DT_NULL: i64 = 0;
const DT_PLTRELSZ: i64 = 2;
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_RELA: i64 = 7;
const DT_RELASZ: i64 = 8;
const DT_SONAME: i64 = 14;
const DT_JMPREL: i64 = 23;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const DT_VERSYM: i64 = 0x6fff_fff0;

/// The value of the low four bits of `Symbol::info` for a symbol that is a function.
const STT_FUNC: u8 = 2;
/// The section number of a symbol that the object needs but does not define.
const SHN_UNDEF: u16 = 0;

/// A bit in the table of versions. It is set if this version of the symbol is not the default
/// version.
const HIDDEN: u16 = 0x8000;

/// `Elf64_Ehdr`, as far as this file uses it.
#[repr(C)]
struct Header {
    others: [u64; 4],
    /// The place of the table of segments in the file.
    segments: u64,
    sections: u64,
    flags_and_sizes: [u16; 4],
    /// The number of segments.
    number: u16,
}

/// `Elf64_Phdr`.
#[repr(C)]
pub(crate) struct Segment {
    kind: u32,
    flags: u32,
    offset: u64,
    start: u64,
    physical: u64,
    size_in_file: u64,
    size: u64,
    align: u64,
}

/// `Elf64_Dyn`.
#[repr(C)]
struct Entry {
    tag: i64,
    value: u64,
}

/// `Elf64_Sym`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

/// `Elf64_Rela`.
#[repr(C)]
struct Relocation {
    /// The address in the object's file at which the dynamic linker stores an address.
    place: u64,
    kind: u32,
    symbol: u32,
    addend: u64,
}

/// An object, as `dl_iterate_phdr()` describes it.
pub(crate) struct Object<'a> {
    /// The number that is added to an address in the object's file to get the address in memory.
    base: u64,
    segments: &'a [Segment],
}

/// The tables of an object in which a symbol is looked up.
struct Tables {
    strings: *const c_char,
    symbols: *const Symbol,
    /// The GNU hash table, or NULL. Each object has this table or the old hash table, or both.
    gnu_hash: *const u32,
    old_hash: *const u32,
    /// The number of each symbol's version. The pointer is NULL in an object without versions.
    versions: *const u16,
}

impl<'a> Object<'a> {
    /// # Safety
    ///
    /// The object stays mapped for `'a`, and both arguments come from `dl_iterate_phdr()`.
    pub(crate) unsafe fn new(base: u64, segments: *const Segment, number: u16) -> Self {
        if segments.is_null() {
            return Self { base, segments: &[] };
        }
        // SAFETY: the caller promises that the object has this number of segments at this address,
        // which the dynamic linker has aligned and never changes, and that they stay for `'a`.
        let segments = unsafe { slice::from_raw_parts(segments, number.into()) };
        Self { base, segments }
    }

    /// Returns the object that is mapped at `base`, by its own headers.
    ///
    /// # Safety
    ///
    /// A library begins there with its headers, and stays mapped for `'a`.
    pub(crate) unsafe fn at(base: u64) -> Self {
        // SAFETY: the caller promises that a library begins at `base` with its headers, and stays
        // mapped. A header is never written, and `base` is the beginning of a page.
        let header = unsafe { &*(base as *const Header) };
        let segments = base.wrapping_add(header.segments) as *const Segment;
        // SAFETY: the headers of a file are in its first segment, which is mapped.
        unsafe { Self::new(base, segments, header.number) }
    }

    /// Returns whether the object is mapped at `address`.
    pub(crate) fn contains(&self, address: u64) -> bool {
        self.segments.iter().filter(|segment| segment.kind == PT_LOAD).any(|segment| {
            address.wrapping_sub(self.base.wrapping_add(segment.start)) < segment.size
        })
    }

    /// Returns the library's own name (the SONAME), or `None` if the library has no name.
    pub(crate) fn soname(&self) -> Option<&'a CStr> {
        let strings = self.table::<c_char>(DT_STRTAB);
        let offset = self.value(DT_SONAME)?;
        if strings.is_null() {
            return None;
        }
        // SAFETY: the dynamic linker has read the same string, and the object stays mapped.
        Some(unsafe { CStr::from_ptr(strings.wrapping_add(offset as usize)) })
    }

    /// Returns the function that the object exports under this name, or NULL. If the function has
    /// several versions, returns the default version, as `dlsym()` does.
    pub(crate) fn function(&self, name: &CStr) -> *const c_void {
        let found = self.tables().and_then(|tables| tables.find(name));
        // The value of a symbol is an address in the object's file.
        found.map_or(0, |symbol| self.base.wrapping_add(symbol.value)) as *const c_void
    }

    /// Returns the address to which the dynamic linker has bound a function that the object needs
    /// from another object, or `None` if the object does not need the function.
    pub(crate) fn bound(&self, name: &CStr) -> Option<u64> {
        let tables = self.tables()?;
        [(DT_JMPREL, DT_PLTRELSZ), (DT_RELA, DT_RELASZ)].into_iter().find_map(|(table, size)| {
            let first = self.table::<Relocation>(table);
            let number = self.value(size)? as usize / mem::size_of::<Relocation>();
            if first.is_null() {
                return None;
            }
            // SAFETY: `first` is the address of the table in the dynamic section of the object, and
            // the size beside it says how many relocations the table has. The object stays mapped,
            // and the dynamic linker does not change its relocations.
            let all = unsafe { slice::from_raw_parts(first, number) };
            let found = all.iter().find(|one| tables.needs(one.symbol, name))?;
            let place = self.base.wrapping_add(found.place) as *const u64;
            // SAFETY: the dynamic linker has stored an address there. Another thread may be binding
            // the same symbol.
            Some(unsafe { place.read_volatile() })
        })
    }

    fn tables(&self) -> Option<Tables> {
        let tables = Tables {
            strings: self.table(DT_STRTAB),
            symbols: self.table(DT_SYMTAB),
            gnu_hash: self.table(DT_GNU_HASH),
            old_hash: self.table(DT_HASH),
            versions: self.table(DT_VERSYM),
        };
        (!tables.strings.is_null() && !tables.symbols.is_null()).then_some(tables)
    }

    /// Returns the entry of the dynamic section that has this tag.
    fn value(&self, tag: i64) -> Option<u64> {
        let dynamic = self.segments.iter().find(|segment| segment.kind == PT_DYNAMIC)?;
        let mut entry = self.base.wrapping_add(dynamic.start) as *const Entry;
        loop {
            // SAFETY: the dynamic section is mapped, and an entry with DT_NULL ends it.
            let Entry { tag: found, value } = *unsafe { &*entry };
            if found == tag {
                return Some(value);
            }
            if found == DT_NULL {
                return None;
            }
            entry = entry.wrapping_add(1);
        }
    }

    /// Returns the address of a table, or NULL. The dynamic section of the file contains the
    /// addresses of the tables in the file. The dynamic linker of glibc replaces them by addresses
    /// in memory, but not if the dynamic section is read-only. This function accepts both kinds of
    /// addresses.
    fn table<T>(&self, tag: i64) -> *const T {
        let Some(value) = self.value(tag) else {
            return core::ptr::null();
        };
        let address = [value, self.base.wrapping_add(value)]
            .into_iter()
            .find(|&address| self.contains(address));
        address.unwrap_or(0) as *const T
    }
}

impl Tables {
    /// Returns the symbol of this name that the object defines.
    fn find(&self, name: &CStr) -> Option<Symbol> {
        if !self.gnu_hash.is_null() {
            self.find_by_gnu_hash(name)
        } else if !self.old_hash.is_null() {
            self.find_by_old_hash(name)
        } else {
            None
        }
    }

    /// Looks a symbol up in the GNU hash table. The table begins with four numbers, which are the
    /// number of buckets, the number of the first symbol in the table, the number of words of a
    /// filter, and the filter's shift. Then follow the filter, which this function skips, the first
    /// symbol of each bucket, and the hash of each symbol. The lowest bit of a hash is set for
    /// the last symbol of each bucket.
    fn find_by_gnu_hash(&self, name: &CStr) -> Option<Symbol> {
        let word = |index: usize| {
            // SAFETY: the dynamic linker also reads the table at the indices below.
            unsafe { *self.gnu_hash.wrapping_add(index) }
        };
        let (buckets, first, filter) = (word(0), word(1), word(2));
        let hash = gnu_hash(name);
        let bucket = 4 + 2 * filter as usize + hash.checked_rem(buckets)? as usize;
        let hashes = 4 + 2 * filter as usize + buckets as usize;
        let mut index = word(bucket);
        // The number of an empty bucket is 0. Index 0 must be refused separately, because `first`
        // may be 0 in an object that exports nothing.
        if index == 0 || index < first {
            return None;
        }
        loop {
            let found = word(hashes + (index - first) as usize);
            if found | 1 == hash | 1 && self.is(index, name) {
                return Some(self.symbol(index));
            }
            if found & 1 != 0 {
                return None;
            }
            index += 1;
        }
    }

    /// Looks a symbol up in the old hash table. The table begins with two numbers, which are the
    /// number of buckets and the number of symbols. Then follows the first symbol of each bucket.
    /// At the end, the table has a number for each symbol, which is the next symbol of the same
    /// bucket, or 0 after the last one.
    fn find_by_old_hash(&self, name: &CStr) -> Option<Symbol> {
        let word = |index: usize| {
            // SAFETY: the dynamic linker also reads the table at the indices below.
            unsafe { *self.old_hash.wrapping_add(index) }
        };
        let buckets = word(0);
        let mut index = word(2 + old_hash(name).checked_rem(buckets)? as usize);
        while index != 0 {
            if self.is(index, name) {
                return Some(self.symbol(index));
            }
            index = word(2 + buckets as usize + index as usize);
        }
        None
    }

    fn symbol(&self, index: u32) -> Symbol {
        // SAFETY: a hash table names only symbols that exist.
        unsafe { *self.symbols.wrapping_add(index as usize) }
    }

    /// Returns whether the symbol with this index has this name, and the object does not define it.
    fn needs(&self, index: u32, name: &CStr) -> bool {
        let symbol = self.symbol(index);
        index != 0 && symbol.section == SHN_UNDEF && self.string(symbol.name) == name
    }

    /// Returns whether the symbol with this index is a function of this name that the object
    /// defines, in its default version.
    fn is(&self, index: u32, name: &CStr) -> bool {
        let symbol = self.symbol(index);
        symbol.section != SHN_UNDEF
            && symbol.info & 15 == STT_FUNC
            && self.string(symbol.name) == name
            && self.is_default(index)
    }

    /// Returns whether the symbol with this index has no version, or its default version.
    fn is_default(&self, index: u32) -> bool {
        if self.versions.is_null() {
            return true;
        }
        // SAFETY: the table has a number for each symbol.
        let number = unsafe { *self.versions.wrapping_add(index as usize) };
        number & HIDDEN == 0
    }

    fn string(&self, offset: u32) -> &CStr {
        // SAFETY: the table of strings has this string, which exists as long as the object is
        // mapped.
        unsafe { CStr::from_ptr(self.strings.wrapping_add(offset as usize)) }
    }
}

/// Returns the hash of a name for the GNU hash table.
fn gnu_hash(name: &CStr) -> u32 {
    let mut hash: u32 = 5381;
    for &byte in name.to_bytes() {
        hash = hash.wrapping_mul(33).wrapping_add(byte.into());
    }
    hash
}

/// Returns the hash of a name for the old hash table.
fn old_hash(name: &CStr) -> u32 {
    let mut hash: u32 = 0;
    for &byte in name.to_bytes() {
        hash = (hash << 4).wrapping_add(byte.into());
        let high = hash & 0xf000_0000;
        hash ^= high >> 24;
        hash &= !high;
    }
    hash
}
