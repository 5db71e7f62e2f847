// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! libibverbs as owning handles. Each keeps alive what it was made from, so
//! that everything is destroyed in the one order that verbs allow, whatever the
//! order in which a command lets go.
//!
//! Memory regions cover [`Range`]s of GPU memory only, to which no Rust
//! reference exists. That is what makes posting safe, even with the keys of a
//! region whose memory is gone: it reaches GPU memory or nothing.

use std::ffi::{c_int, CStr};
use std::fmt;
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{null_mut, NonNull};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure, Context, Result};

use crate::gpu::Range;
use crate::sys::*;
use crate::value;

/// Software HCAs have one port.
const PORT: u8 = 1;

/// How long an operation may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The answer of a verb that returns 0 or an error number.
fn answer(rc: c_int) -> io::Result<()> {
    match rc {
        0 => Ok(()),
        rc if rc > 0 => Err(io::Error::from_raw_os_error(rc)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// An object of libibverbs, destroyed when dropped, if not before.
struct Object<T> {
    it: Option<NonNull<T>>,
    destroy: unsafe extern "C" fn(*mut T) -> c_int,
}

// SAFETY: libibverbs may be called for any object from any number of threads.
unsafe impl<T> Send for Object<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Object<T> {}

impl<T> Object<T> {
    /// The answer of a verb that returns an object or NULL, and the verb that
    /// destroys it.
    fn new(it: *mut T, destroy: unsafe extern "C" fn(*mut T) -> c_int) -> io::Result<Self> {
        let it = NonNull::new(it).ok_or_else(io::Error::last_os_error)?;
        Ok(Self { it: Some(it), destroy })
    }

    fn get(&self) -> *mut T {
        self.it.expect("only what ends it takes it").as_ptr()
    }

    /// Destroys it, unless an error says that it is there still.
    fn end(&mut self) -> io::Result<()> {
        if let Some(it) = self.it {
            // SAFETY: a live object, forgotten when this succeeds; what was made
            // from it is gone, because that would hold an Arc of its owner.
            answer(unsafe { (self.destroy)(it.as_ptr()) })?;
        }
        self.it = None;
        Ok(())
    }
}

impl<T> Drop for Object<T> {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            let error = value::describe(&error.into());
            eprintln!("gpuverbs: destroying {}: {error}", std::any::type_name::<T>());
        }
    }
}

pub struct Device {
    context: Object<ibv_context>,
}

impl Device {
    /// The first there is.
    pub fn open() -> Result<Arc<Self>> {
        let mut length = 0;
        // SAFETY: `length` is written before the call returns.
        let list = unsafe { ibv_get_device_list(&mut length) };
        ensure!(!list.is_null() && length > 0, "there is no RDMA device");
        // SAFETY: the list has a first entry, and is not used after it is freed.
        let (name, context) = unsafe {
            let name = CStr::from_ptr(ibv_get_device_name(*list)).to_owned();
            let context = Object::new(ibv_open_device(*list), ibv_close_device);
            ibv_free_device_list(list);
            (name, context)
        };
        let context = context.with_context(|| format!("opening the RDMA device {name:?}"))?;
        Ok(Arc::new(Self { context }))
    }

    /// Closes what [`Self::command_fd`] is, and leaves all else as it is: for
    /// processes that end without cleaning, after which no verb works.
    pub fn hang_up(&self) {
        // SAFETY: not used again: this process calls no more verbs.
        drop(unsafe { OwnedFd::from_raw_fd((*self.context.get()).cmd_fd) });
    }

    /// What whoever has it can end everything with that this device was asked
    /// for: the last to close it does so.
    pub fn command_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open for as long as the context, which lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw((*self.context.get()).cmd_fd) }
    }

    fn query_gid(&self, index: u8) -> io::Result<ibv_gid_entry> {
        let size = size_of::<ibv_gid_entry>();
        // SAFETY: integers and unions of these; the entry's true size goes along.
        unsafe {
            let (context, mut entry) = (self.context.get(), zeroed());
            answer(_ibv_query_gid_ex(context, PORT.into(), index.into(), &mut entry, 0, size))?;
            Ok(entry)
        }
    }
}

/// What connecting two queue pairs over a port takes.
pub struct Port {
    gid_index: u8,
    gid: [u8; 16],
}

impl Port {
    /// With the first RoCE v2 GID of an IPv4 address: there is one while the network link
    /// is up.
    pub fn query(device: &Device) -> Result<Self> {
        // An address handle has 8 bits for the index.
        for gid_index in 0..=u8::MAX {
            // Of the table's entries some are empty.
            let Ok(entry) = device.query_gid(gid_index) else { continue };
            // SAFETY: every bit pattern is 16 bytes.
            let gid = unsafe { entry.gid.raw };
            if entry.gid_type == IBV_GID_TYPE_ROCE_V2 && is_ipv4(&gid) {
                return Ok(Self { gid_index, gid });
            }
        }
        bail!("no RoCE v2 GID of an IPv4 address: is its network interface up, and has it one?")
    }
}

/// ::ffff:a.b.c.d
fn is_ipv4(gid: &[u8; 16]) -> bool {
    gid[..10] == [0; 10] && gid[10..12] == [0xff; 2]
}

/// A protection domain.
pub struct Pd {
    pd: Object<ibv_pd>,
    pub device: Arc<Device>,
}

impl Pd {
    pub fn allocate(device: Arc<Device>) -> Result<Arc<Self>> {
        // SAFETY: the device is open, and stays so for as long as the Arc lives.
        let pd = Object::new(unsafe { ibv_alloc_pd(device.context.get()) }, ibv_dealloc_pd);
        Ok(Arc::new(Self { pd: pd.context("ibv_alloc_pd()")?, device }))
    }

    pub fn register(self: &Arc<Self>, range: Range, access: Access) -> io::Result<Mr> {
        let (pd, addr, length) = (self.pd.get(), range.addr as *mut _, range.length as usize);
        // SAFETY: the PD is allocated. What the NIC may write to from now on is
        // GPU memory to which no reference exists.
        let mr = unsafe {
            // Flags that may be ignored are known to the newer verb only.
            if access & IBV_ACCESS_RELAXED_ORDERING == 0 {
                ibv_reg_mr(pd, addr, length, access as c_int)
            } else {
                ibv_reg_mr_iova2(pd, addr, length, range.addr, access)
            }
        };
        let mr = Object::new(mr, ibv_dereg_mr)?;
        Ok(Mr { mr, range, _pd: Arc::clone(self) })
    }
}

/// What a registration permits.
pub type Access = ibv_access_flags;

/// Whatever write, read and send need on either side.
pub const ALL: Access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;

/// All that a registration may be for.
pub const ACCESS: [Access; 6] = [
    0,
    IBV_ACCESS_LOCAL_WRITE,
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ,
    ALL,
    ALL | IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_RELAXED_ORDERING,
];

/// A memory region. Deregistered when dropped, if not before.
pub struct Mr {
    mr: Object<ibv_mr>,
    pub range: Range,
    _pd: Arc<Pd>,
}

impl Mr {
    /// Deregisters. The region is gone, even if another process has come first.
    pub fn deregister(mut self) -> io::Result<()> {
        let result = self.mr.end();
        self.mr.it = None;
        result
    }

    /// Deregisters, unless an error says that the region is there still.
    pub fn try_deregister(&mut self) -> io::Result<()> {
        self.mr.end()
    }

    /// What somebody needs to reach the region from outside.
    pub fn remote(&self) -> Remote {
        // SAFETY: a live region; its keys do not change.
        let rkey = unsafe { (*self.mr.get()).rkey };
        Remote { addr: self.range.addr, rkey }
    }

    /// The whole region as one element of a work request.
    fn element(&self) -> Result<ibv_sge> {
        let length = u32::try_from(self.range.length).context("more than one message carries")?;
        // SAFETY: as above.
        let lkey = unsafe { (*self.mr.get()).lkey };
        Ok(ibv_sge { addr: self.range.addr, length, lkey })
    }
}

/// For commands to which an error means that something is wrong.
pub fn deregister(regions: impl IntoIterator<Item = Mr>) -> Result<()> {
    regions.into_iter().try_for_each(|region| region.deregister().context("ibv_dereg_mr()"))
}

/// Memory of some region, as seen by somebody who may not even be allowed to.
#[derive(Clone, Copy)]
pub struct Remote {
    pub addr: u64,
    pub rkey: u32,
}

macro_rules! statuses {
    ($($name:ident)*) => { &[$(($name, stringify!($name))),*] };
}

#[rustfmt::skip]
const STATUSES: &[(ibv_wc_status, &str)] = statuses! {
    IBV_WC_SUCCESS IBV_WC_LOC_LEN_ERR IBV_WC_LOC_QP_OP_ERR IBV_WC_LOC_EEC_OP_ERR
    IBV_WC_LOC_PROT_ERR IBV_WC_WR_FLUSH_ERR IBV_WC_MW_BIND_ERR IBV_WC_BAD_RESP_ERR
    IBV_WC_LOC_ACCESS_ERR IBV_WC_REM_INV_REQ_ERR IBV_WC_REM_ACCESS_ERR IBV_WC_REM_OP_ERR
    IBV_WC_RETRY_EXC_ERR IBV_WC_RNR_RETRY_EXC_ERR IBV_WC_LOC_RDD_VIOL_ERR
    IBV_WC_REM_INV_RD_REQ_ERR IBV_WC_REM_ABORT_ERR IBV_WC_INV_EECN_ERR
    IBV_WC_INV_EEC_STATE_ERR IBV_WC_FATAL_ERR IBV_WC_RESP_TIMEOUT_ERR IBV_WC_GENERAL_ERR
    IBV_WC_TM_ERR IBV_WC_TM_RNDV_INCOMPLETE
};

/// How an operation between two queue pairs ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed(ibv_wc_status),
    /// Nothing came before the deadline.
    TimedOut,
}

impl Outcome {
    pub fn is_success(self) -> bool {
        self == Self::Completed(IBV_WC_SUCCESS)
    }

    /// Whether somebody refused the operation: not success, and not one of the
    /// errors that say only that nobody answered.
    ///
    /// A flush counts, because an operation is alone on its queue pair: what
    /// put that into the error state is the operation itself. It is all that
    /// rdma_rxe says of a local key that it refuses to the sending side.
    pub fn is_refusal(self) -> bool {
        let Self::Completed(status) = self else { return false };
        const UNANSWERED: [ibv_wc_status; 3] =
            [IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RESP_TIMEOUT_ERR];
        !self.is_success() && !UNANSWERED.contains(&status)
    }

    /// That `what` succeeded.
    pub fn succeeded(self, what: &str) -> Result<()> {
        ensure!(self.is_success(), "{what} ended with {self}");
        Ok(())
    }

    /// That `what` was refused.
    pub fn refused(self, what: &str) -> Result<()> {
        ensure!(self.is_refusal(), "{what} was not refused: it ended with {self}");
        Ok(())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("timeout"),
            Self::Completed(number) => match STATUSES.iter().find(|(known, _)| known == number) {
                Some((_, name)) => f.write_str(name),
                None => write!(f, "IBV_WC_{number}"),
            },
        }
    }
}

/// How bytes get from the source to the target.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum Operation {
    /// The source's side writes.
    Write,
    /// The target's side reads.
    Read,
    /// The source's side sends, the target's side has posted a receive.
    Send,
}

pub const OPERATIONS: [Operation; 3] = [Operation::Write, Operation::Read, Operation::Send];

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Where a queue pair is, for whoever connects to it. Its number is that of the first
/// packet that it sends, too: different ones show up a mix-up.
#[derive(Clone, Copy)]
pub struct Address {
    pub gid: [u8; 16],
    pub qp: u32,
}

/// How long a queue pair waits for an answer before it sends again (4.096 us,
/// shifted), and how often. An emulated guest is slow, and a packet sent again
/// for no reason only makes it slower.
type Patience = (u8, u8);
/// About a second, and 7 retries: rdma_rxe takes that for ever, so only our own
/// deadline ends it.
const ENDLESS: Patience = (18, 7);
/// Six retries of two seconds: the transport gives up before our deadline.
pub const SECONDS: Patience = (19, 6);

/// The request whose completion says how an operation ended.
const REQUEST: u64 = 1;
/// The receive that a send needs on the other side.
const RECEIVE: u64 = 2;

/// A reliable queue pair, with a completion queue of its own. An error leaves it
/// unusable.
pub struct Link {
    qp: Object<ibv_qp>,
    cq: Object<ibv_cq>,
    pub address: Address,
    _pd: Arc<Pd>,
}

impl Link {
    pub fn create(pd: &Arc<Pd>, port: &Port) -> Result<Self> {
        let context = pd.device.context.get();
        // SAFETY: the device is open; no completion channel, no context.
        let cq = unsafe { ibv_create_cq(context, 2, null_mut(), null_mut(), 0) };
        let cq = Object::new(cq, ibv_destroy_cq).context("ibv_create_cq()")?;
        // SAFETY: all of its fields are valid when zero; PD and completion queue
        // live as long as the queue pair.
        let qp = unsafe {
            let mut attr: ibv_qp_init_attr = zeroed();
            (attr.send_cq, attr.recv_cq) = (cq.get(), cq.get());
            attr.qp_type = IBV_QPT_RC;
            (attr.cap.max_send_wr, attr.cap.max_recv_wr) = (1, 1);
            (attr.cap.max_send_sge, attr.cap.max_recv_sge) = (1, 1);
            ibv_create_qp(pd.pd.get(), &mut attr)
        };
        let qp = Object::new(qp, ibv_destroy_qp).context("ibv_create_qp()")?;
        // SAFETY: a live queue pair; its number does not change.
        let address = Address { gid: port.gid, qp: unsafe { (*qp.get()).qp_num } };
        Ok(Self { qp, cq, address, _pd: Arc::clone(pd) })
    }

    /// From RESET to RTS.
    #[rustfmt::skip]
    pub fn connect(&self, port: &Port, peer: &Address, patience: Patience) -> Result<()> {
        const INIT: u32 = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
        const RTR: u32 = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN
            | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        const RTS: u32 = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
            | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC;
        // SAFETY: all of its fields are valid when zero.
        let mut attr: ibv_qp_attr = unsafe { zeroed() };
        (attr.port_num, attr.qp_access_flags) = (PORT, ALL);
        // RoCE always has a global route.
        (attr.ah_attr.is_global, attr.ah_attr.port_num) = (1, PORT);
        attr.ah_attr.grh.dgid = ibv_gid { raw: peer.gid };
        (attr.ah_attr.grh.sgid_index, attr.ah_attr.grh.hop_limit) = (port.gid_index, 64);
        (attr.path_mtu, attr.dest_qp_num) = (IBV_MTU_1024, peer.qp);
        (attr.rq_psn, attr.sq_psn) = (peer.qp, self.address.qp);
        (attr.max_dest_rd_atomic, attr.max_rd_atomic) = (1, 1);
        (attr.timeout, attr.retry_cnt) = patience;
        // 0.64 ms, six times: the receive is posted before the send.
        (attr.min_rnr_timer, attr.rnr_retry) = (12, 6);
        for (state, mask) in [(IBV_QPS_INIT, INIT), (IBV_QPS_RTR, RTR), (IBV_QPS_RTS, RTS)] {
            attr.qp_state = state;
            // SAFETY: a live queue pair, and attributes that last for the call.
            answer(unsafe { ibv_modify_qp(self.qp.get(), &mut attr, mask as c_int) })
                .context("connecting a queue pair with ibv_modify_qp()")?;
        }
        Ok(())
    }

    /// Before the other side sends.
    pub fn post_receive(&self, target: &Mr) -> Result<()> {
        let mut element = target.element()?;
        // SAFETY: all of its fields are valid when zero; request and element are
        // copied before the call returns, which the header makes of ibv_post_recv().
        answer(unsafe {
            let mut request: ibv_recv_wr = zeroed();
            request.wr_id = RECEIVE;
            (request.sg_list, request.num_sge) = (&mut element, 1);
            let qp = self.qp.get();
            let post = (*(*qp).context).ops.post_recv.expect("every device has it");
            post(qp, &mut request, &mut null_mut())
        })
        .context("posting a receive")
    }

    fn post(&self, opcode: ibv_wr_opcode, local: &Mr, remote: Option<Remote>) -> Result<()> {
        let mut element = local.element()?;
        // SAFETY: as above.
        answer(unsafe {
            let mut request: ibv_send_wr = zeroed();
            request.wr_id = REQUEST;
            (request.sg_list, request.num_sge) = (&mut element, 1);
            (request.opcode, request.send_flags) = (opcode, IBV_SEND_SIGNALED);
            if let Some(Remote { addr, rkey }) = remote {
                request.wr.rdma.remote_addr = addr;
                request.wr.rdma.rkey = rkey;
            }
            let qp = self.qp.get();
            let post = (*(*qp).context).ops.post_send.expect("every device has it");
            post(qp, &mut request, &mut null_mut())
        })
        .context("posting a request")
    }

    /// Waits until this request has completed.
    fn wait(&self, request: u64) -> Result<Outcome> {
        let deadline = Instant::now() + TIMEOUT;
        let cq = self.cq.get();
        loop {
            // SAFETY: room for the one completion that is asked for, valid when zero.
            let (count, completion) = unsafe {
                let mut completion: ibv_wc = zeroed();
                let poll = (*(*cq).context).ops.poll_cq.expect("every device has it");
                (poll(cq, 1, &mut completion), completion)
            };
            match count {
                1 if completion.wr_id == request => {
                    return Ok(Outcome::Completed(completion.status));
                }
                1 => {}
                0 if Instant::now() >= deadline => return Ok(Outcome::TimedOut),
                0 => thread::sleep(Duration::from_micros(50)),
                _ => bail!("ibv_poll_cq() ended with {count}"),
            }
        }
    }

    /// Writes all of `source` to whatever is at `target`, and waits.
    pub fn write(&self, source: &Mr, target: Remote) -> Result<Outcome> {
        self.post(IBV_WR_RDMA_WRITE, source, Some(target))?;
        self.wait(REQUEST)
    }

    /// Fills all of `target` from whatever is at `source`, and waits.
    pub fn read(&self, source: Remote, target: &Mr) -> Result<Outcome> {
        self.post(IBV_WR_RDMA_READ, target, Some(source))?;
        self.wait(REQUEST)
    }

    pub fn send(&self, source: &Mr) -> Result<Outcome> {
        self.post(IBV_WR_SEND, source, None)?;
        self.wait(REQUEST)
    }

    pub fn received(&self) -> Result<Outcome> {
        self.wait(RECEIVE)
    }
}

/// Two queue pairs of this process, connected to each other over the port. One
/// operation at a time; an error leaves both unusable: make a new pair after it.
pub struct Pair {
    pub source: Link,
    pub target: Link,
}

impl Pair {
    pub fn connect(pd: &Arc<Pd>, port: &Port) -> Result<Self> {
        let (source, target) = (Link::create(pd, port)?, Link::create(pd, port)?);
        source.connect(port, &target.address, ENDLESS)?;
        target.connect(port, &source.address, ENDLESS)?;
        Ok(Self { source, target })
    }

    /// Moves all of `source` to the beginning of `target`, and waits.
    pub fn run(&self, operation: Operation, source: &Mr, target: &Mr) -> Result<Outcome> {
        match operation {
            Operation::Write => self.source.write(source, target.remote()),
            Operation::Read => self.target.read(source.remote(), target),
            Operation::Send => {
                self.target.post_receive(target)?;
                // It is over when both sides are done, unless it failed.
                match self.source.send(source)? {
                    sent if sent.is_success() => self.target.received(),
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
    fn outcomes() {
        // The header numbers them without a gap.
        for (number, (status, name)) in STATUSES.iter().enumerate() {
            assert_eq!(*status as usize, number, "{name}");
        }
        assert_eq!(Outcome::Completed(10).to_string(), "IBV_WC_REM_ACCESS_ERR");
        assert_eq!(Outcome::Completed(99).to_string(), "IBV_WC_99");
        for (status, success, refusal) in [
            (IBV_WC_SUCCESS, true, false),
            (IBV_WC_REM_ACCESS_ERR, false, true),
            (IBV_WC_LOC_PROT_ERR, false, true),
            (IBV_WC_WR_FLUSH_ERR, false, true),
            (IBV_WC_RETRY_EXC_ERR, false, false),
        ] {
            let outcome = Outcome::Completed(status);
            assert_eq!((outcome.is_success(), outcome.is_refusal()), (success, refusal));
        }
        assert!(!Outcome::TimedOut.is_refusal() && !Outcome::TimedOut.is_success());
    }

    #[test]
    fn ipv4_gids_are_known_by_their_prefix() {
        let mut gid = [0; 16];
        assert!(!is_ipv4(&gid));
        gid[10..].copy_from_slice(&[0xff, 0xff, 192, 168, 7, 1]);
        assert!(is_ipv4(&gid));
        gid[0] = 0xfe;
        assert!(!is_ipv4(&gid));
    }
}
