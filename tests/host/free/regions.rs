// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The list of registrations, which is C: as it is, over the C library, read as the kernel reads
//! a file of proc.

use std::{
    cell::UnsafeCell,
    collections::{BTreeMap, BTreeSet},
    ffi::{c_char, c_void, CStr},
    ptr::null,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use crate::{
    abi::{self, nvpm_region},
    kernel::{allocations, fail},
};

extern "C" {
    fn host_alone();
    fn host_not_alone();
    fn host_be(process: i32, thread: i32, exiting: bool);
    fn host_be_called(name: *const c_char, born: u64);
    fn host_be_capable(capable: bool);
    fn host_later(seconds: u64);
    fn host_proc() -> bool;
    fn host_open() -> *mut c_void;
    fn host_read(file: *mut c_void, buf: *mut c_char, size: usize) -> usize;
    fn host_seek(file: *mut c_void, line: i64);
    fn host_close(file: *mut c_void);
}

/// There is one list: tests of it come one after the other, by a lock that helgrind knows. With
/// this it is there.
struct List(());

impl List {
    fn new() -> Self {
        // SAFETY: This thread does not have it, and gives it back when the list goes.
        unsafe { host_alone() };
        let list = Self(());
        be(c"a program");
        assert_eq!(add(), 0);
        list
    }
}

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: `new` has added it and taken the lock, and a test ends its registrations.
        unsafe {
            abi::nvpm_regions_remove();
            let gone = !host_proc();
            host_not_alone();
            assert!(gone);
        }
    }
}

/// The module adds its file.
fn add() -> i32 {
    let [persistent, revocable, last] = [c"nv_mem", c"nv_mem_revocable", c"nv_mem_fixed"];
    // SAFETY: The names stay.
    unsafe {
        abi::nvpm_regions_add(
            persistent.as_ptr().cast(),
            revocable.as_ptr().cast(),
            last.as_ptr().cast(),
        )
    }
}

/// This thread is of process 7, of that name, which began 12.34 seconds after the machine.
fn be(name: &CStr) {
    // SAFETY: For this thread alone, which copies the name.
    unsafe {
        host_be(7, 7, false);
        host_be_called(name.as_ptr(), 12_345_678_901);
    }
}

/// A registration; dropping ends it.
struct Region(Box<UnsafeCell<nvpm_region>>);

// SAFETY: C's functions may be called from any thread.
unsafe impl Send for Region {}

impl Region {
    fn new(address: u64) -> Self {
        Self::of(address, 65536, abi::NVPM_PERSISTENT)
    }

    fn of(address: u64, len: u64, client: abi::nvpm_client_kind) -> Self {
        let region = Self(Box::new(UnsafeCell::new(nvpm_region {
            address,
            len,
            ..Default::default()
        })));
        // SAFETY: In its box it stays where it is.
        unsafe { abi::nvpm_region_begin(region.raw(), client) };
        region
    }

    fn raw(&self) -> *mut nvpm_region {
        self.0.get()
    }

    fn is(&self, state: abi::nvpm_region_state) {
        // SAFETY: It is there.
        unsafe { abi::nvpm_region_is(self.raw(), state) };
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: It is there.
        unsafe { abi::nvpm_region_end(self.raw()) };
    }
}

fn regions(numbers: std::ops::Range<u64>) -> Vec<Region> {
    numbers.map(|number| Region::new(number << 16)).collect()
}

/// Somebody who reads the list, so many bytes at a time.
struct Reader(*mut c_void, usize);

impl Reader {
    fn new(bytes: usize) -> Self {
        // SAFETY: The file is there.
        let file = unsafe { host_open() };
        assert!(!file.is_null());
        Self(file, bytes)
    }

    /// The lines of one call; none at the end.
    fn some(&self) -> Vec<String> {
        let mut text = vec![0_u8; self.1];
        // SAFETY: So many bytes may be written.
        let len = unsafe { host_read(self.0, text.as_mut_ptr().cast(), text.len()) };
        text.truncate(len);
        let text = String::from_utf8(text).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// All that is left, without the line that begins the file.
    fn rest(&self) -> Vec<String> {
        let some = std::iter::from_fn(|| Some(self.some()).filter(|some| !some.is_empty()));
        some.flatten()
            .filter(|line| !line.starts_with('#'))
            .collect()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: Once.
        unsafe { host_close(self.0) };
    }
}

/// The pages that the lines are about, each once.
fn pages(lines: &[String]) -> BTreeSet<u64> {
    let page = |line: &String| {
        let address = line.split(' ').nth(3).unwrap();
        u64::from_str_radix(address.strip_prefix("0x").unwrap(), 16).unwrap() >> 16
    };
    let pages: BTreeSet<_> = lines.iter().map(page).collect();
    assert_eq!(pages.len(), lines.len(), "a registration is listed twice");
    pages
}

fn all() -> Vec<String> {
    Reader::new(4096).rest()
}

#[test]
fn a_line_says_who_and_what() {
    let _list = List::new();
    #[repr(C)]
    struct Bus(i32, u8);
    #[repr(C)]
    struct Pci(bool, i32, *const c_char, *const Bus, u32);
    let device = Pci(true, 0, null(), &Bus(0x10, 0xa1), (0x1f << 3) | 5);
    let device: *const Pci = &device;
    let region = Region::of(0x7f00, 99, abi::NVPM_REVOCABLE);
    let line = |age, state, device| {
        format!("7 1234 {age} 0x7f00 99 nv_mem_revocable {state} {device} a\\040program")
    };
    assert_eq!(all(), [line(0, "pinning", "-")]);
    region.is(abi::NVPM_REGION_PINNED);
    // SAFETY: Nobody else lets time pass.
    unsafe { host_later(60) };
    assert_eq!(all(), [line(60, "pinned", "-")]);
    // SAFETY: A device as host.h has it.
    unsafe { abi::nvpm_region_mapped(region.raw(), device.cast_mut().cast()) };
    assert_eq!(all(), [line(60, "mapped", "0010:a1:1f.5")]);
    for (state, name) in [
        (abi::NVPM_REGION_REFUSED, "refused"),
        (abi::NVPM_REGION_UNMAPPED, "unmapped"),
        (abi::NVPM_REGION_REVOKED, "revoked"),
        (abi::NVPM_REGION_LEFT, "left"),
    ] {
        region.is(state);
        assert_eq!(all(), [line(60, name, "0010:a1:1f.5")]);
    }
    drop(region);
    assert!(all().is_empty());
}

#[test]
fn a_name_is_one_word_whatever_it_is() {
    let _list = List::new();
    for (name, said) in [
        (c"plain-1", "plain-1"),
        (c"\x1b[31mred\n", "\\033[31mred\\012"),
        (c"a\\b\"\xff", "a\\134b\"\\377"),
        (c"sixteen and more", "sixteen\\040and\\040mor"),
    ] {
        thread::spawn(move || {
            be(name);
            let _region = Region::new(0);
            assert!(all()[0].ends_with(&format!(" - {said}")), "{:?}", all());
        })
        .join()
        .unwrap();
    }
}

#[test]
fn each_is_listed_once() {
    let _list = List::new();
    for count in [1, 2, 3, 100, 1000] {
        let regions = regions(0..count);
        for bytes in [100, 128, 4096, 1 << 20] {
            assert_eq!(pages(&Reader::new(bytes).rest()), (0..count).collect());
        }
        drop(regions);
        assert!(all().is_empty());
    }
}

#[test]
fn a_reader_may_go_back() {
    let _list = List::new();
    let _regions = regions(0..200);
    let reader = Reader::new(300);
    let first = reader.some();
    reader.some();
    for line in [0, 1, 150, 2] {
        // SAFETY: The file is open.
        unsafe { host_seek(reader.0, line) };
        assert_eq!(pages(&reader.rest()).len(), 201 - line.max(1) as usize);
    }
    // SAFETY: As above.
    unsafe { host_seek(reader.0, 0) };
    assert_eq!(reader.some(), first);
}

/// What was there all the while is listed, where a reader stands goes away under it.
#[test]
fn what_goes_meanwhile_hides_nothing() {
    let _list = List::new();
    let mut there: BTreeMap<u64, Region> = (0..500).zip(regions(0..500)).collect();
    let reader = Reader::new(200);
    let mut seen = pages(&reader.some()[1..]);
    // All of the first pages, but for two registrations.
    there.retain(|&page, _| page == 40 || page == 100 || page > 300);
    seen.append(&mut pages(&reader.rest()));
    assert!(there.keys().all(|page| seen.contains(page)));
    // A reader that ends where it stands alone.
    let reader = Reader::new(200);
    reader.some();
    there.clear();
    drop(reader);
    assert!(all().is_empty());
}

/// Nor does beginning fail: there is nothing that could.
#[test]
fn no_registration_takes_memory() {
    let _list = List::new();
    let before = allocations();
    drop(regions(0..1000));
    assert_eq!(allocations(), before);
}

#[test]
fn what_has_not_begun_is_not_ended_and_none_begins_twice() {
    let _list = List::new();
    // SAFETY: Zeros, which are not in the list.
    unsafe { abi::nvpm_region_end(&mut nvpm_region::default()) };
    let region = Region::new(1 << 16);
    // SAFETY: It is there.
    unsafe { abi::nvpm_region_begin(region.raw(), abi::NVPM_LAST) };
    assert_eq!(all().len(), 1);
    assert!(all()[0].contains(" nv_mem "));
    drop(region);
    assert!(all().is_empty());
}

/// Root in a container may have the file's mode, and not the machine's secrets.
#[test]
fn root_without_the_capability_reads_nothing() {
    let _list = List::new();
    let _region = Region::new(0);
    // SAFETY: For this thread alone.
    unsafe { host_be_capable(false) };
    // SAFETY: The file is there.
    assert!(unsafe { host_open() }.is_null());
    // SAFETY: As above.
    unsafe { host_be_capable(true) };
    assert_eq!(all().len(), 1);
}

#[test]
fn without_memory_there_is_no_file() {
    let list = List::new();
    // SAFETY: As `List` does.
    unsafe {
        abi::nvpm_regions_remove();
        for number in [1, 2] {
            fail(number);
            assert_eq!(add(), -12);
            assert!(!host_proc());
        }
        fail(0);
        assert_eq!(add(), 0);
    }
    drop(list);
}

/// Two make and end registrations, two read: those that stay are in every list.
#[test]
fn nobody_waits_and_nothing_is_missed() {
    let _list = List::new();
    let _stay = regions(0..100);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let makers: Vec<_> = (1..3)
            .map(|maker| {
                scope.spawn(move || {
                    be(c"maker");
                    for round in 0..20 {
                        let first = (maker * 100 + round) * 1000;
                        let mut regions = regions(first..first + 150);
                        regions
                            .iter()
                            .for_each(|one| one.is(abi::NVPM_REGION_PINNED));
                        // In another order.
                        while !regions.is_empty() {
                            regions.swap_remove(regions.len() / 2);
                        }
                    }
                })
            })
            .collect();
        for bytes in [130, 4096] {
            let over = &over;
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    let seen = pages(&Reader::new(bytes).rest());
                    assert!((0..100).all(|page| seen.contains(&page)));
                }
            });
        }
        makers.into_iter().for_each(|one| one.join().unwrap());
        over.store(true, Ordering::Release);
    });
}
