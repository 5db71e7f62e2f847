// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Reads a program's command that registers memory by a pointer, and makes the command that
//! registers the same memory as a dma-buf.
//!
//! Libibverbs has three commands for a pointer. `ibv_reg_mr()` and its relatives use the one that
//! was once given to `write()`. `ibv_reg_mr_ex()` uses a newer one. `mlx5dv_devx_umem_reg()` has a
//! command of the mlx5 driver.

use core::ffi::{c_int, c_void, CStr};
use core::mem;
use core::{ptr, slice};

use crate::libc;
use crate::uverbs::{self, dmabuf, write, Attr, Command, Header, Ids, RegMr, RegMrResp};

/// The kernel takes no command of more bytes.
const MOST_SIZE: usize = 4096;

/// The memory that a program wants to register.
pub(crate) struct Memory {
    pub(crate) addr: u64,
    pub(crate) length: u64,
    pub(crate) access: u32,
}

/// The dma-buf that takes the place of the pointer.
pub(crate) struct DmaBuf {
    pub(crate) fd: c_int,
    /// The distance between the start of the dma-buf and that of the memory, in bytes.
    pub(crate) offset: u64,
    /// The access flags, without those that the kernel refuses for a dma-buf.
    pub(crate) access: u32,
}

/// How the memory stands in a command, and how the command becomes one with a dma-buf.
enum Kind {
    /// `ibv_reg_mr()`: in a structure. The dma-buf has a command of its own, whose answer becomes a
    /// structure at `answer`.
    Structure { asked: RegMr, answer: *mut RegMrResp },
    /// `ibv_reg_mr_ex()` and `mlx5dv_devx_umem_reg()`: in attributes. The same command also takes
    /// the descriptor of a dma-buf.
    Attributes(&'static Ids),
}

/// A program's command.
pub(crate) struct Request<'a> {
    header: Header,
    attrs: &'a mut [Attr],
    kind: Kind,
    pub(crate) memory: Memory,
}

impl Request<'_> {
    /// Reads a command. Returns `None` if the command does not register memory by a pointer, or if
    /// the program has given a wrong address, so that the kernel has read nothing.
    ///
    /// # Safety
    ///
    /// If there is memory at `command`, nothing else uses the memory as long as the result exists.
    pub(crate) unsafe fn read(command: *mut c_void) -> Option<Self> {
        if !libc::is_readable(command as usize, mem::size_of::<Header>()) {
            return None;
        }
        // SAFETY: the memory is readable.
        let header = unsafe { command.cast::<Header>().read_unaligned() };
        let ids = match (header.object, header.method, header.driver) {
            (uverbs::DEVICE, uverbs::DEVICE_INVOKE_WRITE, _) => None,
            (uverbs::MR, uverbs::MR_REG, _) => Some(&uverbs::REG),
            (uverbs::DEVX_UMEM, uverbs::DEVX_UMEM_REG, uverbs::DRIVER_MLX5) => Some(&uverbs::UMEM),
            _ => return None,
        };
        let first = command.wrapping_byte_add(mem::size_of::<Header>()).cast::<Attr>();
        let size = usize::from(header.attrs) * mem::size_of::<Attr>();
        let is_whole = size < MOST_SIZE && libc::is_readable(first as usize, size);
        if !is_whole || first as usize % mem::align_of::<Attr>() != 0 {
            return None;
        }
        // The kernel stores its answer to the newer commands in the attributes.
        if ids.is_some() && !libc::is_writable(first as usize, size) {
            return None;
        }
        // SAFETY: `is_whole` says that this number of attributes is readable, and the address is
        // aligned. Attributes are written only if `ids` is set, and are then writable. The caller
        // promises that nothing else uses the memory as long as the result exists.
        let attrs = unsafe { slice::from_raw_parts_mut(first, header.attrs.into()) };
        let (kind, memory) = match ids {
            None => of_structure(attrs)?,
            Some(ids) => (Kind::Attributes(ids), of_attributes(attrs, ids)?),
        };
        Some(Self { header, attrs, kind, memory })
    }

    /// Returns whether the program makes a umem of mlx5.
    pub(crate) fn is_umem(&self) -> bool {
        self.header.object == uverbs::DEVX_UMEM
    }

    /// Returns the name of the function that the program has called.
    pub(crate) fn verb(&self) -> &'static CStr {
        if self.is_umem() {
            c"mlx5dv_devx_umem_reg"
        } else {
            c"ibv_reg_mr"
        }
    }

    /// Gives `send` the command that registers the memory as a dma-buf. If `send` returns true,
    /// stores the kernel's answers where the program looks for them. Returns false if the kernel
    /// has refused.
    pub(crate) fn by(&mut self, by: &DmaBuf, send: impl FnOnce(&mut Command) -> bool) -> bool {
        match self.kind {
            Kind::Structure { asked, answer } => {
                let Some(given) = by_own_command(&self.header, &asked, by, send) else {
                    return false;
                };
                // SAFETY: the memory is writable, and the program waits for the answer there.
                unsafe { answer.write_unaligned(given) };
                true
            }
            Kind::Attributes(ids) => self.by_same_command(ids, by, send).is_some(),
        }
    }

    /// Sends the program's own command with a descriptor.
    fn by_same_command(
        &mut self,
        ids: &Ids,
        by: &DmaBuf,
        send: impl FnOnce(&mut Command) -> bool,
    ) -> Option<()> {
        let mut command = Command::new(&self.header, self.header.object, self.header.method);
        for one in self.attrs.iter() {
            let mut attr = *one;
            if attr.id == ids.addr {
                attr.id = ids.offset.unwrap_or(ids.addr);
                attr.data = by.offset;
            } else if attr.id == ids.access {
                attr.data = by.access.into();
            }
            command.push(attr)?;
        }
        // A descriptor is a number of 32 bits, which the kernel reads as a value of 64 bits.
        command.push(Attr::new(ids.fd, 0, by.fd as u64))?;
        if !send(&mut command) {
            return None;
        }
        // The kernel stores the number of the new object in its attribute.
        for (place, attr) in self.attrs.iter_mut().enumerate() {
            if attr.id != ids.addr && attr.id != ids.access {
                *attr = command.at(place);
            }
        }
        Some(())
    }
}

/// Returns the value of the attribute `id` in a program's command, or `None` if the command has no
/// such attribute, or if the value has more than eight bytes and so is not in the attribute itself.
fn value(attrs: &[Attr], id: u16) -> Option<u64> {
    attrs.iter().find(|one| one.id == id && one.len <= 8).map(|one| one.data)
}

/// Returns the memory of a command that has the memory in its attributes. With a descriptor, the
/// address is an offset in the program's own dma-buf.
fn of_attributes(attrs: &[Attr], ids: &Ids) -> Option<Memory> {
    if value(attrs, ids.fd).is_some() {
        return None;
    }
    Some(Memory {
        addr: value(attrs, ids.addr)?,
        length: value(attrs, ids.length)?,
        access: value(attrs, ids.access)? as u32,
    })
}

/// Returns the memory of a command that has the memory in a structure, as it was once given to
/// `write()`.
fn of_structure(attrs: &[Attr]) -> Option<(Kind, Memory)> {
    if value(attrs, write::COMMAND)? != uverbs::WRITE_REG_MR {
        return None;
    }
    let find = |id: u16, size: usize| {
        attrs.iter().find(|one| one.id == id && usize::from(one.len) >= size).map(|one| one.data)
    };
    let given = find(write::IN, mem::size_of::<RegMr>())? as *const RegMr;
    let answer = find(write::OUT, mem::size_of::<RegMrResp>())? as *mut RegMrResp;
    let is_there = libc::is_readable(given as usize, mem::size_of::<RegMr>())
        && libc::is_writable(answer as usize, mem::size_of::<RegMrResp>());
    if !is_there {
        return None;
    }
    // SAFETY: the memory is readable.
    let asked = unsafe { ptr::read_unaligned(given) };
    let memory = Memory { addr: asked.start, length: asked.length, access: asked.access };
    Some((Kind::Structure { asked, answer }, memory))
}

/// Sends the command that `ibv_reg_dmabuf_mr()` sends. Returns the answer in the form in which the
/// program waits for it, or `None` if the kernel has refused.
fn by_own_command(
    header: &Header,
    asked: &RegMr,
    by: &DmaBuf,
    send: impl FnOnce(&mut Command) -> bool,
) -> Option<RegMrResp> {
    let mut command = Command::new(header, uverbs::MR, uverbs::MR_REG_DMABUF);
    let (mut lkey, mut rkey) = (0_u32, 0_u32);
    let handle = command.push(Attr::new(dmabuf::HANDLE, 0, 0))?;
    for attr in [
        Attr::new(dmabuf::PD, 0, asked.pd.into()),
        Attr::new(dmabuf::OFFSET, 8, by.offset),
        Attr::new(dmabuf::LENGTH, 8, asked.length),
        Attr::new(dmabuf::IOVA, 8, asked.iova),
        Attr::new(dmabuf::FD, 4, by.fd as u64),
        Attr::new(dmabuf::ACCESS, 4, by.access.into()),
        Attr::new(dmabuf::LKEY, 4, &raw mut lkey as u64),
        Attr::new(dmabuf::RKEY, 4, &raw mut rkey as u64),
    ] {
        command.push(attr)?;
    }
    if !send(&mut command) {
        return None;
    }
    // SAFETY: the variable exists until this function returns, and every number is a valid key. The
    // kernel has written the variable, which the compiler does not know.
    let lkey = unsafe { (&raw const lkey).read_volatile() };
    // SAFETY: the same holds for this variable: it exists, and every number is a valid key.
    let rkey = unsafe { (&raw const rkey).read_volatile() };
    Some(RegMrResp { handle: command.at(handle).data as u32, lkey, rkey })
}
