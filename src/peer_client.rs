// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The interface to the RDMA core. This file registers clients, contains the functions that the
//! core calls, and calls the core's function that revokes a registration.
//!
//! C header: `rdma/peer_mem.h`. The functions here check and convert the core's arguments, call the
//! client, and convert the client's results. The clients make all decisions.

use core::{
    marker::PhantomData,
    ptr::{null_mut, NonNull},
};

use kernel::prelude::*;

use crate::{
    abi::{
        self,
        ffi::{c_char, c_int, c_ulong, c_void},
    },
    atomic::{AtomicBool, AtomicPtr, Ordering},
    device::Device,
    errno::{from_result, number, to_result},
    extents::Range,
    large_ranges::probe_ends,
    module_ref::ModuleRef,
    parameters,
    phase::CoreContext,
    process::Process,
    ratelimit::pr_warn_ratelimited,
    registry::{Kind, Registration, RegistrationNumber},
    stats,
};

/// A client's way to pin memory. Each function receives the number of the registration about which
/// the core calls.
pub(crate) trait Client: 'static {
    /// The kind of this client.
    const KIND: Kind;

    /// Pins `range` of `process`, the calling one. Returns true if the client has claimed the range, and false if the range is
    /// not GPU memory of the calling process or is left to another client. After an error the core
    /// asks no other client, and the user sees the error. Therefore, the only possible error for a
    /// range outside GPU memory is a lack of kernel memory.
    fn acquire(number: RegistrationNumber, range: &Range, process: Process) -> Result<bool>;

    /// Stores `core_context`, by which the core identifies the registration. The core calls this
    /// function when it takes the pages.
    fn get_pages(number: RegistrationNumber, core_context: CoreContext) -> Result;

    /// Maps the memory for `device`. Returns the scatterlist for the core. This module frees the
    /// scatterlist later.
    fn dma_map(number: RegistrationNumber, device: Device<'_>) -> Result<abi::sg_table>;

    /// Undoes the mapping. The core calls this function when no device uses the addresses any more.
    fn dma_unmap(number: RegistrationNumber);

    /// Ends the registration. After this call, the core calls no function for the registration
    /// again.
    fn release(number: RegistrationNumber);
}

/// Says whether the clients may claim memory. The core may call a client before loading the module
/// has succeeded. If loading then fails, no registration may be left, so the clients claim memory
/// only when loading cannot fail any more.
static OPEN: AtomicBool = AtomicBool::new(false);

/// Lets the clients claim memory from now on, because all clients are registered.
pub(crate) fn open() {
    OPEN.store(true, Ordering::Release);
}

/// A client that is registered with the RDMA core as long as this object exists.
///
/// # Invariants
///
/// `handle` came from the core, which keeps a pointer to the contents of `_client`.
pub(crate) struct RegisteredClient {
    handle: NonNull<c_void>,
    /// The core's function for the revocable client. It is dropped after `drop` has unregistered the
    /// client.
    invalidation: Option<KBox<Invalidation>>,
    _client: KBox<abi::nvpm_client>,
}

// SAFETY: The core may be asked to unregister a client from any thread.
unsafe impl Send for RegisteredClient {}
// SAFETY: No method takes a shared reference, so threads cannot use the fields at the same time.
unsafe impl Sync for RegisteredClient {}

impl RegisteredClient {
    /// Registers the client under `name`, and logs the likely reason if the core refuses. The core
    /// asks clients in the order of their registration.
    pub(crate) fn new<C: Client>(name: &str) -> Result<Self> {
        Self::with_core::<C>(name).inspect_err(|error| {
            pr_err!(
                "the RDMA core refuses the client '{}' (error {}): another module may have registered that name: unload it (ls /sys/kernel/mm/memory_peers lists the names)\n",
                name,
                number(error)
            );
        })
    }

    fn with_core<C: Client>(name: &str) -> Result<Self> {
        let client = KBox::new(client::<C>(name), GFP_KERNEL)?;
        // The memory is allocated first, because a client that is registered must not fail.
        let mut invalidation = if C::KIND == Kind::Revocable {
            Some(KBox::new(Invalidation::default(), GFP_KERNEL)?)
        } else {
            None
        };
        let wanted = match &mut invalidation {
            Some(invalidation) => &raw mut invalidation.function,
            None => null_mut(),
        };
        // SAFETY: The client lives until it is unregistered. The structure has all fields that any
        // version of the core reads. `wanted` is NULL or valid for storing a pointer.
        let handle =
            unsafe { abi::ib_register_peer_memory_client((&raw const *client).cast(), wanted) };
        let handle = NonNull::new(handle).ok_or(EINVAL)?;
        // INVARIANT: The core has just returned the handle.
        let mut this = Self {
            handle,
            invalidation,
            _client: client,
        };
        if let Some(invalidation) = &mut this.invalidation {
            if invalidation.function.is_none() {
                return Err(EINVAL);
            }
            invalidation.handle = handle.as_ptr();
            INVALIDATION.store(&raw mut **invalidation, Ordering::Release);
        }
        Ok(this)
    }
}

impl Drop for RegisteredClient {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the client is registered. `drop` runs once. The call
        // returns after the core has released every registration of the client.
        unsafe { abi::ib_unregister_peer_memory_client(self.handle.as_ptr()) };
        if self.invalidation.is_some() {
            INVALIDATION.store(null_mut(), Ordering::Release);
        }
    }
}

/// The core's function that revokes a registration of the revocable client, and the core's handle of
/// that client.
struct Invalidation {
    function: abi::invalidate_peer_memory,
    handle: *mut c_void,
}

impl Default for Invalidation {
    fn default() -> Self {
        Self {
            function: None,
            handle: null_mut(),
        }
    }
}

/// The driver's callback finds the core's function here. The pointer is NULL, or belongs to the
/// [`RegisteredClient`] of the revocable client. It changes only while no registration can exist,
/// which is before `open`, and after the core has unregistered the client.
static INVALIDATION: AtomicPtr<Invalidation> = AtomicPtr::new(null_mut());

/// Tells the core that the registration identified by `core_context` loses its memory. After this
/// function has returned, the device does not use the memory any more.
pub(crate) fn invalidate(core_context: CoreContext) {
    // SAFETY: The pointer is NULL, or to an object that is dropped only after the client was
    // unregistered. The core cannot have unregistered the client before the registration that
    // `core_context` identifies has ended.
    let Some(invalidation) = (unsafe { INVALIDATION.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let Some(function) = invalidation.function else {
        return;
    };
    // SAFETY: The function and the handle came from the same call to register. Both are read before
    // the call, and the core has not unregistered the client at that time. Older cores end the
    // registration during the call, and nothing is read after it.
    let ret = unsafe { function(invalidation.handle, core_context.0) };
    if let Err(error) = to_result(ret) {
        pr_warn_ratelimited!(
            "the RDMA core did not revoke a registration (error {})\n",
            number(&error)
        );
    }
}

/// The functions that the core calls for a client `C`.
struct Vtable<C>(PhantomData<C>);

impl<C: Client> Vtable<C> {
    const FUNCTIONS: abi::peer_memory_client = abi::peer_memory_client {
        name: [0; 64],
        version: [0; 16],
        acquire: Some(Self::acquire_callback),
        get_pages: Some(Self::get_pages_callback),
        dma_map: Some(Self::dma_map_callback),
        dma_unmap: Some(Self::dma_unmap_callback),
        put_pages: Some(Self::put_pages_callback),
        get_page_size: Some(Self::get_page_size_callback),
        release: Some(Self::release_callback),
    };

    /// Pins the addresses and claims them, if they are GPU memory of this process. Returns 1 if the
    /// client claims the addresses, and 0 otherwise. Also returns 1 if the memory is GPU memory but
    /// cannot be pinned (see [`to_client_context`]).
    ///
    /// # Safety
    ///
    /// `client_context` must be valid for storing a pointer.
    unsafe extern "C" fn acquire_callback(
        address: c_ulong,
        len: usize,
        _private: *mut c_void,
        _name: *mut c_char,
        client_context: *mut *mut c_void,
    ) -> c_int {
        if !OPEN.load(Ordering::Acquire) {
            return 0;
        }
        let claim = match claim::<C>(address as u64, len as u64) {
            Ok(None) => return 0,
            Ok(Some(registration)) => Ok(registration.into_core()),
            Err(error) => Err(error),
        };
        // SAFETY: By this function's requirement `client_context` is valid for storing a pointer.
        unsafe { *client_context = to_client_context(claim) };
        1
    }

    /// Lets the client store `core_context`, by which the core identifies the registration. Returns the
    /// error of [`Self::acquire_callback`] if that has failed.
    extern "C" fn get_pages_callback(
        _address: c_ulong,
        _len: usize,
        _write: c_int,
        _force: c_int,
        _table: *mut abi::sg_table,
        client_context: *mut c_void,
        core_context: u64,
    ) -> c_int {
        let result = from_client_context(client_context)
            .and_then(|number| C::get_pages(number, CoreContext(core_context)));
        from_result(result.inspect_err(stats::failed))
    }

    /// Maps the memory for `device`, and stores the scatterlist in `table` and the number of its
    /// entries in `mapped`. Returns 0 or a negative error number.
    ///
    /// # Safety
    ///
    /// `device` must be NULL or a device that exists during the call. `table` and `mapped` must be
    /// valid for writing.
    unsafe extern "C" fn dma_map_callback(
        table: *mut abi::sg_table,
        client_context: *mut c_void,
        device: *mut abi::device,
        _dmasync: c_int,
        mapped: *mut c_int,
    ) -> c_int {
        // SAFETY: By this function's requirement `device` is NULL or a device that exists during the
        // call.
        let device = unsafe { Device::from_raw(device) };
        let result =
            from_client_context(client_context).and_then(|number| C::dma_map(number, device?));
        from_result(match result {
            Ok(ours) => {
                stats::add(abi::NVPM_COUNT_REGISTRATIONS, 1);
                // SAFETY: By this function's requirement both pointers are valid for writing. `mapped`
                // may point into `table`, so it is written last. The number of entries has 32 bits.
                unsafe {
                    *table = ours;
                    *mapped = ours.nents as c_int;
                }
                Ok(())
            }
            Err(error) => {
                stats::failed(&error);
                Err(error)
            }
        })
    }

    /// Undoes the mapping. Always returns 0, because the core ignores the result.
    extern "C" fn dma_unmap_callback(
        _table: *mut abi::sg_table,
        client_context: *mut c_void,
        _device: *mut abi::device,
    ) -> c_int {
        if let Ok(number) = from_client_context(client_context) {
            C::dma_unmap(number);
        }
        0
    }

    /// Does nothing, because [`Self::release_callback`] unpins the pages. Unpinning waits for a running free callback.
    /// Older cores hold a lock while they call `put_pages`, and the free callback may wait for this
    /// lock. If `put_pages` unpinned the pages, both could therefore wait for each other.
    extern "C" fn put_pages_callback(_table: *mut abi::sg_table, _client_context: *mut c_void) {}

    /// Returns the kernel's page size, because the scatterlist covers whole pages of the kernel.
    extern "C" fn get_page_size_callback(_client_context: *mut c_void) -> c_ulong {
        abi::page_size() as c_ulong
    }

    /// Ends the registration, which the core does not need any more.
    ///
    /// # Safety
    ///
    /// `client_context` must be from [`Self::acquire_callback`], and must not be used again.
    unsafe extern "C" fn release_callback(client_context: *mut c_void) {
        if let Ok(number) = from_client_context(client_context) {
            C::release(number);
            // SAFETY: By this function's requirement `acquire` has given the registration to the core,
            // and the core gives it back once.
            drop(unsafe { Registration::from_core(number) });
        }
    }
}

/// Returns the structure that describes the client to the core.
fn client<C: Client>(name: &str) -> abi::nvpm_client {
    let mut client = abi::nvpm_client {
        client: Vtable::<C>::FUNCTIONS,
        ..Default::default()
    };
    fill(&mut client.client.name, name);
    fill(&mut client.client.version, env!("NVPM_VERSION"));
    // SAFETY: C defines `nvpm_core_flags` as a constant.
    let flags = unsafe { abi::nvpm_core_flags };
    if !parameters::peerdirect_support() && flags != 0 {
        client.ex_size = core::mem::size_of::<abi::nvpm_client>();
        client.flags = flags;
        // The last byte of the version tells the core that the structure has the extension's
        // fields.
        if let Some(last) = client.client.version.last_mut() {
            *last = 1;
        }
    }
    client
}

/// Copies a string into a zeroed text field of C. The last two bytes stay zero, because a text ends
/// in a zero byte, and the last byte of a version is a flag.
fn fill(field: &mut [c_char], text: &str) {
    let room = field.len().saturating_sub(2);
    for (to, from) in field.iter_mut().take(room).zip(text.bytes()) {
        *to = from as c_char;
    }
}

/// Asks the client to claim `len` bytes at `address`. Returns [`None`] if it does not claim them.
fn claim<C: Client>(address: u64, len: u64) -> Result<Option<Registration>> {
    // [`ModuleRef::get`] fails while the module is being unloaded. The module then accepts no new
    // memory.
    let (Some(range), Some(module)) = (Range::new(address, len), ModuleRef::get()) else {
        return Ok(None);
    };
    if !probe_ends(&range) {
        return Ok(None);
    }
    let process = Process::current();
    let registration = Registration::new(&range, process, C::KIND, module)?;
    let claimed = C::acquire(registration.number(), &range, process)?;
    Ok(claimed.then_some(registration))
}

/// Converts a claim to the pointer that the core keeps. The pointer is the number of the
/// registration, or an error in the encoding of `ERR_PTR()`. The core ignores errors from
/// `acquire`. If a registration fails, [`Vtable::acquire_callback`] therefore claims the memory nevertheless, and
/// [`Vtable::get_pages_callback`] returns the error to the user.
fn to_client_context(claim: Result<RegistrationNumber>) -> *mut c_void {
    let value = match claim {
        Ok(number) => number.to_raw() as usize,
        Err(error) => error.to_errno() as isize as usize,
    };
    value as *mut c_void
}

fn from_client_context(client_context: *mut c_void) -> Result<RegistrationNumber> {
    match client_context as isize {
        error @ -4095..=-1 => Err(Error::from_errno(error as i32)),
        number => Ok(RegistrationNumber::from_raw(number as u64)),
    }
}
