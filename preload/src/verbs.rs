// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The types and functions of libibverbs that this library uses, from `infiniband/verbs.h`, with
//! the versions of the functions' symbols.

use core::ffi::{c_int, c_uint, c_void, CStr};
use core::mem::{self, offset_of};
use core::ptr::null_mut;

use crate::elf::{Object, Version};
use crate::libc;

pub(crate) const ACCESS_MW_BIND: c_uint = 1 << 4;
pub(crate) const ACCESS_ZERO_BASED: c_uint = 1 << 5;
pub(crate) const ACCESS_ON_DEMAND: c_uint = 1 << 6;
pub(crate) const ACCESS_HUGETLB: c_uint = 1 << 7;
/// The flags that a kernel may ignore.
pub(crate) const ACCESS_OPTIONAL: c_uint = 0x3ff0_0000;
/// The only optional flag that a kernel accepts for a dma-buf.
pub(crate) const ACCESS_RELAXED_ORDERING: c_uint = 1 << 20;

/// `IBV_REG_MR_MASK_ADDR`: the caller has filled in `MrInitAttr::addr`.
pub(crate) const MASK_ADDR: u64 = 2;
/// The caller has also filled in `MrInitAttr::iova`.
pub(crate) const MASK_ADDR_AND_IOVA: u64 = 2 + 1;
/// `IBV_REG_MR_MASK_IOVA` and `IBV_REG_MR_MASK_FD`: the memory is a dma-buf.
const MASK_DESCRIPTOR: u64 = 1 + 4;
/// The caller has also filled in `MrInitAttr::fd_offset`.
const MASK_DESCRIPTOR_AND_OFFSET: u64 = 1 + 4 + 8;

/// The beginning of `struct ibv_pd`.
#[repr(C)]
pub struct Pd {
    context: *mut Context,
}

/// `struct ibv_context`.
#[repr(C)]
struct Context {
    device: *mut c_void,
    operations: [usize; 32],
    descriptors: [c_int; 3],
    mutex: [u64; MUTEX],
    /// A field of the old interface. All of its bits are set if the context is part of a
    /// `verbs_context`.
    abi_compat: usize,
}

/// The size of a `pthread_mutex_t`, in words.
const MUTEX: usize = if cfg!(target_arch = "aarch64") { 6 } else { 5 };

/// The last members of `struct verbs_context`. New versions of libibverbs add members only at the
/// beginning.
#[repr(C)]
struct VerbsContext {
    create_cq_ex: usize,
    others: [usize; 13],
    /// The size of the whole structure in the library that made the structure.
    size: usize,
    context: Context,
}

impl Pd {
    /// Returns an address inside the copy of libibverbs that made the protection domain's context,
    /// or 0.
    ///
    /// Since rdma-core 20, each copy stores the address of its own static function in
    /// `create_cq_ex`, and no driver of a device replaces this address. The addresses in
    /// `ibv_context.ops` are not suitable, for two reasons. Another library may define
    /// `_compat_query_port` before libibverbs does. Before rdma-core 22, this function also belongs
    /// to the device's driver.
    ///
    /// # Safety
    ///
    /// `pd` is a protection domain, or NULL.
    pub(crate) unsafe fn maker(pd: *const Self) -> usize {
        if pd.is_null() {
            return 0;
        }
        // SAFETY: this is a protection domain.
        let context = unsafe { (*pd).context };
        // SAFETY: if a protection domain has a context, the context lives longer.
        if context.is_null() || unsafe { (*context).abi_compat } != usize::MAX {
            return 0;
        }
        let around = context.wrapping_byte_sub(offset_of!(VerbsContext, context));
        let around = around.cast::<VerbsContext>();
        // SAFETY: each `verbs_context` has its size in front of the context.
        if unsafe { (*around).size } < mem::size_of::<VerbsContext>() {
            return 0;
        }
        // SAFETY: the structure is large enough for this member.
        unsafe { (*around).create_cq_ex }
    }
}

/// `struct ibv_mr`.
#[repr(C)]
pub struct Mr {
    context: *mut c_void,
    pd: *mut Pd,
    /// The memory that was registered, as the caller sees it.
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    handle: u32,
    lkey: u32,
    rkey: u32,
}

/// The first members of `struct ibv_mr_init_attr`. New versions of libibverbs add members only at
/// the end.
#[repr(C)]
pub struct MrInitAttr {
    pub(crate) length: usize,
    /// An `int` in C, which has the same size.
    pub(crate) access: c_uint,
    pub(crate) comp_mask: u64,
    pub(crate) iova: u64,
    pub(crate) addr: *mut c_void,
    fd: c_int,
    fd_offset: u64,
}

/// The arguments of a registration.
pub(crate) struct Request {
    pub(crate) pd: *mut Pd,
    pub(crate) addr: *mut c_void,
    pub(crate) length: usize,
    pub(crate) iova: u64,
    pub(crate) access: c_uint,
}

pub(crate) type RegMr = unsafe extern "C" fn(*mut Pd, *mut c_void, usize, c_uint) -> *mut Mr;
pub(crate) type RegMrIova =
    unsafe extern "C" fn(*mut Pd, *mut c_void, usize, u64, c_uint) -> *mut Mr;
pub(crate) type RegMrEx = unsafe extern "C" fn(*mut Pd, *mut MrInitAttr) -> *mut Mr;
pub(crate) type RegDmabufMr =
    unsafe extern "C" fn(*mut Pd, u64, usize, u64, c_int, c_int) -> *mut Mr;

pub(crate) const REG_MR: &CStr = c"ibv_reg_mr";
pub(crate) const REG_MR_IOVA: &CStr = c"ibv_reg_mr_iova";
pub(crate) const REG_MR_IOVA2: &CStr = c"ibv_reg_mr_iova2";
pub(crate) const REG_MR_EX: &CStr = c"ibv_reg_mr_ex";

/// The version that `ibv_reg_mr()` has in each libibverbs since 1.1.
pub(crate) const FIRST: Version = Version::Only(c"IBVERBS_1.1");

/// The functions by which a copy of libibverbs registers memory.
#[derive(Default)]
pub(crate) struct Verbs {
    reg_mr: Option<RegMr>,
    /// Since rdma-core 25.
    reg_mr_iova: Option<RegMrIova>,
    /// Since rdma-core 28. The two functions above call `ibv_reg_mr_iova2()` since rdma-core 32.
    reg_mr_iova2: Option<RegMrIova>,
    /// Since rdma-core 59.
    pub(crate) reg_mr_ex: Option<RegMrEx>,
    /// Since rdma-core 34.
    pub(crate) reg_dmabuf_mr: Option<RegDmabufMr>,
}

/// The addresses of the functions of [`Verbs`], in the order of its fields.
pub(crate) type Addresses = [*const c_void; 5];

/// Returns the functions that a copy of libibverbs exports, or `None` if the object is no copy.
pub(crate) fn exported(object: &Object<'_>) -> Option<Addresses> {
    let names = [
        (REG_MR, c"IBVERBS_1.1"),
        (REG_MR_IOVA, c"IBVERBS_1.7"),
        (REG_MR_IOVA2, c"IBVERBS_1.8"),
        (REG_MR_EX, c"IBVERBS_1.15"),
        (c"ibv_reg_dmabuf_mr", c"IBVERBS_1.12"),
    ];
    let found = names.map(|(name, version)| object.function(name, Version::Accepts(version)));
    (!found[0].is_null()).then_some(found)
}

impl Verbs {
    /// # Safety
    ///
    /// `found` was returned by `exported`, and the object is still mapped.
    pub(crate) unsafe fn new(found: Addresses) -> Self {
        let [reg_mr, reg_mr_iova, reg_mr_iova2, reg_mr_ex, reg_dmabuf_mr] = found;
        Self {
            // SAFETY: verbs.h declares a function of this name with this type.
            reg_mr: unsafe { mem::transmute::<*const c_void, Option<RegMr>>(reg_mr) },
            // SAFETY: as above.
            reg_mr_iova: unsafe { mem::transmute::<*const c_void, Option<RegMrIova>>(reg_mr_iova) },
            // SAFETY: as above.
            reg_mr_iova2: unsafe {
                mem::transmute::<*const c_void, Option<RegMrIova>>(reg_mr_iova2)
            },
            // SAFETY: as above.
            reg_mr_ex: unsafe { mem::transmute::<*const c_void, Option<RegMrEx>>(reg_mr_ex) },
            // SAFETY: as above.
            reg_dmabuf_mr: unsafe {
                mem::transmute::<*const c_void, Option<RegDmabufMr>>(reg_dmabuf_mr)
            },
        }
    }

    /// Registers memory as `ibv_reg_mr()` does.
    ///
    /// Calls `ibv_reg_mr_iova2()` if this copy has it, and otherwise the real `ibv_reg_mr()`. The
    /// function `reg_mr_iova` does the same with the real `ibv_reg_mr_iova()`. A real function may
    /// call another one by its name, and thereby call this library again. Such a call ends after
    /// one round.
    /// # Safety
    ///
    /// `asked.pd` is a protection domain of this copy, and stays until this returns.
    pub(crate) unsafe fn reg_mr(&self, asked: &Request) -> *mut Mr {
        let Request { pd, addr, length, iova, access } = *asked;
        match (self.reg_mr_iova2, self.reg_mr) {
            // SAFETY: these are the caller's own arguments.
            (Some(real), _) => unsafe { real(pd, addr, length, iova, access) },
            // SAFETY: as above. Older versions know no optional flags.
            (_, Some(real)) => unsafe { real(pd, addr, length, access & !ACCESS_OPTIONAL) },
            _ => missing(),
        }
    }

    /// Registers memory as `ibv_reg_mr_iova()` does.
    ///
    /// # Safety
    ///
    /// The same as for `reg_mr`.
    pub(crate) unsafe fn reg_mr_iova(&self, asked: &Request) -> *mut Mr {
        let Request { pd, addr, length, iova, access } = *asked;
        let access = match self.reg_mr_iova2 {
            Some(_) => access,
            None => access & !ACCESS_OPTIONAL,
        };
        match self.reg_mr_iova2.or(self.reg_mr_iova) {
            // SAFETY: these are the caller's own arguments.
            Some(real) => unsafe { real(pd, addr, length, iova, access) },
            None => missing(),
        }
    }

    /// Registers a dma-buf as `ibv_reg_mr_ex()` does, in a copy that does not have that function. A
    /// program that found no `ibv_reg_mr_ex()` would call `ibv_reg_dmabuf_mr()` itself.
    ///
    /// # Safety
    ///
    /// `pd` is a protection domain of this copy, and stays until this returns.
    pub(crate) unsafe fn reg_mr_of_descriptor(&self, pd: *mut Pd, attr: &MrInitAttr) -> *mut Mr {
        let offset = match attr.comp_mask {
            MASK_DESCRIPTOR => 0,
            MASK_DESCRIPTOR_AND_OFFSET => attr.fd_offset,
            _ => return missing(),
        };
        let Some(real) = self.reg_dmabuf_mr else { return missing() };
        // SAFETY: these are the caller's own arguments.
        unsafe { real(pd, offset, attr.length, attr.iova, attr.fd, attr.access as c_int) }
    }

    /// Registers memory as `ibv_reg_mr_iova2()` does.
    ///
    /// # Safety
    ///
    /// The same as for `reg_mr`.
    pub(crate) unsafe fn reg_mr_iova2(&self, asked: &Request) -> *mut Mr {
        if asked.iova == asked.addr as u64 {
            // SAFETY: the caller promises the same.
            unsafe { self.reg_mr(asked) }
        } else {
            // SAFETY: the caller promises the same.
            unsafe { self.reg_mr_iova(asked) }
        }
    }
}

/// Returns the answer for a program that calls a function that its libibverbs does not have, either
/// because it is too old or because it is not in the process. Such a program has found the function
/// in this library.
#[cold]
pub(crate) fn missing() -> *mut Mr {
    libc::set_errno(libc::EOPNOTSUPP);
    null_mut()
}
