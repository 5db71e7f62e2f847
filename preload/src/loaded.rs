// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The list of objects that the process has loaded, and an address that the library has found in
//! one of them.
//!
//! `dl_iterate_phdr()` shows the objects. In glibc it takes a lock. The dynamic linker holds this
//! lock only while it changes the list of objects, and never while a constructor runs.
//!
//! A program may have its own `dl_iterate_phdr()`. The function of Seastar, for example, shows the
//! objects of an earlier time, so that exceptions take no lock. This library therefore uses the
//! function of this name that comes next after the program's. The library finds that function with
//! `dlsym()`. It calls `dlsym()` only while the process starts, because `dlsym()` takes the lock of
//! `dlopen()`.

use core::ffi::{c_int, c_ulonglong, c_void};
use core::mem;
use core::ops::ControlFlow;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::elf::{Object, Segment};
use crate::gate::Passage;
use crate::libc;

/// The beginning of `struct dl_phdr_info`.
#[repr(C)]
struct Info {
    base: u64,
    name: *const c_void,
    segments: *const Segment,
    number: u16,
    adds: c_ulonglong,
    subs: c_ulonglong,
}

type Callback = unsafe extern "C" fn(*const Info, usize, *mut c_void) -> c_int;

extern "C" {
    /// Calls `callback` for each object in the order in which the objects were loaded, until
    /// `callback` returns something other than 0.
    fn dl_iterate_phdr(callback: Callback, data: *mut c_void) -> c_int;
}

type Walk = unsafe extern "C" fn(Callback, *mut c_void) -> c_int;

/// The `dl_iterate_phdr()` that comes next after the program's, or NULL before the library has
/// looked for it.
static WALK: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Looks for `dl_iterate_phdr()`. The library calls this function when it is loaded.
pub(crate) fn find_walk() {
    // SAFETY: the name is a string.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dl_iterate_phdr".as_ptr()) };
    WALK.store(found, Ordering::Relaxed);
}

/// The number of objects that were ever added to the list or removed from it. If the number is
/// unchanged, the list is unchanged.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Generation(u64);

/// Calls `look` with each object, in the order in which they were loaded, until `look` returns
/// `Break`. Returns the value of `Break`, or `None`.
pub(crate) fn each_object<B, F>(look: F) -> Option<B>
where
    F: FnMut(&Object<'_>, Generation) -> ControlFlow<B>,
{
    let mut search = Search { look, broke: None };
    // No signal handler may run in this thread until the walk has ended. A handler that lists the
    // objects would wait for the lock of the list, which this thread may have.
    let _quiet = libc::WithoutSignals::begin();
    let _passage = Passage::enter();
    let found = WALK.load(Ordering::Relaxed);
    // SAFETY: `link.h` declares a function of this name with this type.
    let found = unsafe { mem::transmute::<*mut c_void, Option<Walk>>(found) };
    let walk = found.unwrap_or(dl_iterate_phdr);
    // SAFETY: `shown` takes its last argument for a `Search<B, F>`. `search` has this type, lives
    // until this call returns, and is not used by anything else meanwhile.
    unsafe { walk(shown::<B, F>, (&raw mut search).cast()) };
    search.broke
}

struct Search<B, F> {
    look: F,
    broke: Option<B>,
}

/// # Safety
///
/// `info` is an object that stays mapped until this returns, and `search` is a `Search<B, F>` that
/// nothing else uses.
unsafe extern "C" fn shown<B, F>(info: *const Info, _: usize, search: *mut c_void) -> c_int
where
    F: FnMut(&Object<'_>, Generation) -> ControlFlow<B>,
{
    // SAFETY: the caller promises that `search` is a `Search<B, F>`, and that nothing else uses it.
    let search = unsafe { &mut *search.cast::<Search<B, F>>() };
    // SAFETY: the caller promises that `info` is an object that stays mapped. Its description begins
    // with the fields of `Info`, and the dynamic linker does not change it during this call.
    let info = unsafe { &*info };
    // SAFETY: the caller promises that the object stays mapped until this function returns, and
    // `object` is not used afterwards. The arguments come from `dl_iterate_phdr()`.
    let object = unsafe { Object::new(info.base, info.segments, info.number) };
    match (search.look)(&object, Generation(info.adds.wrapping_add(info.subs))) {
        ControlFlow::Continue(()) => 0,
        ControlFlow::Break(value) => {
            search.broke = Some(value);
            1
        }
    }
}

/// An address that the library has found. The address is valid while the list of objects is
/// unchanged. If a library is closed, or another one is mapped at the same address, the list
/// changes.
///
/// The fields are read and written only inside `each_object`, while the thread has the linker's
/// lock. A thread therefore never reads one field of an old address and one of a new address.
pub(crate) struct Remembered {
    generation: AtomicU64,
    found: AtomicPtr<c_void>,
}

impl Remembered {
    pub(crate) const fn nothing() -> Self {
        Self {
            // No list of objects changes often enough to have this generation.
            generation: AtomicU64::new(u64::MAX),
            found: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns the address, or `None` if the list of objects has changed since it was stored.
    pub(crate) fn recall(&self, generation: Generation) -> Option<*const c_void> {
        let current = self.generation.load(Ordering::Relaxed) == generation.0;
        current.then(|| self.found.load(Ordering::Relaxed).cast_const())
    }

    pub(crate) fn remember(&self, generation: Generation, found: *const c_void) {
        self.found.store(found.cast_mut(), Ordering::Relaxed);
        self.generation.store(generation.0, Ordering::Relaxed);
    }
}
