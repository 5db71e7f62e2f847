// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! If the real function has refused GPU memory, registers the memory as a dma-buf.

use core::ffi::{c_int, c_uint, CStr};
use core::ptr::null_mut;

use crate::copies;
use crate::cuda::{self, Pushed};
use crate::inside::Inside;
use crate::libc::{self, Fd, EFAULT, EMFILE, ENFILE, ENOMEM, EOPNOTSUPP};
use crate::log;
use crate::verbs::{self, Mr, Request};

/// The access flags that the kernel refuses for a dma-buf.
const IMPOSSIBLE: c_uint = verbs::ACCESS_ON_DEMAND
    | verbs::ACCESS_ZERO_BASED
    | verbs::ACCESS_MW_BIND
    | verbs::ACCESS_HUGETLB;

/// The reason why there is no registration.
struct Refusal {
    because: &'static CStr,
    /// The name of libcuda's error, if libcuda has refused.
    answer: &'static CStr,
    /// The error number for the caller, or `None` if the caller receives the number from the real
    /// function.
    errno: Option<c_int>,
}

impl Refusal {
    /// Makes a refusal whose reason is not an error of libcuda.
    fn new(because: &'static CStr, errno: Option<c_int>) -> Self {
        Self { because, answer: c"", errno }
    }
}

impl From<cuda::Error> for Refusal {
    fn from(error: cuda::Error) -> Self {
        let errno = match error.code {
            cuda::OUT_OF_MEMORY => Some(ENOMEM),
            cuda::NOT_SUPPORTED | cuda::NO_FUNCTION => Some(EOPNOTSUPP),
            _ => None,
        };
        Self { because: error.function, answer: error.name(), errno }
    }
}

/// Checks `mr`, the answer of the real function. Returns the region of a translation, or NULL with
/// an error number, or `mr` unchanged.
///
/// The real function may also fail with `ENOMEM` for GPU memory, because the kernel checks the
/// limit of locked memory (`RLIMIT_MEMLOCK`) before it looks at the memory. The limit does not
/// apply to a dma-buf.
///
/// # Safety
///
/// `asked.pd` is a protection domain that stays until this returns.
#[cold]
pub(crate) unsafe fn reconsider(mr: *mut Mr, asked: &Request) -> *mut Mr {
    let answered = libc::errno();
    if mr.is_null() && !matches!(answered, EFAULT | ENOMEM) {
        return mr;
    }
    let Some(_inside) = Inside::enter() else {
        return mr;
    };
    if !mr.is_null() {
        warn_of_on_demand(asked);
        return mr;
    }
    // SAFETY: the caller promises the same.
    unsafe { register(asked) }.unwrap_or_else(|refusal| {
        let Refusal { because, answer, errno } = refusal;
        let errno = errno.unwrap_or(answered);
        log::line(asked, errno, c"no dma-buf: ", because, answer);
        libc::set_errno(errno);
        null_mut()
    })
}

/// Registers GPU memory as a dma-buf.
///
/// # Safety
///
/// The same as for `reconsider`.
unsafe fn register(asked: &Request) -> Result<*mut Mr, Refusal> {
    let pointer = asked.addr as u64;
    if !cuda::is_gpu_memory(pointer)? {
        return Err(Refusal::new(c"not GPU memory of CUDA in this process", None));
    }
    if asked.access & IMPOSSIBLE != 0 {
        return Err(Refusal::new(c"not with ON_DEMAND, ZERO_BASED, MW_BIND or HUGETLB", None));
    }
    // SAFETY: `pd` is a protection domain, as the caller promises.
    let reg_dmabuf_mr = unsafe { copies::of(asked.pd) }
        .reg_dmabuf_mr
        .ok_or(Refusal::new(c"this libibverbs has no ibv_reg_dmabuf_mr", Some(EOPNOTSUPP)))?;
    let (start, size) =
        whole_pages(pointer, asked.length).ok_or(Refusal::new(c"no range of memory", None))?;
    let _context = Pushed::if_none(pointer)?;
    let dma_buf =
        cuda::export(start, size).map_err(|error| no_descriptor().unwrap_or(error.into()))?;

    // The library removes optional flags, because the kernel accepts only one of them for a
    // dma-buf. A flag that is optional may be ignored.
    let ignored = verbs::ACCESS_OPTIONAL & !verbs::ACCESS_RELAXED_ORDERING;
    let access = (asked.access & !ignored) as c_int;
    let offset = pointer - start;
    // SAFETY: `pd` belongs to this copy. The region keeps the dma-buf when the descriptor is closed.
    let mr =
        unsafe { reg_dmabuf_mr(asked.pd, offset, asked.length, asked.iova, dma_buf.0, access) };
    if mr.is_null() {
        return Err(Refusal::new(c"ibv_reg_dmabuf_mr failed", Some(libc::errno())));
    }
    // SAFETY: the region is new, and nothing else uses it yet.
    let region = unsafe { &mut *mr };
    // The program expects the address, but libibverbs has stored the offset in the dma-buf.
    region.addr = asked.addr;
    region.length = asked.length;
    let (became, because, answer) = match cuda::sync_memops(pointer) {
        Ok(()) => (c"registered as a dma-buf", c"", c""),
        Err(error) => (c"a dma-buf, but CUDA may copy late: ", error.function, error.name()),
    };
    log::line(asked, 0, became, because, answer);
    Ok(mr)
}

/// Returns the start and the size of the host's pages that contain a range. Libcuda exports only
/// whole pages.
fn whole_pages(pointer: u64, length: usize) -> Option<(u64, usize)> {
    let page = libc::page_size();
    let start = pointer & !(page - 1);
    let end = pointer.checked_add(length as u64)?.checked_add(page - 1)? & !(page - 1);
    (length != 0).then_some((start, usize::try_from(end - start).ok()?))
}

/// Returns a refusal if the process cannot have another descriptor. If an export fails for this
/// reason, libcuda reports another one. This function therefore asks the kernel for a descriptor.
fn no_descriptor() -> Option<Refusal> {
    // SAFETY: the function takes only numbers.
    let fd = unsafe { libc::eventfd(0, 0) };
    if fd >= 0 {
        drop(Fd(fd));
        return None;
    }
    let errno = libc::errno();
    matches!(errno, EMFILE | ENFILE)
        .then(|| Refusal::new(c"no file descriptor is left", Some(errno)))
}

/// Writes a warning about GPU memory that was registered on demand. The kernel accepts such a
/// pointer, but later does not find the memory.
fn warn_of_on_demand(asked: &Request) {
    if log::on() && cuda::is_gpu_memory(asked.addr as u64).unwrap_or(false) {
        log::line(asked, 0, c"on demand: RDMA to GPU memory may fail later", c"", c"");
    }
}
