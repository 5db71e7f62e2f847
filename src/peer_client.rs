// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The RDMA core's side: registration of a client, the functions that the core calls, and the one that
//! this module calls.
//!
//! C header: `rdma/peer_mem.h`. The functions check and convert what the core gives, call the client, and
//! convert what comes back; they decide nothing.

use core::{
    marker::PhantomData,
    mem::transmute,
    ptr::{null_mut, NonNull},
};

use kernel::prelude::*;

use crate::{
    abi::{
        self,
        ffi::{c_char, c_int, c_ulong, c_void},
    },
    atomic::{AtomicBool, AtomicPtr, Ordering},
    compat::pr_warn_ratelimited,
    dma::Device,
    errno::{from_result, to_result},
    extents::Range,
    module_ref::ModuleRef,
    parameters,
    phase::CoreContext,
    probe::probe_ends,
    registry::{Registration, RegistrationNumber},
    stats,
};

/// The clients, in the order in which the core asks them: `enum nvpm_client_kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Keeps memory until the registration ends, where the driver can do that.
    Persistent = abi::NVPM_PERSISTENT as isize,
    /// Gives memory up when it is freed.
    Revocable = abi::NVPM_REVOCABLE as isize,
    /// Like `Persistent`, but asked last: takes memory that no other client took.
    CatchAll = abi::NVPM_CATCH_ALL as isize,
}

/// A way to pin. Each function gets the number of the registration that the core's call is about.
pub(crate) trait Client: 'static {
    /// The kind of this client.
    const KIND: Kind;

    /// Pins `range`; whether it is GPU memory of the calling process which this client serves. An error makes
    /// the core ask no other client, and the user sees it: for other memory it can only be a lack of memory.
    fn acquire(number: RegistrationNumber, range: &Range) -> Result<bool>;

    /// The core takes the pages, for the registration that it calls `core_context`.
    fn get_pages(number: RegistrationNumber, core_context: CoreContext) -> Result;

    /// The core wants bus addresses for `device`: the scatterlist, which stays ours to free.
    fn dma_map(number: RegistrationNumber, device: Device) -> Result<abi::sg_table>;

    /// The core does not use the addresses any more.
    fn dma_unmap(number: RegistrationNumber);

    /// The core forgets the registration; it calls nothing for it again.
    fn release(number: RegistrationNumber);
}

/// Whether the clients may claim memory. The core asks a client even before its registration has returned,
/// when loading the module can still fail.
static OPEN: AtomicBool = AtomicBool::new(false);

/// All clients are registered: from now on they claim memory.
pub(crate) fn open() {
    OPEN.store(true, Ordering::Release);
}

/// A client that is registered with the RDMA core for as long as this lives.
///
/// # Invariants
///
/// `handle` came from the core, which keeps a pointer to what is in `_client`.
pub(crate) struct ClientRegistration {
    handle: NonNull<c_void>,
    revocable: bool,
    _client: KBox<abi::nvpm_client>,
}

// SAFETY: The core may be asked to unregister a client from any thread.
unsafe impl Send for ClientRegistration {}
// SAFETY: A shared reference gives access to nothing.
unsafe impl Sync for ClientRegistration {}

impl ClientRegistration {
    /// Registers the client under `name`, and says what is in the way if the core refuses. The core asks
    /// clients in the order of their registration.
    pub(crate) fn new<C: Client>(name: &str) -> Result<Self> {
        Self::with_core::<C>(name).inspect_err(|error| {
            pr_err!(
                "the RDMA core refuses the client '{}' (error {}): another module may have registered that name: unload it (ls /sys/kernel/mm/memory_peers lists the names)\n",
                name,
                -error.to_errno()
            );
        })
    }

    fn with_core<C: Client>(name: &str) -> Result<Self> {
        let client = KBox::new(client::<C>(name), GFP_KERNEL)?;
        let revocable = C::KIND == Kind::Revocable;
        let mut invalidate: abi::invalidate_peer_memory = None;
        let wanted = match revocable {
            true => &raw mut invalidate,
            false => null_mut(),
        };
        // SAFETY: The client lives until it is unregistered, with all that a core may look for behind
        // the part that every core knows; `wanted` is NULL or valid for the core to store a pointer.
        let handle =
            unsafe { abi::ib_register_peer_memory_client((&raw const *client).cast(), wanted) };
        let handle = NonNull::new(handle).ok_or(EINVAL)?;
        // INVARIANT: The core has just returned it.
        let registration = Self {
            handle,
            revocable,
            _client: client,
        };
        if revocable {
            let function = invalidate.ok_or(EINVAL)?;
            HANDLE.store(handle.as_ptr(), Ordering::Relaxed);
            INVALIDATE.store(function as *mut c_void, Ordering::Release);
        }
        Ok(registration)
    }
}

impl Drop for ClientRegistration {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the client is registered, and is unregistered once. The core
        // waits until it has released every registration.
        unsafe { abi::ib_unregister_peer_memory_client(self.handle.as_ptr()) };
        if self.revocable {
            INVALIDATE.store(null_mut(), Ordering::Release);
        }
    }
}

type Invalidate = unsafe extern "C" fn(*mut c_void, u64) -> c_int;

// The core's function and handle for the revocable client, kept for the driver's callback. They change only
// while no registration can exist: before `open`, and after the core has unregistered the client.
static INVALIDATE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
static HANDLE: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// Reports to the core that the registration with this name loses its memory. The device does not use
/// the memory any more when this returns.
pub(crate) fn invalidate(core_context: CoreContext) {
    let function = INVALIDATE.load(Ordering::Acquire);
    if function.is_null() {
        return;
    }
    // SAFETY: Not NULL, so `with_core` stored it, from a function of this type.
    let function = unsafe { transmute::<*mut c_void, Invalidate>(function) };
    // SAFETY: The core's function and handle belong together, and are valid until the client has been
    // unregistered, which waits for the registration whose `core_context` this is.
    let ret = unsafe { function(HANDLE.load(Ordering::Relaxed), core_context) };
    if let Err(error) = to_result(ret) {
        pr_warn_ratelimited!(
            "the RDMA core did not revoke a registration (error {})\n",
            -error.to_errno()
        );
    }
}

/// The functions that the core calls for a client `C`.
struct Vtable<C>(PhantomData<C>);

impl<C: Client> Vtable<C> {
    const FUNCTIONS: abi::peer_memory_client = abi::peer_memory_client {
        name: [0; 64],
        version: [0; 16],
        acquire: Some(acquire::<C>),
        get_pages: Some(get_pages::<C>),
        dma_map: Some(dma_map::<C>),
        dma_unmap: Some(dma_unmap::<C>),
        put_pages: Some(put_pages),
        get_page_size: Some(get_page_size),
        release: Some(release::<C>),
    };
}

/// The structure that describes the client to the core.
fn client<C: Client>(name: &str) -> abi::nvpm_client {
    let mut client = abi::nvpm_client {
        client: Vtable::<C>::FUNCTIONS,
        ..Default::default()
    };
    fill(&mut client.client.name, name);
    fill(&mut client.client.version, env!("NVPM_VERSION"));
    // SAFETY: C defines it as a constant.
    if !parameters::peerdirect_support() && unsafe { abi::nvpm_core_has_ex } {
        client.ex_size = core::mem::size_of::<abi::nvpm_client>();
        // `PEER_MEM_INVALIDATE_UNMAPS`, as C asserts.
        client.flags = 1;
        // This flag tells the core that the structure has the extension's fields.
        if let Some(last) = client.client.version.last_mut() {
            *last = 1;
        }
    }
    client
}

/// Copies a string into a zeroed field of C. The last two bytes stay: a terminator, and the byte of a
/// version that is a flag.
fn fill(field: &mut [c_char], text: &str) {
    let room = field.len().saturating_sub(2);
    for (to, from) in field.iter_mut().take(room).zip(text.bytes()) {
        *to = from as c_char;
    }
}

/// Whether the addresses are GPU memory of this process.
///
/// # Safety
///
/// `client_context` must be valid for storing a pointer.
unsafe extern "C" fn acquire<C: Client>(
    address: c_ulong,
    len: usize,
    _private: *mut c_void,
    _name: *mut c_char,
    client_context: *mut *mut c_void,
) -> c_int {
    if !OPEN.load(Ordering::Acquire) {
        return 0;
    }
    let claim = match register::<C>(address as u64, len as u64) {
        Ok(None) => return 0,
        Ok(Some(registration)) => Ok(registration.into_core()),
        Err(error) => Err(error),
    };
    // SAFETY: By this function's requirement it is valid for storing a pointer.
    unsafe { *client_context = to_client_context(claim) };
    1
}

/// The registration of `len` bytes at `address`, if that is memory for the client.
fn register<C: Client>(address: u64, len: u64) -> Result<Option<Registration>> {
    // Without a reference the module is being unloaded, and serves no new memory.
    let (Some(range), Some(module)) = (Range::new(address, len), ModuleRef::get()) else {
        return Ok(None);
    };
    if !probe_ends(&range) {
        return Ok(None);
    }
    let registration = Registration::new(&range, C::KIND as u8, module)?;
    let claimed = C::acquire(registration.number(), &range)?;
    Ok(claimed.then_some(registration))
}

/// Converts a claim to the pointer that the core keeps: the number of the registration, or an error encoded
/// as by `ERR_PTR()`. The core ignores errors from `acquire`, so a failed registration is claimed as well, and
/// [`get_pages`] returns the error to the user.
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

/// Takes the pages for the registration that the core calls `core_context`.
extern "C" fn get_pages<C: Client>(
    _address: c_ulong,
    _len: usize,
    _write: c_int,
    _force: c_int,
    _table: *mut abi::sg_table,
    client_context: *mut c_void,
    core_context: u64,
) -> c_int {
    let result =
        from_client_context(client_context).and_then(|number| C::get_pages(number, core_context));
    from_result(result.inspect_err(stats::failed))
}

/// Gives bus addresses for `device`.
///
/// # Safety
///
/// `device` must be NULL or a device that outlives the registration's mapping; `table` and `mapped` must be
/// valid for writing.
unsafe extern "C" fn dma_map<C: Client>(
    table: *mut abi::sg_table,
    client_context: *mut c_void,
    device: *mut abi::device,
    _dmasync: c_int,
    mapped: *mut c_int,
) -> c_int {
    // SAFETY: By this function's requirement it is NULL or a device that outlives the mapping.
    let device = unsafe { Device::from_raw(device) };
    let result = from_client_context(client_context).and_then(|number| C::dma_map(number, device?));
    from_result(match result {
        Ok(ours) => {
            stats::add(abi::NVPM_COUNT_REGISTRATIONS, 1);
            // SAFETY: By this function's requirement both are valid for writing. `mapped` may point
            // into `table`, so it comes last; the number of entries was counted in 32 bits.
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

/// Takes the bus addresses back.
extern "C" fn dma_unmap<C: Client>(
    _table: *mut abi::sg_table,
    client_context: *mut c_void,
    _device: *mut abi::device,
) -> c_int {
    if let Ok(number) = from_client_context(client_context) {
        C::dma_unmap(number);
    }
    0
}

/// The core lets go of the pages. They are unpinned in [`release`]: here an older core holds a
/// lock that a callback of the driver may wait for, and unpinning waits for the callback.
extern "C" fn put_pages(_table: *mut abi::sg_table, _client_context: *mut c_void) {}

/// The page size of the scatterlist, which is trimmed to pages of the kernel.
extern "C" fn get_page_size(_client_context: *mut c_void) -> c_ulong {
    abi::page_size() as c_ulong
}

/// The core is done with the registration.
///
/// # Safety
///
/// `client_context` must be from [`acquire`], and must not be used again.
unsafe extern "C" fn release<C: Client>(client_context: *mut c_void) {
    if let Ok(number) = from_client_context(client_context) {
        C::release(number);
        // SAFETY: By this function's requirement `acquire` has given it to the core, once.
        drop(unsafe { Registration::from_core(number) });
    }
}
