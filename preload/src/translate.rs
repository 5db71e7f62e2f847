// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! If the kernel has refused GPU memory, registers the memory as a dma-buf.

use core::ffi::{c_int, c_void, CStr};

use crate::cuda::{self, Pushed};
use crate::libc::{
    self, Fd, Uncancelled, EFAULT, EMFILE, ENFILE, ENOMEM, EOPNOTSUPP, EPROTONOSUPPORT,
};
use crate::log;
use crate::next;
use crate::request::{DmaBuf, Memory, Request};
use crate::uverbs;

/// The access flags that the kernel refuses for a dma-buf.
const IMPOSSIBLE: u32 = uverbs::ACCESS_ON_DEMAND
    | uverbs::ACCESS_ZERO_BASED
    | uverbs::ACCESS_MW_BIND
    | uverbs::ACCESS_HUGETLB;

/// The reason why there is no registration.
struct Refusal {
    because: &'static CStr,
    /// The name of libcuda's error, if libcuda has refused.
    answer: &'static CStr,
    /// The error number for the caller, or `None` if the caller receives the number that the kernel
    /// gave for the pointer.
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

/// Looks at a command of the RDMA core that the kernel has answered with `answered`. If the kernel
/// has refused a pointer to GPU memory, registers the memory as a dma-buf, and returns true. If
/// this is not possible, sets the error number for the program, and returns false.
///
/// The kernel may also refuse GPU memory with `ENOMEM`, because it checks the limit of locked
/// memory (`RLIMIT_MEMLOCK`) before it looks at the memory. The limit does not apply to a dma-buf.
///
/// # Safety
///
/// `command` is the address that the program has given to `ioctl()`. If a command is there, only
/// this thread uses the command.
#[cold]
pub(crate) unsafe fn reconsider(fd: c_int, command: *mut c_void, answered: c_int) -> bool {
    let errno = libc::errno();
    let refused = answered == -1;
    if refused && !matches!(errno, EFAULT | ENOMEM) {
        return false;
    }
    // SAFETY: the caller promises that only this thread uses a command at this address, and the
    // request is dropped before this function returns.
    let Some(mut request) = (unsafe { Request::read(command) }) else {
        return false;
    };
    let _uncancelled = Uncancelled::begin();
    if !refused {
        warn_of_on_demand(&request);
        libc::set_errno(errno);
        return false;
    }
    let Err(Refusal { because, answer, errno: of_refusal }) = register(fd, &mut request) else {
        return true;
    };
    let errno = of_refusal.unwrap_or(errno);
    log::line(&request, errno, c"no dma-buf: ", because, answer);
    libc::set_errno(errno);
    false
}

/// Registers GPU memory as a dma-buf, at the device whose descriptor is `fd`.
fn register(fd: c_int, request: &mut Request<'_>) -> Result<(), Refusal> {
    let Memory { addr, length, access } = request.memory;
    if !cuda::is_gpu_memory(addr)? {
        return Err(Refusal::new(c"not GPU memory of CUDA in this process", None));
    }
    if access & IMPOSSIBLE != 0 {
        return Err(Refusal::new(c"not with ON_DEMAND, ZERO_BASED, MW_BIND or HUGETLB", None));
    }
    let (start, size) =
        whole_pages(addr, length).ok_or(Refusal::new(c"no range of memory", None))?;
    let _context = Pushed::if_none(addr)?;
    let dma_buf =
        cuda::export(start, size).map_err(|error| no_descriptor().unwrap_or(error.into()))?;

    // The kernel accepts only one optional flag for a dma-buf. A flag that is optional may be
    // ignored.
    let ignored = uverbs::ACCESS_OPTIONAL & !uverbs::ACCESS_RELAXED_ORDERING;
    let by = DmaBuf { fd: dma_buf.0, offset: addr - start, access: access & !ignored };
    // If a command has no room for another attribute, nothing is sent.
    libc::set_errno(EFAULT);
    // SAFETY: the command has the kernel's form, and lives until `ioctl()` returns. The region
    // keeps the dma-buf when the descriptor is closed.
    let sent = request.by(&by, |command| unsafe {
        next::ioctl(fd, uverbs::REQUEST.into(), (&raw mut *command).cast()) == 0
    });
    if !sent {
        let errno = libc::errno();
        // Before Linux 6.1 the mlx5 driver knows no dma-buf for a umem.
        let unknown = request.is_umem() && errno == EPROTONOSUPPORT;
        return Err(Refusal::new(c"the device refused the dma-buf", (!unknown).then_some(errno)));
    }
    let (became, because, answer) = match cuda::sync_memops(addr) {
        Ok(()) => (c"registered as a dma-buf", c"", c""),
        Err(error) => (c"a dma-buf, but CUDA may copy late: ", error.function, error.name()),
    };
    log::line(request, 0, became, because, answer);
    Ok(())
}

/// Returns the start and the size of the host's pages that contain a range. Libcuda exports only
/// whole pages.
fn whole_pages(addr: u64, length: u64) -> Option<(u64, usize)> {
    let page = libc::page_size();
    let start = addr & !(page - 1);
    let end = addr.checked_add(length)?.checked_add(page - 1)? & !(page - 1);
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
fn warn_of_on_demand(request: &Request<'_>) {
    let Memory { addr, access, .. } = request.memory;
    if access & uverbs::ACCESS_ON_DEMAND != 0 && cuda::is_gpu_memory(addr).unwrap_or(false) {
        log::line(request, 0, c"on demand: RDMA to GPU memory may fail later", c"", c"");
    }
}
