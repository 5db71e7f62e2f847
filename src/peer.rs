// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The RDMA core's side: registration of a client, and the functions that the core calls.
//!
//! C header: `rdma/peer_mem.h`. The functions check and convert what the core gives, call
//! `client.rs`, and convert what comes back; they decide nothing.

use core::{
    marker::PhantomData,
    ptr::NonNull, //
};

use super::{
    abi,
    client::{
        self,
        Client,
        Region, //
    },
    errno::{
        self,
        Errno, //
    },
    ffi::{
        c_char,
        c_int,
        c_ulong,
        c_void, //
    },
    notify,
    p2p::Device,
    rt::{
        self,
        Arc,
        AtomicBool,
        KBox,
        Ordering,
        GFP_KERNEL, //
    },
    stats, //
};

/// Whether the clients may claim memory: the core asks before it has returned from registering
/// them, and before it is certain that the module will stay.
static OPEN: AtomicBool = AtomicBool::new(false);

/// All clients are registered: from here on they claim memory.
pub(crate) fn open() {
    OPEN.store(true, Ordering::Release);
}

/// What kind of RDMA core the client is registered with.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Core {
    /// MLNX_OFED 5.1 and later, and the distributions' kernels.
    Current,
    /// MLNX_OFED 4.1 to 5.0: what is the size of the extended structure today is a function
    /// pointer there and must be NULL.
    Legacy,
}

/// A client that is registered with the RDMA core for as long as this lives.
///
/// # Invariants
///
/// `handle` came from the core, which keeps a pointer to what is in `_client`.
pub(crate) struct Registration<C: Client> {
    handle: NonNull<c_void>,
    _client: KBox<abi::nvpm_client>,
    _kind: PhantomData<C>,
}

// SAFETY: The core may be asked to unregister a client from any thread.
unsafe impl<C: Client> Send for Registration<C> {}
// SAFETY: Nothing is done through a shared reference.
unsafe impl<C: Client> Sync for Registration<C> {}

impl<C: Client> Registration<C> {
    /// Registers the client under `name`. The core asks clients in the order of registration.
    pub(crate) fn new(name: &str, core: Core) -> Result<Self, Errno> {
        let client = KBox::new(client::<C>(name, core), GFP_KERNEL).map_err(|_| Errno::NOMEM)?;
        let mut invalidate: abi::invalidate_peer_memory = None;
        let wanted = if C::REVOCABLE {
            &raw mut invalidate
        } else {
            core::ptr::null_mut()
        };
        // SAFETY: The client lives until it is unregistered, with all that a core may look for
        // behind the part that every core knows; `wanted` is NULL or valid for the core to store a pointer.
        let handle =
            unsafe { abi::ib_register_peer_memory_client((&raw const *client).cast(), wanted) };
        let handle = NonNull::new(handle).ok_or(Errno::INVAL)?;
        // INVARIANT: The core has just returned it.
        let registration = Self {
            handle,
            _client: client,
            _kind: PhantomData,
        };
        if C::REVOCABLE {
            let function = invalidate.ok_or(Errno::INVAL)?;
            // SAFETY: The core's own pair; `drop` forgets it before the core goes.
            unsafe { notify::set(function, handle.as_ptr()) };
        }
        Ok(registration)
    }
}

impl<C: Client> Drop for Registration<C> {
    fn drop(&mut self) {
        // SAFETY: By the type's invariant the client is registered. The core waits until it has
        // released every region.
        unsafe { abi::ib_unregister_peer_memory_client(self.handle.as_ptr()) };
        if C::REVOCABLE {
            notify::unset();
        }
    }
}

/// The structure that describes the client to the core.
fn client<C: Client>(name: &str, core: Core) -> abi::nvpm_client {
    let mut client = abi::nvpm_client {
        client: abi::peer_memory_client {
            acquire: Some(acquire::<C>),
            get_pages: Some(get_pages),
            dma_map: Some(dma_map),
            dma_unmap: Some(dma_unmap),
            put_pages: Some(put_pages),
            get_page_size: Some(get_page_size),
            release: Some(release),
            ..Default::default()
        },
        ..Default::default()
    };
    fill(&mut client.client.name, name);
    fill(&mut client.client.version, env!("NVPM_VERSION"));
    if core == Core::Current {
        // SAFETY: `client` is valid for writing.
        unsafe { abi::nvpm_client_extend(&mut client) };
    }
    client
}

/// Copies a string into a zeroed field of C, leaving the last two bytes alone: a terminator, and
/// the flag that the core keeps in the last byte of a version.
fn fill(field: &mut [c_char], text: &str) {
    let room = field.len().saturating_sub(2);
    for (to, from) in field.iter_mut().take(room).zip(text.bytes()) {
        *to = from as c_char;
    }
}

/// Whether the addresses are GPU memory of this process; if so, its region.
///
/// # Safety
///
/// `context` must be valid for storing a pointer.
unsafe extern "C" fn acquire<C: Client>(
    address: c_ulong,
    len: usize,
    _private: *mut c_void,
    _name: *mut c_char,
    context: *mut *mut c_void,
) -> c_int {
    if !OPEN.load(Ordering::Acquire) {
        return 0;
    }
    let claim = match client::acquire::<C>(address as u64, len as u64) {
        Ok(None) => return 0,
        Ok(Some(region)) => Arc::into_raw(region).cast_mut().cast(),
        // Only a claim brings the error to the user: the core loses what is returned here.
        Err(_) => no_memory(),
    };
    // SAFETY: By this function's requirement.
    unsafe { *context = claim };
    1
}

/// What the core gets for a region that there was no memory for: no region's address.
fn no_memory() -> *mut c_void {
    static NO_MEMORY: u8 = 0;
    (&raw const NO_MEMORY).cast_mut().cast()
}

/// The region that `acquire` gave to the core, or why it gave none.
///
/// # Safety
///
/// `context` must be from `acquire` and not yet given to `release`, for as long as `'a` lasts.
unsafe fn region<'a>(context: *mut c_void) -> Result<&'a Region, Errno> {
    if context == no_memory() {
        return Err(Errno::NOMEM);
    }
    // SAFETY: By this function's requirement the core has the reference that `acquire` gave it.
    Ok(unsafe { &*context.cast::<Region>() })
}

/// Takes the pages for the registration that the core calls `ticket`.
///
/// # Safety
///
/// As for [`region`].
unsafe extern "C" fn get_pages(
    _address: c_ulong,
    _len: usize,
    _write: c_int,
    _force: c_int,
    _table: *mut abi::sg_table,
    context: *mut c_void,
    ticket: u64,
) -> c_int {
    // SAFETY: By this function's requirement.
    let region = unsafe { region(context) };
    let result = region.and_then(|region| region.get_pages(ticket));
    errno::to_c(result.inspect_err(stats::failed))
}

/// Gives bus addresses for `device`.
///
/// # Safety
///
/// As for [`region`]; `device` must be NULL or a device that outlives the region's mapping,
/// `table` and `mapped` valid for writing.
unsafe extern "C" fn dma_map(
    table: *mut abi::sg_table,
    context: *mut c_void,
    device: *mut abi::device,
    _dmasync: c_int,
    mapped: *mut c_int,
) -> c_int {
    // SAFETY: By this function's requirement.
    let (region, device) = unsafe { (region(context), Device::from_raw(device)) };
    let give = |ours: abi::sg_table| {
        // SAFETY: By this function's requirement. `mapped` may point into `table`, so it comes
        // last; the number of entries was counted in 32 bits.
        unsafe {
            *table = ours;
            *mapped = ours.nents as c_int;
        }
    };
    let result = region.and_then(|region| region.dma_map(device?, give));
    errno::to_c(result.inspect_err(stats::failed))
}

/// Takes the bus addresses back.
///
/// # Safety
///
/// As for [`region`].
unsafe extern "C" fn dma_unmap(
    _table: *mut abi::sg_table,
    context: *mut c_void,
    _device: *mut abi::device,
) -> c_int {
    // SAFETY: By this function's requirement.
    if let Ok(region) = unsafe { region(context) } {
        region.dma_unmap();
    }
    0
}

/// The core lets go of the pages. They are unpinned in [`release`]: here an older core holds a
/// lock that a callback of the driver may wait for, and unpinning waits for the callback.
extern "C" fn put_pages(_table: *mut abi::sg_table, _context: *mut c_void) {}

/// The unit of the scatterlist: pages of the kernel, to which it is trimmed already.
extern "C" fn get_page_size(_context: *mut c_void) -> c_ulong {
    rt::page_size() as c_ulong
}

/// The core has no more to say about the region.
///
/// # Safety
///
/// As for [`region`]; `context` is not used again.
unsafe extern "C" fn release(context: *mut c_void) {
    if context == no_memory() {
        return;
    }
    // SAFETY: By this function's requirement this takes back the reference that `acquire` gave.
    let region = unsafe { Arc::<Region>::from_raw(context.cast_const().cast()) };
    region.release();
}

#[cfg(nvpm_kunit)]
#[path = "kunit/peer.rs"]
mod kunit;
