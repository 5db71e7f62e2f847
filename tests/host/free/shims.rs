// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Lists and tables, which are C: as they are, over the C library.

use std::{
    cell::RefCell,
    collections::HashSet,
    ffi::{c_char, CStr},
    ptr::{self, null, null_mut},
    sync::Mutex,
    thread,
};

use crate::{
    abi::{self, nvpm_sg_list, scatterlist},
    kernel::fail,
};

extern "C" {
    fn host_be(process: i32, thread: i32, exiting: bool);
    fn host_be_called(name: *const c_char, born: u64);
    fn host_be_of(user: u32, kernel: bool);
    fn host_figure(figure: u32) -> i64;
}

/// A device as host.h has it.
#[repr(C)]
struct Device {
    registered: bool,
    references: i32,
    name: *const c_char,
}

impl Device {
    fn new(name: &'static CStr) -> Self {
        Self {
            registered: true,
            references: 0,
            name: name.as_ptr(),
        }
    }

    fn raw(&mut self) -> *mut abi::device {
        ptr::from_mut(self).cast()
    }
}

/// A list of so many entries, each of which says which one it is.
fn list(entries: u32, more: bool) -> nvpm_sg_list {
    let mut list = nvpm_sg_list::default();
    for number in 0..entries {
        if list.room == 0 {
            // SAFETY: A list that only this has changed.
            assert_eq!(unsafe { abi::nvpm_sg_grow(&mut list, more) }, 0);
        }
        let entry = scatterlist {
            dma_address: number.into(),
            ..Default::default()
        };
        // SAFETY: There is room.
        unsafe {
            list.next.write(entry);
            list.next = list.next.add(1);
        }
        list.room -= 1;
        list.table.nents += 1;
    }
    // SAFETY: There is an entry.
    unsafe { abi::nvpm_sg_finish(&mut list) };
    list
}

/// What the entries say, in the order in which the kernel goes through them.
fn walk(list: &nvpm_sg_list) -> Vec<u64> {
    const CHAIN: usize = 1;
    const END: usize = 2;
    let mut said = Vec::new();
    let mut entry = list.table.sgl;
    loop {
        // SAFETY: An entry of a list that is alive.
        let this = unsafe { *entry };
        if this.page_link & CHAIN != 0 {
            entry = ptr::with_exposed_provenance_mut(this.page_link & !(CHAIN | END));
            continue;
        }
        said.push(this.dma_address);
        if this.page_link & END != 0 {
            return said;
        }
        // SAFETY: It is not the last one.
        entry = unsafe { entry.add(1) };
    }
}

#[test]
fn a_list_has_room_for_all_its_entries() {
    for entries in [1, 2, 15, 16, 17, 47, 48, 63, 64, 65, 127, 128, 129, 1000] {
        for more in [false, true] {
            let list = list(entries, more);
            assert!(walk(&list).into_iter().eq(0..entries.into()));
            // SAFETY: Once; nobody has it.
            unsafe { abi::nvpm_sg_free(list.table.sgl, list.first) };
        }
    }
}

#[test]
fn a_list_that_cannot_grow_stays_as_it_was() {
    let mut list = list(16, true);
    assert_eq!(list.room, 0);
    fail(1);
    // SAFETY: A list that only this has changed.
    assert_eq!(unsafe { abi::nvpm_sg_grow(&mut list, true) }, -12);
    assert!(walk(&list).into_iter().eq(0..16));
    // SAFETY: Once; nobody has it.
    unsafe { abi::nvpm_sg_free(list.table.sgl, list.first) };
}

/// What the DMA functions are asked for on this thread: addresses that are mapped, and how many more
/// there are to be had.
#[derive(Default)]
struct Dma {
    mapped: HashSet<(u64, usize)>,
    left: usize,
}

thread_local! {
    static DMA: RefCell<Dma> = RefCell::default();
}

/// Distance between an address in memory and on the bus.
const BUS: u64 = 1 << 40;

#[no_mangle]
extern "C" fn dma_map_resource(
    _device: *mut abi::device,
    physical: u64,
    len: usize,
    _way: i32,
    _attributes: usize,
) -> u64 {
    DMA.with_borrow_mut(|dma| {
        if dma.left == 0 {
            return u64::MAX;
        }
        dma.left -= 1;
        assert!(dma.mapped.insert((physical + BUS, len)));
        physical + BUS
    })
}

#[no_mangle]
extern "C" fn dma_unmap_resource(
    _device: *mut abi::device,
    address: u64,
    len: usize,
    _way: i32,
    _attributes: usize,
) {
    let mapped = DMA.with_borrow_mut(|dma| dma.mapped.remove(&(address, len)));
    assert!(mapped, "what is unmapped was not mapped");
}

#[test]
fn each_entry_of_a_list_is_mapped_or_none() {
    let mapped = || DMA.with_borrow(|dma| dma.mapped.len());
    for entries in [1, 16, 17, 48, 129, 1000] {
        for left in [0, 1, 15, 16, 999, 1000] {
            DMA.set(Dma {
                left,
                ..Dma::default()
            });
            let list = list(entries, entries > 1);
            let sgl = list.table.sgl;
            // SAFETY: A finished list.
            let ret = unsafe { abi::nvpm_sg_map(null_mut(), sgl, entries) };
            if left < entries as usize {
                assert_eq!((ret, mapped()), (-5, 0));
            } else {
                assert_eq!((ret, mapped()), (0, entries as usize));
                assert!(walk(&list).into_iter().eq(BUS..BUS + u64::from(entries)));
                // SAFETY: As mapped.
                unsafe { abi::nvpm_sg_unmap(null_mut(), sgl, entries) };
                assert_eq!(mapped(), 0);
            }
            // SAFETY: Once; nobody has it.
            unsafe { abi::nvpm_sg_free(sgl, list.first) };
        }
    }
}

#[test]
fn no_list_is_freed_as_one() {
    // SAFETY: There is nothing.
    unsafe { abi::nvpm_sg_free(null_mut(), 0) };
}

#[test]
fn no_number_is_ever_used_again() {
    let object = 1_u8;
    let mut seen = HashSet::new();
    for _ in 0..70_000 {
        // SAFETY: The pointer is not followed.
        let number = unsafe { abi::nvpm_ids_add(ptr::from_ref(&object).cast()) };
        assert!(number != 0 && seen.insert(number));
        // SAFETY: Looks up numbers.
        unsafe {
            assert!(abi::nvpm_ids_has(number));
            assert_eq!(
                abi::nvpm_ids_take(number),
                ptr::from_ref(&object).cast_mut().cast()
            );
            assert!(!abi::nvpm_ids_has(number));
            assert!(abi::nvpm_ids_take(number).is_null());
        }
    }
}

#[test]
fn threads_get_numbers_of_their_own() {
    let numbers = || {
        let object = 1_u8;
        // SAFETY: The pointer is not followed.
        let add = |_| unsafe { abi::nvpm_ids_add(ptr::from_ref(&object).cast()) };
        let numbers: Vec<u64> = (0..300).map(add).collect();
        for &number in &numbers {
            // SAFETY: Looks up a number.
            let found = unsafe { abi::nvpm_ids_take(number) };
            assert_eq!(found, ptr::from_ref(&object).cast_mut().cast());
        }
        numbers
    };
    let threads: Vec<_> = (0..3).map(|_| thread::spawn(numbers)).collect();
    let all: Vec<u64> = threads
        .into_iter()
        .flat_map(|one| one.join().unwrap())
        .collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len());
}

#[test]
fn without_memory_there_is_no_number() {
    let object = 1_u8;
    fail(1);
    // SAFETY: The pointer is not followed.
    assert_eq!(
        unsafe { abi::nvpm_ids_add(ptr::from_ref(&object).cast()) },
        0
    );
}

/// Tests of pairs, of which there is one table, come one after the other.
static PAIRS: Mutex<()> = Mutex::new(());

fn text() -> String {
    let mut text = vec![0_u8; 4096];
    // SAFETY: So many bytes may be written.
    let len = unsafe { abi::nvpm_pairs_text(text.as_mut_ptr().cast(), text.len()) };
    text.truncate(len);
    String::from_utf8(text).unwrap()
}

fn verdict(gpu: *mut abi::nvpm_gpu, device: &mut Device) -> i32 {
    // SAFETY: Both are there.
    unsafe { abi::nvpm_pair_verdict(gpu, device.raw()) }
}

fn add(gpu: *mut abi::nvpm_gpu, device: &mut Device, verdict: u32) -> bool {
    // SAFETY: Both are there.
    unsafe { abi::nvpm_pair_add(gpu, device.raw(), verdict as i32) }
}

#[test]
fn a_verdict_is_of_one_pair() {
    let _alone = PAIRS.lock();
    let (mut a, mut b) = (Device::new(c"0000:01:00.0"), Device::new(c"0000:02:00.0"));
    // SAFETY: Sixteen bytes each, or nothing.
    let (first, second, nameless) = unsafe {
        (
            abi::nvpm_gpu([1; 16].as_ptr()),
            abi::nvpm_gpu([2; 16].as_ptr()),
            abi::nvpm_gpu(null()),
        )
    };
    // SAFETY: As above.
    assert_eq!(unsafe { abi::nvpm_gpu([1; 16].as_ptr()) }, first);
    assert!(first != second && second != nameless && nameless != first);
    assert_eq!(verdict(first, &mut a), 0);
    assert!(add(first, &mut a, abi::NVPM_OURS));
    assert!(add(first, &mut b, abi::NVPM_REFUSED));
    assert!(add(second, &mut a, abi::NVPM_DRIVERS));
    assert!(add(nameless, &mut b, abi::NVPM_UNASKED));
    // Who comes second gets what the first one got.
    assert!(add(first, &mut a, abi::NVPM_REFUSED));
    assert_eq!(verdict(first, &mut a), abi::NVPM_OURS as i32);
    assert_eq!(verdict(first, &mut b), abi::NVPM_REFUSED as i32);
    assert_eq!(verdict(second, &mut a), abi::NVPM_DRIVERS as i32);
    assert_eq!(verdict(second, &mut b), 0);
    assert_eq!((a.references, b.references), (2, 2));
    let one = "01010101-0101-0101-0101-010101010101";
    assert_eq!(
        text(),
        format!(
            "GPU-{one} 0000:01:00.0 ours\nGPU-{one} 0000:02:00.0 refused\nGPU-{} 0000:01:00.0 driver\nGPU-{} 0000:02:00.0 unasked\n",
            one.replace("01", "02"),
            one.replace("01", "00")
        )
    );
    // SAFETY: Nobody uses a GPU of these any more.
    unsafe { abi::nvpm_pairs_forget() };
    assert_eq!((a.references, b.references), (0, 0));
    assert_eq!(text(), "");
}

#[test]
fn a_device_takes_its_verdicts_along() {
    let _alone = PAIRS.lock();
    let (mut gone, mut other) = (Device::new(c"0000:01:00.0"), Device::new(c"0000:02:00.0"));
    // SAFETY: Sixteen bytes.
    let gpu = unsafe { abi::nvpm_gpu([1; 16].as_ptr()) };
    assert!(add(gpu, &mut gone, abi::NVPM_OURS));
    gone.registered = false;
    assert!(add(gpu, &mut other, abi::NVPM_OURS));
    assert_eq!((gone.references, other.references), (0, 1));
    assert_eq!(verdict(gpu, &mut gone), 0);
    other.registered = false;
    assert_eq!(text(), "");
    assert_eq!(other.references, 0);
    // SAFETY: Nobody uses the GPU any more.
    unsafe { abi::nvpm_pairs_forget() };
}

#[test]
fn without_memory_a_verdict_is_not_remembered() {
    let _alone = PAIRS.lock();
    let mut device = Device::new(c"0000:01:00.0");
    fail(1);
    // SAFETY: Sixteen bytes.
    assert!(unsafe { abi::nvpm_gpu([1; 16].as_ptr()) }.is_null());
    // SAFETY: As above.
    let gpu = unsafe { abi::nvpm_gpu([1; 16].as_ptr()) };
    fail(1);
    assert!(!add(gpu, &mut device, abi::NVPM_OURS));
    assert_eq!((verdict(gpu, &mut device), device.references), (0, 0));
    // SAFETY: Nobody uses the GPU any more.
    unsafe { abi::nvpm_pairs_forget() };
}

#[test]
fn a_text_ends_where_there_is_room_no_more() {
    let _alone = PAIRS.lock();
    let mut device = Device::new(c"0000:01:00.0");
    for number in 0..100 {
        // SAFETY: Sixteen bytes.
        let gpu = unsafe { abi::nvpm_gpu([number; 16].as_ptr()) };
        assert!(add(gpu, &mut device, abi::NVPM_OURS));
    }
    assert_eq!(text().len(), 4095);
    // SAFETY: Nobody uses a GPU of these any more.
    unsafe { abi::nvpm_pairs_forget() };
}

#[test]
fn who_is_calling() {
    for (process, thread_of_it, exiting) in [(7, 7, false), (7, 8, true), (9, 8, false)] {
        let seen = thread::spawn(move || {
            // SAFETY: For this thread alone; the others take no arguments.
            unsafe {
                host_be(process, thread_of_it, exiting);
                host_be_called(c"one".as_ptr(), 1234);
                host_be_of(1000, false);
                (calling(), abi::nvpm_thread(), abi::nvpm_exiting())
            }
        });
        let (seen, its_thread, ends) = seen.join().unwrap();
        assert_eq!((its_thread, ends), (thread_of_it, exiting));
        assert_eq!((seen.number, seen.born, seen.user), (process, 1234, 1000));
    }
}

/// The process that this thread is of.
fn calling() -> abi::nvpm_process {
    let mut process = abi::nvpm_process::default();
    // SAFETY: Valid for writing.
    unsafe { abi::nvpm_process(&mut process) };
    process
}

const fn process(number: i32, born: u64, user: u32) -> abi::nvpm_process {
    abi::nvpm_process { born, number, user }
}

fn leaves(process: &abi::nvpm_process, pages: u64) -> *mut abi::nvpm_left {
    // SAFETY: Valid for reading.
    let left = unsafe { abi::nvpm_process_leaves(process, pages) };
    assert!(!left.is_null());
    left
}

fn freed(left: *mut abi::nvpm_left) {
    // SAFETY: From `leaves`, once.
    unsafe { abi::nvpm_left_freed(left) };
}

fn full(process: &abi::nvpm_process, registrations: u32, pages: u64) -> bool {
    // SAFETY: Valid for reading.
    unsafe { abi::nvpm_process_full(process, registrations, pages) }
}

fn user_full(process: &abi::nvpm_process, registrations: u32, pages: u64) -> bool {
    // SAFETY: Valid for reading.
    unsafe { abi::nvpm_user_full(process, registrations, pages) }
}

/// Tests of what is left behind, which is counted once for all, come one after the other.
static LEFT: Mutex<()> = Mutex::new(());

fn left_behind() -> i64 {
    // SAFETY: The enumeration's number.
    unsafe { host_figure(abi::NVPM_LEFT_BEHIND) }
}

#[test]
fn what_a_process_leaves_behind_is_its_own() {
    let _alone = LEFT.lock();
    let (one, two) = (process(1, 50, 7), process(2, 50, 8));
    let first = leaves(&one, 10);
    let second = leaves(&one, 5);
    assert!(full(&one, 2, 99) && full(&one, 99, 15));
    assert!(!full(&one, 3, 16) && !full(&two, 1, 1));
    assert_eq!(left_behind(), 2);
    freed(first);
    assert!(full(&one, 1, 99) && full(&one, 99, 5) && !full(&one, 2, 6));
    freed(second);
    assert!(!full(&one, 1, 1) && !user_full(&one, 1, 1));
    assert_eq!(left_behind(), 0);
}

/// Numbers of processes come again.
#[test]
fn nor_is_it_that_of_a_later_process() {
    let _alone = LEFT.lock();
    let (gone, new) = (process(1, 50, 7), process(1, 51, 7));
    let left = leaves(&gone, 10);
    assert!(full(&gone, 1, 10) && !full(&new, 1, 1));
    freed(left);
}

/// One process after the other leaves something behind, and ends.
#[test]
fn what_processes_leave_behind_is_their_users() {
    let _alone = LEFT.lock();
    let processes = [process(1, 50, 7), process(2, 60, 7), process(1, 70, 7)];
    let (last, other) = (process(4, 80, 7), process(4, 80, 8));
    let left = processes.map(|one| leaves(&one, 10));
    assert!(user_full(&last, 3, 99) && user_full(&last, 99, 30));
    assert!(!user_full(&last, 4, 31) && !user_full(&other, 1, 1));
    assert!(!full(&last, 1, 1));
    left.into_iter().for_each(freed);
    assert!(!user_full(&last, 1, 1));
}

/// A device is reset or removed, or the kernel closes a file for its owner.
#[test]
fn what_the_kernel_deregisters_is_its_users_alone() {
    let _alone = LEFT.lock();
    let owner = process(1, 50, 7);
    let deregisters = move |kernel| {
        let thread = thread::spawn(move || {
            // SAFETY: For this thread alone.
            unsafe {
                host_be(2, 2, false);
                host_be_of(0, kernel);
            }
            leaves(&owner, 10).expose_provenance()
        });
        ptr::with_exposed_provenance_mut(thread.join().unwrap())
    };
    let left = deregisters(true);
    assert!(!full(&owner, 1, 1) && user_full(&owner, 1, 10));
    assert_eq!(left_behind(), 1);
    freed(left);
    let left = deregisters(false);
    assert!(full(&owner, 1, 10) && user_full(&owner, 1, 10));
    freed(left);
    assert!(!full(&owner, 1, 1) && !user_full(&owner, 1, 1));
}
