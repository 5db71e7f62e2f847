// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Calls libibverbs. Each object is released when its owner goes, in the order that the borrow checker enforces. The
//! library keeps the last error of a release, because a release has no result.
use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::{NonNull, null_mut};

use libloading::os::unix::{RTLD_LOCAL, RTLD_NOW};

use crate::abi::{self, Opaque, ibv_context, ibv_device_attr_ex, ibv_mr, ibv_pd, ibv_port_attr, verbs_context};
use crate::cuda::Memory;
use crate::errno;
use crate::host_memory::HostMemory;

pub const LIBRARY: &str = "libibverbs.so.1";

/// All rights that a transfer needs, in both directions.
pub(crate) const ALL: c_int = abi::IBV_ACCESS_LOCAL_WRITE | abi::IBV_ACCESS_REMOTE_WRITE | abi::IBV_ACCESS_REMOTE_READ;

/// The most completions that are taken at a time.
const MOST: usize = 32;

/// A verb has failed. The text is like: `ibv_reg_mr: EFAULT (Bad address)`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Error {
    pub verb: &'static str,
    pub number: i32,
}

impl Error {
    /// Returns the name of the error number, such as EFAULT.
    pub fn name(self) -> String {
        errno::name(self.number)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}: {} ({})", self.verb, self.name(), errno::words(self.number))
    }
}

/// Checks the result of a verb that returns an object, or returns NULL and sets errno.
pub(crate) fn not_null<T>(verb: &'static str, found: *mut T) -> Result<NonNull<T>, Error> {
    let number = errno::last();
    NonNull::new(found).ok_or(Error { verb, number })
}

/// Checks the result of a verb that returns 0, or returns an error number, or returns -1 and sets errno.
pub(crate) fn zero(verb: &'static str, found: c_int) -> Result<(), Error> {
    let last = errno::last();
    if found == 0 { Ok(()) } else { Err(Error { verb, number: if found > 0 { found } else { last } }) }
}

/// The verbs, with the types of their arguments and results as in `<infiniband/verbs.h>`.
pub(crate) struct Verbs {
    get_device_list: unsafe extern "C" fn(*mut c_int) -> *mut Opaque,
    free_device_list: unsafe extern "C" fn(*mut Opaque),
    get_device_name: unsafe extern "C" fn(Opaque) -> *const c_char,
    open_device: unsafe extern "C" fn(Opaque) -> *mut ibv_context,
    close_device: unsafe extern "C" fn(*mut ibv_context) -> c_int,
    query_port: unsafe extern "C" fn(*mut ibv_context, u8, *mut ibv_port_attr) -> c_int,
    alloc_pd: unsafe extern "C" fn(*mut ibv_context) -> *mut ibv_pd,
    dealloc_pd: unsafe extern "C" fn(*mut ibv_pd) -> c_int,
    reg_mr: unsafe extern "C" fn(*mut ibv_pd, *mut c_void, usize, c_int) -> *mut ibv_mr,
    // Libraries before rdma-core 34 lack this verb.
    reg_dmabuf_mr: Option<unsafe extern "C" fn(*mut ibv_pd, u64, usize, u64, c_int, c_int) -> *mut ibv_mr>,
    dereg_mr: unsafe extern "C" fn(*mut ibv_mr) -> c_int,
    create_cq: unsafe extern "C" fn(*mut ibv_context, c_int, Opaque, Opaque, c_int) -> Opaque,
    destroy_cq: unsafe extern "C" fn(Opaque) -> c_int,
    pub(crate) create_qp: unsafe extern "C" fn(*mut ibv_pd, *mut abi::ibv_qp_init_attr) -> *mut abi::ibv_qp,
    pub(crate) destroy_qp: unsafe extern "C" fn(*mut abi::ibv_qp) -> c_int,
    pub(crate) modify_qp: unsafe extern "C" fn(*mut abi::ibv_qp, *mut abi::ibv_qp_attr, c_int) -> c_int,
}

/// Takes a function out of a library.
macro_rules! function {
    ($library:expr, $name:literal) => {
        // SAFETY: The library stays loaded as long as the process, so the copy of the pointer stays valid. The type at
        // the place of this call is the type of the function in the library's header.
        unsafe { $library.get(concat!($name, "\0").as_bytes()) }
            .map(|symbol| *symbol)
            .map_err(|error| error.to_string())
    };
}
pub(crate) use function;

/// Loads a library for as long as the process exists.
pub(crate) fn load(name: &str) -> Result<&'static libloading::os::unix::Library, String> {
    // SAFETY: The initializers of the library must be sound. It is installed on this system, and belongs to the driver
    // of the devices that are asked.
    let library = unsafe { libloading::os::unix::Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) };
    Ok(Box::leak(Box::new(library.map_err(|error| error.to_string())?)))
}

pub struct Library {
    pub(crate) verbs: Verbs,
    failed: Cell<Option<Error>>,
}

impl Library {
    /// Loads libibverbs. The error is the text of the dynamic linker.
    pub fn open() -> Result<Self, String> {
        let library = load(LIBRARY)?;
        let verbs = Verbs {
            get_device_list: function!(library, "ibv_get_device_list")?,
            free_device_list: function!(library, "ibv_free_device_list")?,
            get_device_name: function!(library, "ibv_get_device_name")?,
            open_device: function!(library, "ibv_open_device")?,
            close_device: function!(library, "ibv_close_device")?,
            query_port: function!(library, "ibv_query_port")?,
            alloc_pd: function!(library, "ibv_alloc_pd")?,
            dealloc_pd: function!(library, "ibv_dealloc_pd")?,
            reg_mr: function!(library, "ibv_reg_mr")?,
            reg_dmabuf_mr: function!(library, "ibv_reg_dmabuf_mr").ok(),
            dereg_mr: function!(library, "ibv_dereg_mr")?,
            create_cq: function!(library, "ibv_create_cq")?,
            destroy_cq: function!(library, "ibv_destroy_cq")?,
            create_qp: function!(library, "ibv_create_qp")?,
            destroy_qp: function!(library, "ibv_destroy_qp")?,
            modify_qp: function!(library, "ibv_modify_qp")?,
        };
        Ok(Self { verbs, failed: Cell::new(None) })
    }

    /// Returns whether the library has the verb for a dma-buf.
    pub fn has_dma_buf(&self) -> bool {
        self.verbs.reg_dmabuf_mr.is_some()
    }

    /// Returns the last error of a release since the last call.
    pub fn release_failure(&self) -> Option<Error> {
        self.failed.take()
    }

    pub(crate) fn released(&self, verb: &'static str, found: c_int) {
        if let Err(error) = zero(verb, found) {
            self.failed.set(Some(error));
        }
    }

    /// Returns the names of the devices.
    pub fn device_names(&self) -> Result<Vec<String>, Error> {
        let list = DeviceList::new(self)?;
        Ok(list.devices().map(|device| list.name(device)).collect())
    }

    /// Opens a device. Returns None if there is no device with this name.
    pub fn open_device(&self, name: &str) -> Result<Option<Context<'_>>, Error> {
        let list = DeviceList::new(self)?;
        let Some(device) = list.devices().find(|device| list.name(*device) == name) else { return Ok(None) };
        // SAFETY: The device belongs to the list, which exists during the call. The context outlives the list, as the
        // manual of ibv_free_device_list allows.
        let raw = unsafe { (self.verbs.open_device)(device) };
        Ok(Some(Context { library: self, raw: not_null("ibv_open_device", raw)? }))
    }
}

/// The array of the library with all devices.
struct DeviceList<'l> {
    library: &'l Library,
    start: NonNull<Opaque>,
    count: usize,
}

impl<'l> DeviceList<'l> {
    fn new(library: &'l Library) -> Result<Self, Error> {
        let mut count = 0;
        // SAFETY: The function requires a place for the number.
        let start = unsafe { (library.verbs.get_device_list)(&raw mut count) };
        let start = not_null("ibv_get_device_list", start)?;
        Ok(Self { library, start, count: usize::try_from(count).unwrap_or_default() })
    }

    fn devices(&self) -> impl Iterator<Item = Opaque> {
        // SAFETY: The array has COUNT pointers, and exists as long as this list, which nobody changes.
        let all = unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count) };
        all.iter().copied()
    }

    fn name(&self, device: Opaque) -> String {
        // SAFETY: The device belongs to this list.
        let name = unsafe { (self.library.verbs.get_device_name)(device) };
        // SAFETY: The function returns a text that ends with a zero, and exists as long as the list.
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    }
}

impl Drop for DeviceList<'_> {
    fn drop(&mut self) {
        // SAFETY: The list came from the library, and only here it is freed.
        unsafe { (self.library.verbs.free_device_list)(self.start.as_ptr()) };
    }
}

/// What a port says about itself.
#[derive(Clone, Copy, Debug)]
pub struct PortAttributes {
    pub(crate) mtu: c_int,
    /// The most bytes in one message. 0: unknown.
    pub longest: u32,
    pub lid: u16,
    /// Whether each route needs a GID, also on InfiniBand.
    pub needs_gid: bool,
}

/// An open device.
pub struct Context<'l> {
    pub(crate) library: &'l Library,
    raw: NonNull<ibv_context>,
}

impl Context<'_> {
    pub fn domain(&self) -> Result<Domain<'_>, Error> {
        // SAFETY: The context is open.
        let raw = unsafe { (self.library.verbs.alloc_pd)(self.raw.as_ptr()) };
        Ok(Domain { context: self, raw: not_null("ibv_alloc_pd", raw)? })
    }

    /// Returns a completion queue with room for some entries.
    pub fn completions(&self, entries: c_int) -> Result<Completions<'_>, Error> {
        // SAFETY: The context is open. A queue may have no pointer of the program, and no channel, and number 0 is
        // always a valid vector.
        let raw = unsafe { (self.library.verbs.create_cq)(self.raw.as_ptr(), entries, null_mut(), null_mut(), 0) };
        Ok(Completions { context: self, raw: not_null("ibv_create_cq", raw)? })
    }

    pub fn port(&self, number: u8) -> Result<PortAttributes, Error> {
        let mut found = ibv_port_attr::default();
        // SAFETY: The context is open, and the structure is the largest that a library fills in.
        let code = unsafe { (self.library.verbs.query_port)(self.raw.as_ptr(), number, &raw mut found) };
        zero("ibv_query_port", code)?;
        let needs_gid = found.flags & abi::IBV_QPF_GRH_REQUIRED != 0;
        Ok(PortAttributes { mtu: found.active_mtu, longest: found.max_msg_sz, lid: found.lid, needs_gid })
    }

    /// Returns whether a device can page on demand (ODP); None if the library does not say. In the library's header,
    /// `ibv_query_device_ex()` is an inline function.
    pub fn pages_on_demand(&self) -> Option<bool> {
        let context = self.raw.as_ptr();
        // SAFETY: The context is open, so its fields can be read. Only the library writes to them, when it opens a
        // device.
        if unsafe { (*context).abi_compat } != abi::EXTENDED {
            return None;
        }
        let whole = context.wrapping_byte_sub(offset_of!(verbs_context, context)).cast::<verbs_context>();
        // SAFETY: The value in abi_compat says that the context is the end of a verbs_context. In each library, at
        // least the field with the size stands at this distance before the context.
        let size = unsafe { (*whole).sz };
        if size < size_of::<verbs_context>() {
            return None;
        }
        // SAFETY: The structure is large enough to contain this field, which is NULL or a function of this type.
        let query = unsafe { (*whole).query_device_ex }?;
        let mut found = ibv_device_attr_ex {
            _orig_attr: [0; 29],
            comp_mask: 0,
            odp_caps: abi::ibv_odp_caps { general_caps: 0, _of_rc: 0, _of_uc: 0, _of_ud: 0, _aligned: 0 },
            _room: [0; 512],
        };
        let size = offset_of!(ibv_device_attr_ex, _room);
        // SAFETY: The context is open, nothing further is asked, and there is room for SIZE bytes, and behind them for
        // the fields that older libraries also write.
        let code = unsafe { query(context, std::ptr::null(), &raw mut found, size) };
        (code == 0).then_some(found.odp_caps.general_caps & abi::IBV_ODP_SUPPORT != 0)
    }

    pub(crate) fn post_send(&self) -> Option<abi::PostSend> {
        // SAFETY: The context is open, so its fields can be read.
        unsafe { (*self.raw.as_ptr()).ops.post_send }
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: The context is open, only here it is closed, and all objects that belong to it borrow it.
        let code = unsafe { (self.library.verbs.close_device)(self.raw.as_ptr()) };
        self.library.released("ibv_close_device", code);
    }
}

/// A protection domain, to which regions and queue pairs belong.
pub struct Domain<'c> {
    pub(crate) context: &'c Context<'c>,
    pub(crate) raw: NonNull<ibv_pd>,
}

impl Domain<'_> {
    pub fn register_host<'r>(&'r self, memory: &'r HostMemory) -> Result<Region<'r>, Error> {
        let address = memory.address();
        // SAFETY: The domain exists. A device may write to the memory as long as the region exists, which borrows it;
        // the bytes have no references, and any value is valid for a byte.
        let raw = unsafe { (self.verbs().reg_mr)(self.raw.as_ptr(), address.cast(), memory.size(), ALL) };
        self.region("ibv_reg_mr", raw, address.addr() as u64, memory.size())
    }

    pub fn register_gpu<'r>(&'r self, memory: &'r Memory<'_>) -> Result<Region<'r>, Error> {
        let address = memory.address();
        // SAFETY: The domain exists. The address belongs to memory of a GPU, in which Rust has no objects.
        let raw = unsafe { (self.verbs().reg_mr)(self.raw.as_ptr(), address as *mut c_void, memory.size(), ALL) };
        self.region("ibv_reg_mr", raw, address, memory.size())
    }

    /// Registers the beginning of a dma-buf of GPU memory, which devices then reach at the memory's address. Returns
    /// None if the library has no such verb.
    pub fn register_dma_buf<'r>(
        &'r self,
        descriptor: BorrowedFd<'_>,
        memory: &'r Memory<'_>,
    ) -> Option<Result<Region<'r>, Error>> {
        let register = self.verbs().reg_dmabuf_mr?;
        let (address, size) = (memory.address(), memory.size());
        // SAFETY: The domain exists, and the descriptor is open. The kernel checks that it is that of a dma-buf, whose
        // memory Rust has no objects in, and that the dma-buf is large enough.
        let raw = unsafe { register(self.raw.as_ptr(), 0, size, address, descriptor.as_raw_fd(), ALL) };
        Some(self.region("ibv_reg_dmabuf_mr", raw, address, size))
    }

    /// Registers the descriptor -1, as NCCL and other programs do to ask for dma-buf. Returns the error; None if the
    /// library has no such verb, or the registration succeeds.
    pub fn register_no_descriptor(&self) -> Option<Error> {
        const LENGTH: usize = 4096;
        let register = self.verbs().reg_dmabuf_mr?;
        // SAFETY: The domain exists. No descriptor has the number -1, so nothing can be registered.
        let raw = unsafe { register(self.raw.as_ptr(), 0, LENGTH, 0, -1, abi::IBV_ACCESS_LOCAL_WRITE) };
        not_null("ibv_reg_dmabuf_mr", raw).err()
    }

    fn verbs(&self) -> &Verbs {
        &self.context.library.verbs
    }

    fn region(&self, verb: &'static str, raw: *mut ibv_mr, address: u64, length: usize) -> Result<Region<'_>, Error> {
        let raw = not_null(verb, raw)?;
        // SAFETY: The library has returned a region, whose fields it does not change any more.
        let found = unsafe { raw.as_ref() };
        let (local_key, remote_key) = (found.lkey, found.rkey);
        Ok(Region { library: self.context.library, raw, address, length, local_key, remote_key })
    }
}

impl Drop for Domain<'_> {
    fn drop(&mut self) {
        // SAFETY: The domain exists, only here it is freed, and all objects that belong to it borrow it.
        let code = unsafe { (self.verbs().dealloc_pd)(self.raw.as_ptr()) };
        self.context.library.released("ibv_dealloc_pd", code);
    }
}

/// A registration. `address` is the address that devices use. If the memory is a dma-buf, this is not the address in
/// the `ibv_mr`.
pub struct Region<'r> {
    library: &'r Library,
    raw: NonNull<ibv_mr>,
    pub(crate) address: u64,
    pub(crate) length: usize,
    pub(crate) local_key: u32,
    pub(crate) remote_key: u32,
}

impl Drop for Region<'_> {
    fn drop(&mut self) {
        // SAFETY: The region exists, only here it is ended, and the queue pairs that reach it borrow it.
        let code = unsafe { (self.library.verbs.dereg_mr)(self.raw.as_ptr()) };
        self.library.released("ibv_dereg_mr", code);
    }
}

/// The status of a completion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status(c_int);

impl Status {
    pub fn is_success(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Status {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = usize::try_from(self.0).ok().and_then(|number| abi::IBV_WC.get(number));
        match name {
            Some(name) => write!(to, "IBV_WC_{name}"),
            None => write!(to, "IBV_WC_{}", self.0),
        }
    }
}

/// A completion queue.
pub struct Completions<'c> {
    context: &'c Context<'c>,
    pub(crate) raw: NonNull<c_void>,
}

impl Completions<'_> {
    /// Returns the statuses of completions that have arrived, but not more than MOST. Returns None if the device cannot
    /// be asked.
    pub fn poll(&self, most: usize) -> Option<Vec<Status>> {
        let mut found = [abi::ibv_wc::default(); MOST];
        // SAFETY: The context is open, so its fields can be read.
        let poll = unsafe { (*self.context.raw.as_ptr()).ops.poll_cq }?;
        let most = c_int::try_from(most.min(MOST)).ok()?;
        // SAFETY: The queue exists, and the array has room for as many completions.
        let count = unsafe { poll(self.raw.as_ptr(), most, found.as_mut_ptr()) };
        let count = usize::try_from(count).ok()?;
        Some(found.iter().take(count).map(|completion| Status(completion.status)).collect())
    }
}

impl Drop for Completions<'_> {
    fn drop(&mut self) {
        let library = self.context.library;
        // SAFETY: The queue exists, only here it is destroyed, and the queue pairs that use it borrow it.
        let code = unsafe { (library.verbs.destroy_cq)(self.raw.as_ptr()) };
        library.released("ibv_destroy_cq", code);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_and_statuses_have_texts() {
        let error = Error { verb: "ibv_reg_mr", number: 14 };
        assert_eq!(error.to_string(), "ibv_reg_mr: EFAULT (Bad address)");
        let texts: Vec<String> = [0, 12, 21, 22, -1].map(|number| Status(number).to_string()).to_vec();
        assert_eq!(texts, ["IBV_WC_SUCCESS", "IBV_WC_RETRY_EXC_ERR", "IBV_WC_GENERAL_ERR", "IBV_WC_22", "IBV_WC_-1"]);
    }

    #[test]
    fn a_verb_returns_a_number_or_sets_errno() {
        assert_eq!(zero("ibv_dereg_mr", 0), Ok(()));
        assert_eq!(zero("ibv_dereg_mr", 16), Err(Error { verb: "ibv_dereg_mr", number: 16 }));
    }
}
