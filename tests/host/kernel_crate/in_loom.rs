// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! What `kernel.c` of the module's own kernel crate takes from the kernel, made of loom. Orderings
//! are those that the kernel promises for `refcount_t`.
//!
//! C knows an object by its address, and loom's stands beside it under that: for as long as the
//! memory is there.

use std::{
    alloc,
    any::Any,
    cell::{Cell, RefCell},
    collections::{BTreeMap, HashMap},
    ffi::{c_char, c_int, c_uint, c_void, CStr},
    io::{stderr, Write},
    mem::transmute,
    panic, process,
    rc::Rc,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        Arc, Once,
    },
    thread,
};

use loom::sync::{
    atomic::{AtomicUsize, Ordering},
    Mutex, MutexGuard,
};

struct Lock(Mutex<()>, Cell<Option<MutexGuard<'static, ()>>>);

thread_local! {
    // loom runs the threads of a model on one thread of the system, so these are theirs together.
    static MEMORY: RefCell<HashMap<usize, alloc::Layout>> = RefCell::default();
    static OBJECTS: RefCell<BTreeMap<usize, Rc<dyn Any>>> = RefCell::default();
}

/// Runs `scenario` in every interleaving of its threads, and says how many there were.
pub(crate) fn explore(scenario: impl Fn() + Send + Sync + 'static) {
    static ONCE: Once = Once::new();
    // A failure cannot unwind through C: it ends the tests at once, around the capture of output.
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|info| {
            let test = thread::current().name().unwrap_or("?").to_owned();
            let _ = writeln!(stderr(), "\n{test} FAILED: {info}");
            process::abort();
        }))
    });
    let count = Arc::new(AtomicU64::new(0));
    let counter = count.clone();
    loom::model(move || {
        counter.fetch_add(1, Relaxed);
        scenario();
        let left = MEMORY.with_borrow(HashMap::len);
        assert_eq!(left, 0, "memory is lost");
    });
    let count = count.load(Relaxed);
    println!("kernel_orders: explored {count} interleavings, preemptions: Any");
}

/// Puts an object of loom's beside one of C's.
fn place(address: *const c_void, object: impl Any) {
    OBJECTS.with_borrow_mut(|objects| objects.insert(address as usize, Rc::new(object)));
}

fn at<T: Any>(address: *const c_void) -> Rc<T> {
    OBJECTS
        .with_borrow(|objects| objects.get(&(address as usize)).cloned())
        .and_then(|object| object.downcast().ok())
        .expect("used when its memory was gone")
}

#[no_mangle]
extern "C" fn host_alloc(size: usize) -> *mut c_void {
    let layout = alloc::Layout::from_size_align(size, 8).unwrap();
    // SAFETY: No shared object is without bytes.
    let memory = unsafe { alloc::alloc(layout) };
    MEMORY.with_borrow_mut(|all| all.insert(memory as usize, layout));
    memory.cast()
}

#[no_mangle]
extern "C" fn host_free(memory: *mut c_void) {
    let start = memory as usize;
    let layout = MEMORY.with_borrow_mut(|all| all.remove(&start)).unwrap();
    OBJECTS.with_borrow_mut(|objects| {
        objects.retain(|address, _| !(start..start + layout.size()).contains(address));
    });
    // SAFETY: As it was allocated.
    unsafe { alloc::dealloc(memory.cast(), layout) };
}

#[no_mangle]
extern "C" fn refcount_set(address: *const c_void, count: c_uint) {
    place(address, AtomicUsize::new(count as usize));
}

#[no_mangle]
extern "C" fn refcount_inc(address: *const c_void) {
    let before = at::<AtomicUsize>(address).fetch_add(1, Ordering::Relaxed);
    assert_ne!(before, 0, "one owner more, of none");
}

#[no_mangle]
extern "C" fn refcount_dec_and_test(address: *const c_void) -> bool {
    let before = at::<AtomicUsize>(address).fetch_sub(1, Ordering::AcqRel);
    assert_ne!(before, 0, "one owner less, of none");
    before == 1
}

#[no_mangle]
extern "C" fn spin_lock_init(address: *const c_void) {
    place(address, Lock(Mutex::new(()), Cell::new(None)));
}

#[no_mangle]
extern "C" fn spin_lock(address: *const c_void) {
    let lock = at::<Lock>(address);
    let guard = lock.0.lock().unwrap();
    // SAFETY: The guard stands beside its lock, and goes before it: `spin_unlock` needs both.
    let guard = unsafe { transmute::<MutexGuard<'_, ()>, MutexGuard<'static, ()>>(guard) };
    lock.1.set(Some(guard));
}

#[no_mangle]
extern "C" fn spin_unlock(address: *const c_void) {
    let guard = at::<Lock>(address).1.take();
    drop(guard.expect("a lock is let go that is not held"));
}

#[no_mangle]
extern "C" fn lockdep_set_class(_address: *const c_void, _class: *const c_void) {}

#[no_mangle]
extern "C" fn host_bug(why: *const c_char) {
    // SAFETY: A text of C's.
    panic!("{:?}", unsafe { CStr::from_ptr(why) });
}

// What else kernel.c asks for, and nobody calls here.
#[no_mangle]
extern "C" fn host_printk() {}
#[no_mangle]
extern "C" fn nvpm_load() -> c_int {
    0
}
#[no_mangle]
extern "C" fn nvpm_unload() {}
