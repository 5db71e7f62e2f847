// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! Safe handles for libibverbs. One handle is for a device, which stays open until the process
//! ends. The other handles own objects of the device.
//!
//! Memory regions cover only [`Range`]s of GPU memory, to which no Rust reference exists. A work
//! request reads and writes only such memory, so posting a request is safe, even with the keys of a
//! region whose memory was freed.

use std::ffi::c_int;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::null_mut;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};

use crate::gpu::Range;
pub use crate::sys::{
    ibv_wc_status as Status, ibv_wr_opcode as Opcode, IBV_WR_RDMA_READ as READ,
    IBV_WR_RDMA_WRITE as WRITE, IBV_WR_SEND as SEND,
};
use crate::sys::{ibv_wc_status::*, *};

/// Each HCA of the lab has one port.
const PORT: u8 = 1;

/// The time after which an operation counts as unanswered.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the result of a verb that returns 0 or an error number.
fn answer(rc: c_int) -> io::Result<()> {
    match rc {
        0 => Ok(()),
        rc if rc > 0 => Err(io::Error::from_raw_os_error(rc)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An object of libibverbs, which is destroyed when it is dropped, unless it was destroyed before.
struct Object<T> {
    /// NULL after the object was destroyed.
    it: *mut T,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
}

// SAFETY: libibverbs may be called for any object from any number of threads.
unsafe impl<T> Send for Object<T> {}
// SAFETY: The comment on the code before applies to this code also.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// Makes a handle. `it` is the result of a verb, which is a pointer to an object, or NULL after
    /// a failure. `destroy` is the verb that destroys the object.
    fn new(it: *mut T, destroy: unsafe extern "C" fn(*mut T) -> c_int) -> io::Result<Self> {
        (!it.is_null()).then_some(Self { it, destroy }).ok_or_else(io::Error::last_os_error)
    }

    /// Destroys the object. After an error, the object still exists.
    fn end(&mut self) -> io::Result<()> {
        if !self.it.is_null() {
            // SAFETY: The object is alive. If the call succeeds, the pointer becomes NULL.
            answer(unsafe { (self.destroy)(self.it) })?;
            self.it = null_mut();
        }
        Ok(())
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            eprintln!("gpuverbs: destroying {}: {error}", std::any::type_name::<T>());
        }
    }
}

/// The first RDMA device, with a protection domain. Both exist until the process ends, and the
/// kernel then cleans up.
pub struct Hca {
    context: *mut ibv_context,
    pd: *mut ibv_pd,
}

// SAFETY: libibverbs may be called for any object from any number of threads.
unsafe impl Send for Hca {}
// SAFETY: The comment on the code before applies to this code also.
unsafe impl Sync for Hca {}

impl Hca {
    /// Lets the library load its drivers. Processes that are forked later then need not load them.
    pub fn load_drivers() {
        // SAFETY: The list is freed only if it is not null, and is not used again.
        unsafe {
            let list = ibv_get_device_list(null_mut());
            if !list.is_null() {
                ibv_free_device_list(list);
            }
        }
    }

    pub fn open() -> Result<Self> {
        // SAFETY: The list is read only if it has an entry, and not after it is freed. The
        // protection domain belongs to an open device.
        unsafe {
            let mut length = 0;
            let list = ibv_get_device_list(&mut length);
            ensure!(!list.is_null() && length > 0, "there is no RDMA device");
            let context = ibv_open_device(*list);
            ensure!(!context.is_null(), "opening it: {}", io::Error::last_os_error());
            ibv_free_device_list(list);
            let pd = ibv_alloc_pd(context);
            ensure!(!pd.is_null(), "ibv_alloc_pd(): {}", io::Error::last_os_error());
            Ok(Self { context, pd })
        }
    }

    /// Returns the file descriptor of the device. When its last copy is closed, the kernel ends all
    /// objects of the device.
    pub fn command_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: The descriptor is open until the process ends, or until hang_up(), after which
        // the process calls no verb.
        unsafe { BorrowedFd::borrow_raw((*self.context).cmd_fd) }
    }

    /// Closes only the descriptor [`Self::command_fd`]. No verb works after that. A process may
    /// therefore call this function only if it ends without cleaning up.
    pub fn hang_up(&self) {
        // SAFETY: The descriptor is not used again, because this process calls no more verbs.
        drop(unsafe { OwnedFd::from_raw_fd((*self.context).cmd_fd) });
    }

    pub fn register(&self, range: Range, access: Access) -> io::Result<Mr> {
        let (addr, length) = (range.addr as *mut _, range.length as usize);
        // SAFETY: The PD is allocated. The region lets the NIC write only to GPU memory, to which
        // no reference exists.
        let mr = unsafe { ibv_reg_mr_iova2(self.pd, addr, length, range.addr, access) };
        Ok(Mr { mr: Object::new(mr, ibv_dereg_mr)?, range })
    }

    /// Returns the local identifier of the port, which is 0 unless the port is of InfiniBand.
    fn lid(&self) -> Result<u16> {
        let mut port = ibv_port_attr::default();
        // SAFETY: The device is open. The library writes only those of the attributes that the
        // first libibverbs had, and these are the beginning of the structure.
        answer(unsafe { ibv_query_port(self.context, PORT, (&raw mut port).cast()) })
            .context("ibv_query_port()")?;
        Ok(port.lid)
    }

    /// Returns a GID of the port, and its index. On InfiniBand each port has the GID 0. Elsewhere
    /// this is the first GID of an IPv4 address (::ffff:a.b.c.d), which exists while the network
    /// link is up.
    fn gid(&self) -> Result<(u8, [u8; 16])> {
        // An address handle stores the index in 8 bits, so larger indexes are not tried.
        let gids = (0..=u8::MAX).filter_map(|index| {
            let mut gid = ibv_gid::default();
            // SAFETY: The device is open. Every bit pattern of the union is valid as 16 bytes.
            let (rc, raw) =
                unsafe { (ibv_query_gid(self.context, PORT, index.into(), &mut gid), gid.raw) };
            (rc == 0).then_some((index, raw))
        });
        let is_ipv4 = |raw: &[u8; 16]| raw[..10] == [0; 10] && raw[10..12] == [0xff; 2];
        let infiniband = self.lid()? != 0;
        gids.into_iter()
            .find(|(_, raw)| infiniband || is_ipv4(raw))
            .context("no GID of an IPv4 address: is its network interface up, and has it one?")
    }
}

/// The rights of a registration.
pub type Access = ibv_access_flags;

/// The rights that both sides need for write, read and send.
pub const ALL: Access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// Sets of rights, from no right to all rights.
pub const ACCESS: [Access; 4] =
    [0, IBV_ACCESS_LOCAL_WRITE, ALL, ALL | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING];

/// A memory region, which is deregistered when it is dropped, unless it was deregistered before.
pub struct Mr {
    mr: Object<ibv_mr>,
    pub range: Range,
}

impl Mr {
    /// Deregisters the region. Does not try again after an error, because another process may have
    /// deregistered the region before.
    pub fn deregister(mut self) -> io::Result<()> {
        let result = self.mr.end();
        self.mr.it = null_mut();
        result
    }

    /// Deregisters the region. After an error, the region still exists for this process.
    pub fn try_deregister(&mut self) -> io::Result<()> {
        self.mr.end()
    }

    /// Returns the address and the key that a peer needs to access the region.
    pub fn remote(&self) -> Remote {
        // SAFETY: The region is alive, and its keys do not change.
        let rkey = unsafe { (*self.mr.it).rkey };
        Remote { addr: self.range.addr, rkey }
    }

    /// Returns an element of a work request that covers the whole region.
    fn element(&self) -> Result<ibv_sge> {
        let length = u32::try_from(self.range.length).context("more than one message carries")?;
        // SAFETY: The comment on the code before applies to this code also.
        let lkey = unsafe { (*self.mr.it).lkey };
        Ok(ibv_sge { addr: self.range.addr, length, lkey })
    }
}

/// Deregisters regions. An error makes the command fail.
pub fn deregister(regions: impl IntoIterator<Item = Mr>) -> Result<()> {
    regions.into_iter().try_for_each(|region| region.deregister().context("ibv_dereg_mr()"))
}

/// The address and the key of a region. A test can use these numbers without the right to access
/// the memory.
#[derive(Clone, Copy)]
pub struct Remote {
    pub addr: u64,
    pub rkey: u32,
}

/// The status of an operation between two queue pairs.
impl Status {
    pub fn is_success(self) -> bool {
        self == IBV_WC_SUCCESS
    }

    /// Tells whether the operation was refused. An operation without an answer was not refused.
    ///
    /// A flush counts as a refusal, because rdma_rxe reports a flush if it refuses a local key on
    /// the sending side. A queue pair has only one operation at a time, so only this operation can
    /// have put the pair into the error state.
    pub fn is_refusal(self) -> bool {
        const UNANSWERED: [Status; 3] =
            [IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RESP_TIMEOUT_ERR];
        !self.is_success() && !UNANSWERED.contains(&self)
    }

    /// Returns an error with the name `what`, unless the operation succeeded.
    pub fn succeeded(self, what: &str) -> Result<()> {
        ensure!(self.is_success(), "{what} ended with {self}");
        Ok(())
    }

    /// Returns an error with the name `what`, unless the operation was refused.
    pub fn refused(self, what: &str) -> Result<()> {
        ensure!(self.is_refusal(), "{what} was not refused: it ended with {self}");
        Ok(())
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// The operation that moves bytes from the source to the target.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Operation {
    /// The source's side writes.
    Write,
    /// The target's side reads.
    Read,
    /// The source's side sends, after the target's side has posted a receive.
    Send,
}

pub const OPERATIONS: [Operation; 3] = [Operation::Write, Operation::Read, Operation::Send];

/// The data that the peer of a queue pair needs to connect. The number of the pair is also the
/// number of its first packet, so the peer notices a packet from another pair.
#[derive(Clone, Copy)]
pub struct Address {
    pub gid: [u8; 16],
    pub lid: u16,
    pub qp: u32,
}

/// The time that a queue pair waits for an answer before it sends again, and the number of times
/// that it sends again. The time is 4.096 us shifted left by 19, which is 2.1 s. The time is long,
/// because an emulated guest is slow and repeated packets make it slower. The pair reports an error
/// after six repetitions, which is before [`TIMEOUT`].
const PATIENCE: (u8, u8) = (19, 6);

/// The number of the request that carries out an operation. Its completion has the operation's
/// status.
const REQUEST: u64 = 1;
/// The number of the receive that a send needs on the other side.
const RECEIVE: u64 = 2;

/// A reliable queue pair with its own completion queue. After an error, the pair is of no use any
/// more.
pub struct Link {
    qp: Object<ibv_qp>,
    cq: Object<ibv_cq>,
    gid_index: u8,
    pub address: Address,
}

impl Link {
    pub fn create(hca: &Hca) -> Result<Self> {
        let (gid_index, gid) = hca.gid()?;
        // SAFETY: The device is open. Completion channel and context may be null.
        let cq = unsafe { ibv_create_cq(hca.context, 2, null_mut(), null_mut(), 0) };
        let cq = Object::new(cq, ibv_destroy_cq).context("ibv_create_cq()")?;
        let one = ibv_qp_cap {
            max_send_wr: 1,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            ..Default::default()
        };
        let (send_cq, recv_cq, qp_type) = (cq.it, cq.it, IBV_QPT_RC);
        let mut attr =
            ibv_qp_init_attr { send_cq, recv_cq, qp_type, cap: one, ..Default::default() };
        // SAFETY: The completion queue lives as long as the queue pair.
        let qp = unsafe { ibv_create_qp(hca.pd, &mut attr) };
        let qp = Object::new(qp, ibv_destroy_qp).context("ibv_create_qp()")?;
        // SAFETY: The queue pair is alive, and its number does not change.
        let (lid, qp_num) = (hca.lid()?, unsafe { (*qp.it).qp_num });
        let address = Address { gid, lid, qp: qp_num };
        Ok(Self { qp, cq, gid_index, address })
    }

    /// Brings the pair from RESET to RTS, connected to `peer`.
    #[rustfmt::skip]
    pub fn connect(&self, peer: &Address) -> Result<()> {
        const INIT: u32 = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        const RTR: u32 = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        const RTS: u32 = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
            | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
        let mut attr = ibv_qp_attr { port_num: PORT, qp_access_flags: ALL, ..Default::default() };
        // RoCE always needs a global route, and InfiniBand the local identifier.
        (attr.ah_attr.is_global, attr.ah_attr.port_num) = (1, PORT);
        attr.ah_attr.dlid = peer.lid;
        attr.ah_attr.grh.dgid = ibv_gid { raw: peer.gid };
        (attr.ah_attr.grh.sgid_index, attr.ah_attr.grh.hop_limit) = (self.gid_index, 64);
        (attr.path_mtu, attr.dest_qp_num) = (IBV_MTU_1024, peer.qp);
        (attr.rq_psn, attr.sq_psn) = (peer.qp, self.address.qp);
        (attr.max_dest_rd_atomic, attr.max_rd_atomic) = (1, 1);
        (attr.timeout, attr.retry_cnt) = PATIENCE;
        // Six tries in steps of 0.64 ms are enough, because the receive is posted before the send.
        (attr.min_rnr_timer, attr.rnr_retry) = (12, 6);
        for (state, mask) in [(IBV_QPS_INIT, INIT), (IBV_QPS_RTR, RTR), (IBV_QPS_RTS, RTS)] {
            attr.qp_state = state;
            // SAFETY: The queue pair is alive, and the attributes live during the call.
            answer(unsafe { ibv_modify_qp(self.qp.it, &mut attr, mask as c_int) })
                .context("connecting a queue pair with ibv_modify_qp()")?;
        }
        Ok(())
    }

    /// Posts a receive into `target`. The caller must do so before the other side sends.
    pub fn post_receive(&self, target: &Mr) -> Result<()> {
        let (mut element, wr_id) = (target.element()?, RECEIVE);
        let mut request =
            ibv_recv_wr { wr_id, sg_list: &mut element, num_sge: 1, ..Default::default() };
        // SAFETY: The header's ibv_post_recv() makes the same call. The callee copies request and
        // element before it returns.
        answer(unsafe {
            let post = (*(*self.qp.it).context).ops.post_recv.expect("every device has it");
            post(self.qp.it, &mut request, &mut null_mut())
        })
        .context("posting a receive")
    }

    /// Sends `local`, writes `local` to `remote`, or reads `remote` into `local`. Waits for the
    /// completion, and returns its status.
    pub fn run(&self, opcode: Opcode, local: &Mr, remote: Option<Remote>) -> Result<Status> {
        let (mut element, wr_id, send_flags) = (local.element()?, REQUEST, IBV_SEND_SIGNALED);
        let mut request = ibv_send_wr { wr_id, opcode, send_flags, ..Default::default() };
        (request.sg_list, request.num_sge) = (&mut element, 1);
        if let Some(Remote { addr: remote_addr, rkey }) = remote {
            request.wr.rdma = ibv_send_wr__bindgen_ty_2__bindgen_ty_1 { remote_addr, rkey };
        }
        // SAFETY: The comment on the code before applies to this code also.
        answer(unsafe {
            let post = (*(*self.qp.it).context).ops.post_send.expect("every device has it");
            post(self.qp.it, &mut request, &mut null_mut())
        })
        .context("posting a request")?;
        self.wait(REQUEST)
    }

    /// Waits until this request has completed, and returns its status. If there is no completion
    /// before the deadline, returns IBV_WC_RESP_TIMEOUT_ERR.
    fn wait(&self, request: u64) -> Result<Status> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let mut completion = ibv_wc::default();
            // SAFETY: The call requests one completion, for which the variable has room.
            let count = unsafe {
                let poll = (*(*self.cq.it).context).ops.poll_cq.expect("every device has it");
                poll(self.cq.it, 1, &mut completion)
            };
            match count {
                1 if completion.wr_id == request => return Ok(completion.status),
                1 => {}
                0 if Instant::now() >= deadline => return Ok(IBV_WC_RESP_TIMEOUT_ERR),
                0 => thread::sleep(Duration::from_micros(50)),
                _ => bail!("ibv_poll_cq() ended with {count}"),
            }
        }
    }

    pub fn received(&self) -> Result<Status> {
        self.wait(RECEIVE)
    }
}

/// Two queue pairs of this process that are connected to each other. They run one operation at a
/// time. After an error both pairs are of no use any more, so the caller must make a new `Pair`.
pub struct Pair {
    pub source: Link,
    pub target: Link,
}

impl Pair {
    pub fn connect(hca: &Hca) -> Result<Self> {
        let (source, target) = (Link::create(hca)?, Link::create(hca)?);
        source.connect(&target.address)?;
        target.connect(&source.address)?;
        Ok(Self { source, target })
    }

    /// Moves all of `source` to the beginning of `target`. Waits for the end, and returns the
    /// status.
    pub fn run(&self, operation: Operation, source: &Mr, target: &Mr) -> Result<Status> {
        match operation {
            Operation::Write => self.source.run(WRITE, source, Some(target.remote())),
            Operation::Read => self.target.run(READ, target, Some(source.remote())),
            Operation::Send => {
                self.target.post_receive(target)?;
                // A send is complete when both sides have a completion. If the source's side fails,
                // the target's side gets no completion.
                match self.source.run(SEND, source, None)? {
                    IBV_WC_SUCCESS => self.target.received(),
                    failed => Ok(failed),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_refusal() {
        assert_eq!(IBV_WC_REM_ACCESS_ERR.to_string(), "IBV_WC_REM_ACCESS_ERR");
        for (status, success, refusal) in [
            (IBV_WC_SUCCESS, true, false),
            (IBV_WC_REM_ACCESS_ERR, false, true),
            (IBV_WC_LOC_PROT_ERR, false, true),
            (IBV_WC_WR_FLUSH_ERR, false, true),
            (IBV_WC_RETRY_EXC_ERR, false, false),
            (IBV_WC_RESP_TIMEOUT_ERR, false, false),
        ] {
            assert_eq!((status.is_success(), status.is_refusal()), (success, refusal));
        }
    }
}
