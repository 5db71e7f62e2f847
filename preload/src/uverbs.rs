// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! The commands of the kernel's RDMA core that this library uses, as a program gives them to
//! `ioctl()` of an open `/dev/infiniband/uverbs*`. The kernel's headers in `include/uapi/rdma` have
//! the numbers and the structures, and never change them.

use core::mem;

/// `RDMA_VERBS_IOCTL`: one request with which a program gives all commands to the RDMA core. The
/// kernel looks at 32 bits of a request. A program that has the request as a number with a sign sets
/// the other bits.
pub(crate) const REQUEST: u32 = 0xc018_1b01;

// IB_UVERBS_ACCESS_...
pub(crate) const ACCESS_MW_BIND: u32 = 1 << 4;
pub(crate) const ACCESS_ZERO_BASED: u32 = 1 << 5;
pub(crate) const ACCESS_ON_DEMAND: u32 = 1 << 6;
pub(crate) const ACCESS_HUGETLB: u32 = 1 << 7;
/// The flags that a kernel may ignore.
pub(crate) const ACCESS_OPTIONAL: u32 = 0x3ff0_0000;
/// The only optional flag that a kernel accepts for a dma-buf.
pub(crate) const ACCESS_RELAXED_ORDERING: u32 = 1 << 20;

// UVERBS_OBJECT_... and MLX5_IB_OBJECT_...
pub(crate) const DEVICE: u16 = 0;
pub(crate) const MR: u16 = 7;
pub(crate) const DEVX_UMEM: u16 = 0x1002;

// Methods of these objects.
pub(crate) const DEVICE_INVOKE_WRITE: u16 = 0;
pub(crate) const MR_REG_DMABUF: u16 = 4;
pub(crate) const MR_REG: u16 = 5;
pub(crate) const DEVX_UMEM_REG: u16 = 0x1000;

/// `RDMA_DRIVER_MLX5`: only this driver gives `DEVX_UMEM` its meaning.
pub(crate) const DRIVER_MLX5: u32 = 1;

/// `IB_USER_VERBS_CMD_REG_MR`: the command of `DEVICE_INVOKE_WRITE` that registers memory.
pub(crate) const WRITE_REG_MR: u64 = 9;

/// Attributes of `DEVICE_INVOKE_WRITE`.
pub(crate) mod write {
    pub(crate) const IN: u16 = 0;
    pub(crate) const OUT: u16 = 1;
    pub(crate) const COMMAND: u16 = 2;
}

/// Attributes of `MR_REG_DMABUF`.
pub(crate) mod dmabuf {
    pub(crate) const HANDLE: u16 = 0;
    pub(crate) const PD: u16 = 1;
    pub(crate) const OFFSET: u16 = 2;
    pub(crate) const LENGTH: u16 = 3;
    pub(crate) const IOVA: u16 = 4;
    pub(crate) const FD: u16 = 5;
    pub(crate) const ACCESS: u16 = 6;
    pub(crate) const LKEY: u16 = 7;
    pub(crate) const RKEY: u16 = 8;
}

/// The attributes of a command that takes a pointer, or a descriptor in place of the pointer.
pub(crate) struct Ids {
    pub(crate) addr: u16,
    pub(crate) length: u16,
    pub(crate) access: u16,
    pub(crate) fd: u16,
    /// The attribute that takes the place of the address if there is a descriptor. Without such an
    /// attribute, the address is the offset.
    pub(crate) offset: Option<u16>,
}

/// Attributes of `MR_REG`.
pub(crate) const REG: Ids = Ids { addr: 4, length: 5, access: 6, fd: 7, offset: Some(8) };
/// Attributes of `DEVX_UMEM_REG`.
pub(crate) const UMEM: Ids =
    Ids { addr: 0x1001, length: 0x1002, access: 0x1003, fd: 0x1006, offset: None };

/// `UVERBS_ATTR_F_MANDATORY`: a kernel that does not know the attribute must fail.
const MANDATORY: u16 = 1;

/// The number of attributes that this library can copy. No command of the kernel that registers
/// memory has more.
pub(crate) const MOST: usize = 16;

/// `struct ib_uverbs_attr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Attr {
    pub(crate) id: u16,
    pub(crate) len: u16,
    flags: u16,
    reserved: u16,
    /// The value of the attribute if the value has at most eight bytes, and otherwise the address of
    /// the value. For a result, this is the address to which the kernel writes. For an object that
    /// the call makes, the kernel writes the number of the object into this field.
    pub(crate) data: u64,
}

impl Attr {
    pub(crate) const NONE: Self = Self { id: 0, len: 0, flags: 0, reserved: 0, data: 0 };

    /// Makes a mandatory attribute.
    pub(crate) fn new(id: u16, len: u16, data: u64) -> Self {
        Self { id, len, flags: MANDATORY, reserved: 0, data }
    }
}

/// `struct ib_uverbs_ioctl_hdr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Header {
    /// The size of the whole command in bytes, with its attributes.
    pub(crate) length: u16,
    pub(crate) object: u16,
    pub(crate) method: u16,
    pub(crate) attrs: u16,
    reserved1: u64,
    pub(crate) driver: u32,
    reserved2: u32,
}

/// A command of this library.
#[repr(C)]
pub(crate) struct Command {
    header: Header,
    attrs: [Attr; MOST],
}

impl Command {
    /// Makes a command without attributes, for the same driver as the program's command `of`.
    pub(crate) fn new(of: &Header, object: u16, method: u16) -> Self {
        let length = mem::size_of::<Header>() as u16;
        let header = Header { length, object, method, attrs: 0, ..*of };
        Self { header, attrs: [Attr::NONE; MOST] }
    }

    /// Appends an attribute. Returns its place, or `None` if there is no room.
    pub(crate) fn push(&mut self, attr: Attr) -> Option<usize> {
        let place = usize::from(self.header.attrs);
        *self.attrs.get_mut(place)? = attr;
        self.header.attrs += 1;
        self.header.length += mem::size_of::<Attr>() as u16;
        Some(place)
    }

    /// Returns the attribute at this place, as the kernel has left it.
    pub(crate) fn at(&self, place: usize) -> Attr {
        self.attrs.get(place).copied().unwrap_or(Attr::NONE)
    }
}

/// `struct ib_uverbs_reg_mr`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RegMr {
    response: u64,
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) iova: u64,
    pub(crate) pd: u32,
    pub(crate) access: u32,
}

/// `struct ib_uverbs_reg_mr_resp`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct RegMrResp {
    pub(crate) handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}
