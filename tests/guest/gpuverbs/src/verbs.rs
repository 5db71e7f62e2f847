// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause

//! libibverbs as owning handles. Each keeps alive what it was made from, so
//! that everything is destroyed in the one order that verbs allow, whatever the
//! order in which a command lets go.
//!
//! Memory regions cover [`Range`]s of GPU memory only, to which no Rust
//! reference exists. That is what makes posting safe, even with the keys of a
//! region whose memory is gone: it reaches GPU memory or nothing.

use std::ffi::CStr;
use std::fmt;
use std::io;
use std::mem::{size_of, MaybeUninit};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crate::args::{Args, Opt};
use crate::errno;
use crate::failure::Failure;
use crate::gpu::Range;
use crate::sys;

pub const DEVICE_OPTION: Opt = Opt::optional("device", "NAME", "RDMA device (default: the first)");

pub const PORT_OPTIONS: &[Opt] = &[
    Opt::optional(
        "gid-index",
        "N",
        "GID to use (default: the first RoCE v2 one of an IPv4 address)",
    ),
    Opt::optional(
        "timeout",
        "SECONDS",
        "how long an operation may take (default: 30)",
    ),
];

/// Software HCAs have one port.
const PORT: u8 = 1;

/// Every verbs structure that is filled here consists of integers, pointers and
/// unions of these, and wants all that is not set to be zero.
fn zeroed<T>() -> MaybeUninit<T> {
    MaybeUninit::zeroed()
}

/// The answer of a verb that returns 0 or an error number.
fn answer(rc: i32) -> io::Result<()> {
    match rc {
        0 => Ok(()),
        rc if rc > 0 => Err(io::Error::from_raw_os_error(rc)),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The answer of a verb that returns an object or NULL.
fn object<T>(pointer: *mut T) -> io::Result<NonNull<T>> {
    NonNull::new(pointer).ok_or_else(io::Error::last_os_error)
}

/// For `Drop`: an object that cannot be destroyed is a defect worth a line.
fn complain(verb: &str, rc: i32) {
    if let Err(error) = answer(rc) {
        eprintln!("gpuverbs: {verb}: {}", errno::describe(&error));
    }
}

pub struct Device {
    context: NonNull<sys::ibv_context>,
    name: String,
}

// SAFETY: libibverbs may be called for one context by any number of threads.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

/// A device that is there, not opened yet.
pub struct Found {
    device: *mut sys::ibv_device,
    name: String,
    // What `device` is in.
    _list: DeviceList,
}

// SAFETY: nothing changes a list of devices, and any thread may open one.
unsafe impl Sync for Found {}

impl Found {
    /// The device that `--device` names, or the first.
    pub fn find(args: &Args) -> Result<Self, Failure> {
        let wanted = args.text("device");
        let list =
            DeviceList::get().map_err(Failure::environment("the RDMA devices cannot be listed"))?;
        let found = list
            .devices()
            .find(|(name, _)| wanted.is_none_or(|wanted| wanted == name));
        match found {
            Some((name, device)) => Ok(Self {
                device,
                name,
                _list: list,
            }),
            None => Err(Failure::Environment(match wanted {
                Some(wanted) => format!("there is no RDMA device '{wanted}'"),
                None => "there is no RDMA device".to_owned(),
            })),
        }
    }

    pub fn open(&self) -> Result<Arc<Device>, Failure> {
        // SAFETY: `device` is in the list, which lives as long as `self`.
        let context = object(unsafe { sys::ibv_open_device(self.device) });
        let context = context.map_err(Failure::environment(format_args!(
            "the RDMA device {} cannot be opened",
            self.name
        )))?;
        Ok(Arc::new(Device {
            context,
            name: self.name.clone(),
        }))
    }
}

impl Device {
    pub fn open(args: &Args) -> Result<Arc<Self>, Failure> {
        Found::find(args)?.open()
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Closes what [`Self::command_fd`] is, and leaves all else as it is: for
    /// processes that end without cleaning, after which no verb works.
    pub fn hang_up(&self) {
        // SAFETY: not used again: this process calls no more verbs.
        drop(unsafe { OwnedFd::from_raw_fd((*self.context.as_ptr()).cmd_fd) });
    }

    /// What whoever has it can end everything with that this device was asked
    /// for: the last to close it does so.
    pub fn command_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open for as long as the context, which lives as long as `self`.
        unsafe { BorrowedFd::borrow_raw((*self.context.as_ptr()).cmd_fd) }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // SAFETY: opened by us; all that was made from it is gone, because it
        // would hold an Rc of `self`.
        complain("ibv_close_device()", unsafe {
            sys::ibv_close_device(self.context.as_ptr())
        });
    }
}

struct DeviceList {
    list: NonNull<*mut sys::ibv_device>,
    length: usize,
}

impl DeviceList {
    fn get() -> io::Result<Self> {
        let mut length = 0;
        // SAFETY: `length` is written before the call returns.
        let list = object(unsafe { sys::ibv_get_device_list(&mut length) })?;
        Ok(Self {
            list,
            length: usize::try_from(length).unwrap_or(0),
        })
    }

    fn devices(&self) -> impl Iterator<Item = (String, *mut sys::ibv_device)> + '_ {
        (0..self.length).map(|index| {
            // SAFETY: the list has `length` entries and lives as long as `self`.
            let device = unsafe { *self.list.as_ptr().add(index) };
            // SAFETY: a device of the list; its name is a C string inside it.
            let name = unsafe { CStr::from_ptr(sys::ibv_get_device_name(device)) };
            (name.to_string_lossy().into_owned(), device)
        })
    }
}

impl Drop for DeviceList {
    fn drop(&mut self) {
        // SAFETY: made by ibv_get_device_list() and not freed before.
        unsafe { sys::ibv_free_device_list(self.list.as_ptr()) }
    }
}

/// What connecting two queue pairs over a port takes.
pub struct Port {
    gid_index: u8,
    gid: [u8; 16],
    mtu: sys::ibv_mtu,
    largest_message: u32,
    timeout: Duration,
}

impl Port {
    pub fn query(device: &Device, args: &Args) -> Result<Self, Failure> {
        let asked = |error| {
            Failure::environment(format_args!(
                "port {PORT} of {} cannot be asked",
                device.name
            ))(error)
        };
        let mut attr = zeroed::<sys::ibv_port_attr>();
        // SAFETY: the device is open; this symbol takes a whole ibv_port_attr.
        answer(unsafe { sys::___ibv_query_port(device.context.as_ptr(), PORT, attr.as_mut_ptr()) })
            .map_err(asked)?;
        // SAFETY: filled in by the call; zero was valid before.
        let attr = unsafe { attr.assume_init() };
        if attr.state != sys::ibv_port_state_IBV_PORT_ACTIVE {
            return Err(Failure::Environment(format!(
                "port {PORT} of {} is not active: is its network link up?",
                device.name
            )));
        }
        if u32::from(attr.link_layer) != sys::IBV_LINK_LAYER_ETHERNET {
            return Err(Failure::Environment(format!(
                "port {PORT} of {} is not Ethernet: only RoCE is supported here",
                device.name
            )));
        }

        let (gid_index, gid) = match args.number("gid-index")? {
            Some(index) => {
                let index = u8::try_from(index)
                    .map_err(|_| Failure::Usage("--gid-index must be below 256".to_owned()))?;
                let entry = query_gid(device, index).map_err(Failure::environment(
                    format_args!("GID {index} of {}", device.name),
                ))?;
                (index, entry.bytes)
            }
            None => Self::usual_gid(device, attr.gid_tbl_len)?,
        };
        Ok(Self {
            gid_index,
            gid,
            mtu: attr.active_mtu.min(sys::ibv_mtu_IBV_MTU_1024),
            largest_message: attr.max_msg_sz,
            timeout: Duration::from_secs(args.number("timeout")?.unwrap_or(30)),
        })
    }

    fn usual_gid(device: &Device, table_length: i32) -> Result<(u8, [u8; 16]), Failure> {
        // An address handle has 8 bits for the index.
        for index in 0..u8::try_from(table_length).unwrap_or(u8::MAX) {
            match query_gid(device, index) {
                Ok(gid) if gid.is_roce_v2 && is_ipv4(&gid.bytes) => return Ok((index, gid.bytes)),
                Ok(_) => {}
                // An empty entry of the table.
                Err(error) if error.raw_os_error() == Some(sys::ENODATA as i32) => {}
                Err(error) => {
                    return Err(Failure::environment(format_args!(
                        "GID {index} of {}",
                        device.name
                    ))(error))
                }
            }
        }
        Err(Failure::Environment(format!(
            "{} has no RoCE v2 GID of an IPv4 address: give its network interface one, or choose with --gid-index",
            device.name
        )))
    }

    pub fn gid_index(&self) -> u8 {
        self.gid_index
    }

    /// In bytes.
    pub fn mtu(&self) -> u32 {
        128 << self.mtu
    }

    pub fn largest_message(&self) -> u32 {
        self.largest_message
    }
}

struct Gid {
    bytes: [u8; 16],
    is_roce_v2: bool,
}

fn query_gid(device: &Device, index: u8) -> io::Result<Gid> {
    let mut entry = zeroed::<sys::ibv_gid_entry>();
    // SAFETY: the device is open; the entry's true size goes along.
    answer(unsafe {
        sys::_ibv_query_gid_ex(
            device.context.as_ptr(),
            u32::from(PORT),
            u32::from(index),
            entry.as_mut_ptr(),
            0,
            size_of::<sys::ibv_gid_entry>(),
        )
    })?;
    // SAFETY: filled in by the call; zero was valid before.
    let entry = unsafe { entry.assume_init() };
    Ok(Gid {
        // SAFETY: every bit pattern is 16 bytes.
        bytes: unsafe { entry.gid.raw },
        is_roce_v2: entry.gid_type == sys::ibv_gid_type_IBV_GID_TYPE_ROCE_V2,
    })
}

/// ::ffff:a.b.c.d
fn is_ipv4(gid: &[u8; 16]) -> bool {
    gid[..10] == [0; 10] && gid[10..12] == [0xff; 2]
}

/// A protection domain.
pub struct Pd {
    pd: NonNull<sys::ibv_pd>,
    device: Arc<Device>,
}

// SAFETY: libibverbs may be called for one PD by any number of threads.
unsafe impl Send for Pd {}
// SAFETY: as above.
unsafe impl Sync for Pd {}

impl Pd {
    pub fn allocate(device: &Arc<Device>) -> Result<Arc<Self>, Failure> {
        // SAFETY: the device is open, and stays so for as long as the Rc lives.
        let pd = object(unsafe { sys::ibv_alloc_pd(device.context.as_ptr()) })
            .map_err(Failure::unmet("ibv_alloc_pd()"))?;
        Ok(Arc::new(Self {
            pd,
            device: Arc::clone(device),
        }))
    }

    pub fn register(self: &Arc<Self>, range: Range, access: Access) -> io::Result<Mr> {
        let Access(access) = access;
        // SAFETY: the PD is allocated. What the NIC may write to from now on is
        // GPU memory to which no reference exists.
        let mr = object(unsafe {
            // Flags that may be ignored are known to the newer verb only.
            if access & sys::gpuverbs_access_optional == 0 {
                sys::ibv_reg_mr(
                    self.pd.as_ptr(),
                    range.addr() as *mut _,
                    range.length(),
                    access as i32,
                )
            } else {
                sys::ibv_reg_mr_iova2(
                    self.pd.as_ptr(),
                    range.addr() as *mut _,
                    range.length(),
                    range.addr(),
                    access,
                )
            }
        })?;
        Ok(Mr {
            mr: Some(mr),
            range,
            _pd: Arc::clone(self),
        })
    }
}

impl Drop for Pd {
    fn drop(&mut self) {
        // SAFETY: allocated by us; all that was made from it is gone, because
        // it would hold an Rc of `self`.
        complain("ibv_dealloc_pd()", unsafe {
            sys::ibv_dealloc_pd(self.pd.as_ptr())
        });
    }
}

/// What a registration permits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u32);

const ACCESS_NAMES: &[(&str, u32)] = &[
    ("lw", sys::ibv_access_flags_IBV_ACCESS_LOCAL_WRITE),
    ("rw", sys::ibv_access_flags_IBV_ACCESS_REMOTE_WRITE),
    ("rr", sys::ibv_access_flags_IBV_ACCESS_REMOTE_READ),
    ("atomic", sys::ibv_access_flags_IBV_ACCESS_REMOTE_ATOMIC),
    ("relaxed", sys::ibv_access_flags_IBV_ACCESS_RELAXED_ORDERING),
];

impl Access {
    /// Whatever write, read and send need on either side.
    pub const ALL: Self = Self(
        sys::ibv_access_flags_IBV_ACCESS_LOCAL_WRITE
            | sys::ibv_access_flags_IBV_ACCESS_REMOTE_WRITE
            | sys::ibv_access_flags_IBV_ACCESS_REMOTE_READ,
    );

    /// Names with commas between them; `none` for local reading alone.
    pub fn parse(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self(0));
        }
        text.split(',').try_fold(Self(0), |Self(sum), word| {
            let (_, flag) = ACCESS_NAMES.iter().find(|(name, _)| *name == word)?;
            Some(Self(sum | flag))
        })
    }
}

/// A memory region. Deregistered when dropped, if not before.
pub struct Mr {
    mr: Option<NonNull<sys::ibv_mr>>,
    range: Range,
    _pd: Arc<Pd>,
}

// SAFETY: libibverbs may be called for a region from any thread.
unsafe impl Send for Mr {}

impl Mr {
    /// Deregisters. The region is gone, even if another process has come first.
    pub fn deregister(mut self) -> io::Result<()> {
        let result = self.try_deregister();
        self.mr = None;
        result
    }

    /// Deregisters, unless an error says that the region is there still.
    pub fn try_deregister(&mut self) -> io::Result<()> {
        let Some(mr) = self.mr else {
            return Ok(());
        };
        // SAFETY: registered by us, and forgotten when this succeeds.
        answer(unsafe { sys::ibv_dereg_mr(mr.as_ptr()) })?;
        self.mr = None;
        Ok(())
    }

    /// What somebody needs to reach the region from outside.
    pub fn remote(&self) -> Remote {
        Remote {
            addr: self.range.addr(),
            rkey: self.keys().rkey,
        }
    }

    pub fn length(&self) -> usize {
        self.range.length()
    }

    fn keys(&self) -> Keys {
        let mr = self
            .mr
            .expect("only close() takes it, and it ends the region");
        // SAFETY: a live region; its keys do not change.
        let (lkey, rkey) = unsafe { ((*mr.as_ptr()).lkey, (*mr.as_ptr()).rkey) };
        Keys { lkey, rkey }
    }

    /// The whole region as one element of a work request.
    fn element(&self) -> io::Result<sys::ibv_sge> {
        let length = u32::try_from(self.range.length())
            .map_err(|_| io::Error::from_raw_os_error(sys::EMSGSIZE as i32))?;
        Ok(sys::ibv_sge {
            addr: self.range.addr(),
            length,
            lkey: self.keys().lkey,
        })
    }
}

/// Memory of some region, as seen by somebody who may not even be allowed to.
#[derive(Clone, Copy)]
pub struct Remote {
    pub addr: u64,
    pub rkey: u32,
}

struct Keys {
    lkey: u32,
    rkey: u32,
}

impl Drop for Mr {
    fn drop(&mut self) {
        if let Err(error) = self.try_deregister() {
            eprintln!("gpuverbs: ibv_dereg_mr(): {}", errno::describe(&error));
        }
    }
}

/// A completion queue.
struct Cq {
    cq: NonNull<sys::ibv_cq>,
    _device: Arc<Device>,
}

struct Completion {
    id: u64,
    status: Status,
}

impl Cq {
    fn create(device: &Arc<Device>, entries: i32) -> io::Result<Rc<Self>> {
        // SAFETY: the device is open; no completion channel, no context.
        let cq = object(unsafe {
            sys::ibv_create_cq(
                device.context.as_ptr(),
                entries,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            )
        })?;
        Ok(Rc::new(Self {
            cq,
            _device: Arc::clone(device),
        }))
    }

    fn poll(&self) -> io::Result<Option<Completion>> {
        let mut completion = zeroed::<sys::ibv_wc>();
        // SAFETY: room for the one completion that is asked for.
        let count = unsafe { sys::ibv_poll_cq(self.cq.as_ptr(), 1, completion.as_mut_ptr()) };
        match count {
            0 => Ok(None),
            1 => {
                // SAFETY: filled in by the call; zero was valid before.
                let completion = unsafe { completion.assume_init() };
                Ok(Some(Completion {
                    id: completion.wr_id,
                    status: Status(completion.status),
                }))
            }
            _ => Err(io::Error::from_raw_os_error(sys::EIO as i32)),
        }
    }

    /// Waits until all these requests have completed, or one has failed.
    fn wait(&self, requests: &[u64], timeout: Duration) -> Result<Outcome, Failure> {
        let mut outstanding = requests.to_vec();
        let mut received = None;
        let deadline = Instant::now() + timeout;
        loop {
            match self.poll().map_err(Failure::unmet("ibv_poll_cq()"))? {
                Some(completion) => {
                    outstanding.retain(|id| *id != completion.id);
                    let outcome = Outcome::Completed(completion.status);
                    if completion.id == RECEIVE {
                        received = Some(outcome);
                    } else if !outcome.is_success() {
                        // The receiving side has no more to say about it.
                        return Ok(outcome);
                    }
                    if outstanding.is_empty() {
                        return Ok(received.unwrap_or(outcome));
                    }
                }
                None if Instant::now() >= deadline => return Ok(Outcome::TimedOut),
                None => thread::sleep(Duration::from_micros(50)),
            }
        }
    }
}

impl Drop for Cq {
    fn drop(&mut self) {
        // SAFETY: created by us; its queue pairs are gone, because each would
        // hold an Rc of `self`.
        complain("ibv_destroy_cq()", unsafe {
            sys::ibv_destroy_cq(self.cq.as_ptr())
        });
    }
}

/// How a work request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(sys::ibv_wc_status);

macro_rules! statuses {
    ($($constant:ident = $name:literal)*) => { &[$((sys::$constant, $name)),*] };
}

const STATUSES: &[(sys::ibv_wc_status, &str)] = statuses! {
    ibv_wc_status_IBV_WC_SUCCESS = "IBV_WC_SUCCESS"
    ibv_wc_status_IBV_WC_LOC_LEN_ERR = "IBV_WC_LOC_LEN_ERR"
    ibv_wc_status_IBV_WC_LOC_QP_OP_ERR = "IBV_WC_LOC_QP_OP_ERR"
    ibv_wc_status_IBV_WC_LOC_EEC_OP_ERR = "IBV_WC_LOC_EEC_OP_ERR"
    ibv_wc_status_IBV_WC_LOC_PROT_ERR = "IBV_WC_LOC_PROT_ERR"
    ibv_wc_status_IBV_WC_WR_FLUSH_ERR = "IBV_WC_WR_FLUSH_ERR"
    ibv_wc_status_IBV_WC_MW_BIND_ERR = "IBV_WC_MW_BIND_ERR"
    ibv_wc_status_IBV_WC_BAD_RESP_ERR = "IBV_WC_BAD_RESP_ERR"
    ibv_wc_status_IBV_WC_LOC_ACCESS_ERR = "IBV_WC_LOC_ACCESS_ERR"
    ibv_wc_status_IBV_WC_REM_INV_REQ_ERR = "IBV_WC_REM_INV_REQ_ERR"
    ibv_wc_status_IBV_WC_REM_ACCESS_ERR = "IBV_WC_REM_ACCESS_ERR"
    ibv_wc_status_IBV_WC_REM_OP_ERR = "IBV_WC_REM_OP_ERR"
    ibv_wc_status_IBV_WC_RETRY_EXC_ERR = "IBV_WC_RETRY_EXC_ERR"
    ibv_wc_status_IBV_WC_RNR_RETRY_EXC_ERR = "IBV_WC_RNR_RETRY_EXC_ERR"
    ibv_wc_status_IBV_WC_LOC_RDD_VIOL_ERR = "IBV_WC_LOC_RDD_VIOL_ERR"
    ibv_wc_status_IBV_WC_REM_INV_RD_REQ_ERR = "IBV_WC_REM_INV_RD_REQ_ERR"
    ibv_wc_status_IBV_WC_REM_ABORT_ERR = "IBV_WC_REM_ABORT_ERR"
    ibv_wc_status_IBV_WC_INV_EECN_ERR = "IBV_WC_INV_EECN_ERR"
    ibv_wc_status_IBV_WC_INV_EEC_STATE_ERR = "IBV_WC_INV_EEC_STATE_ERR"
    ibv_wc_status_IBV_WC_FATAL_ERR = "IBV_WC_FATAL_ERR"
    ibv_wc_status_IBV_WC_RESP_TIMEOUT_ERR = "IBV_WC_RESP_TIMEOUT_ERR"
    ibv_wc_status_IBV_WC_GENERAL_ERR = "IBV_WC_GENERAL_ERR"
    ibv_wc_status_IBV_WC_TM_ERR = "IBV_WC_TM_ERR"
    ibv_wc_status_IBV_WC_TM_RNDV_INCOMPLETE = "IBV_WC_TM_RNDV_INCOMPLETE"
};

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match STATUSES.iter().find(|(status, _)| *status == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "IBV_WC_{}", self.0),
        }
    }
}

/// How an operation between two queue pairs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Completed(Status),
    /// Nothing came before the deadline.
    TimedOut,
}

impl Outcome {
    pub fn is_success(self) -> bool {
        self == Self::Completed(Status(sys::ibv_wc_status_IBV_WC_SUCCESS))
    }

    /// Whether somebody refused the operation: not success, and not one of the
    /// errors that say only that nobody answered.
    ///
    /// A flush counts, because an operation is alone on its queue pair: what
    /// put that into the error state is the operation itself. It is all that
    /// rdma_rxe says of a local key that it refuses to the sending side.
    pub fn is_refusal(self) -> bool {
        match self {
            Self::TimedOut => false,
            Self::Completed(Status(status)) => ![
                sys::ibv_wc_status_IBV_WC_SUCCESS,
                sys::ibv_wc_status_IBV_WC_RETRY_EXC_ERR,
                sys::ibv_wc_status_IBV_WC_RNR_RETRY_EXC_ERR,
                sys::ibv_wc_status_IBV_WC_RESP_TIMEOUT_ERR,
            ]
            .contains(&status),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(status) => status.fmt(f),
            Self::TimedOut => f.write_str("timeout"),
        }
    }
}

/// How bytes get from the source to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The source's side writes.
    Write,
    /// The target's side reads.
    Read,
    /// The source's side sends, the target's side has posted a receive.
    Send,
}

impl Operation {
    pub const NAMES: &'static [(&'static str, Self)] = &[
        ("write", Self::Write),
        ("read", Self::Read),
        ("send", Self::Send),
    ];
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::Read => "read",
            Self::Send => "send",
        })
    }
}

/// Where a queue pair is, for whoever connects to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address {
    pub gid: [u8; 16],
    pub qp: u32,
    pub first_packet: u32,
}

/// How long a queue pair waits for an answer before it sends again. An emulated
/// guest is slow, and a packet sent again for no reason only makes it slower.
#[derive(Clone, Copy)]
enum Patience {
    /// About a second (4.096 us << 18), and 7 retries: rdma_rxe takes that for
    /// ever, so only our own deadline ends it.
    Endless,
    /// Six retries of two seconds: the transport gives up before our deadline.
    Seconds,
}

/// A reliable queue pair.
struct Qp {
    qp: NonNull<sys::ibv_qp>,
    _cq: Rc<Cq>,
    _pd: Arc<Pd>,
}

impl Qp {
    fn create(pd: &Arc<Pd>, cq: &Rc<Cq>) -> io::Result<Self> {
        let mut attr = zeroed::<sys::ibv_qp_init_attr>();
        // SAFETY: all of its fields are valid when zero.
        let attr = unsafe { attr.assume_init_mut() };
        attr.send_cq = cq.cq.as_ptr();
        attr.recv_cq = cq.cq.as_ptr();
        attr.qp_type = sys::ibv_qp_type_IBV_QPT_RC;
        attr.cap.max_send_wr = 1;
        attr.cap.max_recv_wr = 1;
        attr.cap.max_send_sge = 1;
        attr.cap.max_recv_sge = 1;
        // SAFETY: PD and CQ are alive, and stay so for as long as the Rcs live.
        let qp = object(unsafe { sys::ibv_create_qp(pd.pd.as_ptr(), attr) })?;
        Ok(Self {
            qp,
            _cq: Rc::clone(cq),
            _pd: Arc::clone(pd),
        })
    }

    fn number(&self) -> u32 {
        // SAFETY: a live queue pair; its number does not change.
        unsafe { (*self.qp.as_ptr()).qp_num }
    }

    /// From RESET to RTS. `first_packet` is the number of the first packet that
    /// goes out.
    fn connect(
        &self,
        port: &Port,
        first_packet: u32,
        peer: &Address,
        patience: Patience,
    ) -> io::Result<()> {
        self.modify(sys::ibv_qp_state_IBV_QPS_INIT, |attr| {
            attr.pkey_index = 0;
            attr.port_num = PORT;
            attr.qp_access_flags = Access::ALL.0;
            sys::ibv_qp_attr_mask_IBV_QP_PKEY_INDEX
                | sys::ibv_qp_attr_mask_IBV_QP_PORT
                | sys::ibv_qp_attr_mask_IBV_QP_ACCESS_FLAGS
        })?;
        self.modify(sys::ibv_qp_state_IBV_QPS_RTR, |attr| {
            // RoCE always has a global route.
            attr.ah_attr.is_global = 1;
            attr.ah_attr.port_num = PORT;
            attr.ah_attr.grh.dgid = sys::ibv_gid { raw: peer.gid };
            attr.ah_attr.grh.sgid_index = port.gid_index;
            attr.ah_attr.grh.hop_limit = 64;
            attr.path_mtu = port.mtu;
            attr.dest_qp_num = peer.qp;
            attr.rq_psn = peer.first_packet;
            attr.max_dest_rd_atomic = 1;
            // 0.64 ms
            attr.min_rnr_timer = 12;
            sys::ibv_qp_attr_mask_IBV_QP_AV
                | sys::ibv_qp_attr_mask_IBV_QP_PATH_MTU
                | sys::ibv_qp_attr_mask_IBV_QP_DEST_QPN
                | sys::ibv_qp_attr_mask_IBV_QP_RQ_PSN
                | sys::ibv_qp_attr_mask_IBV_QP_MAX_DEST_RD_ATOMIC
                | sys::ibv_qp_attr_mask_IBV_QP_MIN_RNR_TIMER
        })?;
        self.modify(sys::ibv_qp_state_IBV_QPS_RTS, |attr| {
            (attr.timeout, attr.retry_cnt) = match patience {
                Patience::Endless => (18, 7),
                Patience::Seconds => (19, 6),
            };
            // 7 would mean for ever; the receive is posted before the send.
            attr.rnr_retry = 6;
            attr.sq_psn = first_packet;
            attr.max_rd_atomic = 1;
            sys::ibv_qp_attr_mask_IBV_QP_TIMEOUT
                | sys::ibv_qp_attr_mask_IBV_QP_RETRY_CNT
                | sys::ibv_qp_attr_mask_IBV_QP_RNR_RETRY
                | sys::ibv_qp_attr_mask_IBV_QP_SQ_PSN
                | sys::ibv_qp_attr_mask_IBV_QP_MAX_QP_RD_ATOMIC
        })
    }

    /// One state transition. `set` fills in what the new state wants and says
    /// what that was.
    fn modify(
        &self,
        state: sys::ibv_qp_state,
        set: impl FnOnce(&mut sys::ibv_qp_attr) -> sys::ibv_qp_attr_mask,
    ) -> io::Result<()> {
        let mut attr = zeroed::<sys::ibv_qp_attr>();
        // SAFETY: all of its fields are valid when zero.
        let attr = unsafe { attr.assume_init_mut() };
        attr.qp_state = state;
        let mask = set(attr) | sys::ibv_qp_attr_mask_IBV_QP_STATE;
        // SAFETY: a live queue pair, and attributes that last for the call.
        answer(unsafe { sys::ibv_modify_qp(self.qp.as_ptr(), attr, mask as i32) })
    }

    fn post_receive(&self, id: u64, local: &Mr) -> io::Result<()> {
        let mut element = local.element()?;
        let mut request = zeroed::<sys::ibv_recv_wr>();
        // SAFETY: all of its fields are valid when zero.
        let request = unsafe { request.assume_init_mut() };
        request.wr_id = id;
        request.sg_list = &mut element;
        request.num_sge = 1;
        let mut bad = ptr::null_mut();
        // SAFETY: request and element are copied before the call returns.
        answer(unsafe { sys::ibv_post_recv(self.qp.as_ptr(), request, &mut bad) })
    }

    fn post(
        &self,
        id: u64,
        opcode: sys::ibv_wr_opcode,
        local: &Mr,
        remote: Option<Remote>,
    ) -> io::Result<()> {
        let mut element = local.element()?;
        let mut request = zeroed::<sys::ibv_send_wr>();
        // SAFETY: all of its fields are valid when zero.
        let request = unsafe { request.assume_init_mut() };
        request.wr_id = id;
        request.sg_list = &mut element;
        request.num_sge = 1;
        request.opcode = opcode;
        request.send_flags = sys::ibv_send_flags_IBV_SEND_SIGNALED;
        if let Some(remote) = remote {
            request.wr.rdma.remote_addr = remote.addr;
            request.wr.rdma.rkey = remote.rkey;
        }
        let mut bad = ptr::null_mut();
        // SAFETY: request and element are copied before the call returns.
        answer(unsafe { sys::ibv_post_send(self.qp.as_ptr(), request, &mut bad) })
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        // SAFETY: created by us and not destroyed before.
        complain("ibv_destroy_qp()", unsafe {
            sys::ibv_destroy_qp(self.qp.as_ptr())
        });
    }
}

/// Two queue pairs of this process, connected to each other over the port. One
/// operation at a time; an error leaves both unusable: make a new pair after it.
pub struct Pair {
    source: Qp,
    target: Qp,
    cq: Rc<Cq>,
    timeout: Duration,
}

/// The request whose completion says how an operation ended.
const REQUEST: u64 = 1;
/// The receive that a send needs on the other side.
const RECEIVE: u64 = 2;

impl Pair {
    pub fn connect(pd: &Arc<Pd>, port: &Port) -> Result<Self, Failure> {
        let cq = Cq::create(&pd.device, 8).map_err(Failure::unmet("ibv_create_cq()"))?;
        let create = || Qp::create(pd, &cq).map_err(Failure::unmet("ibv_create_qp()"));
        let (source, target) = (create()?, create()?);
        // The peer is this very port.
        let address = |qp: &Qp, first_packet| Address {
            gid: port.gid,
            qp: qp.number(),
            first_packet,
        };
        // Any two numbers of 24 bits; different ones show up a mix-up.
        let (from_source, from_target) = (0x10_0000, 0x20_0000);
        source
            .connect(
                port,
                from_source,
                &address(&target, from_target),
                Patience::Endless,
            )
            .and_then(|()| {
                target.connect(
                    port,
                    from_target,
                    &address(&source, from_source),
                    Patience::Endless,
                )
            })
            .map_err(Failure::unmet(
                "connecting two queue pairs with ibv_modify_qp()",
            ))?;
        Ok(Self {
            source,
            target,
            cq,
            timeout: port.timeout,
        })
    }

    /// Moves all of `source` to the beginning of `target`, and waits.
    pub fn run(&self, operation: Operation, source: &Mr, target: &Mr) -> Result<Outcome, Failure> {
        match operation {
            Operation::Write => self.write(source, target.remote()),
            Operation::Read => self.read(source.remote(), target),
            Operation::Send => self.send(source, target),
        }
    }

    /// Writes all of `source` to whatever is at `target`, and waits.
    pub fn write(&self, source: &Mr, target: Remote) -> Result<Outcome, Failure> {
        let opcode = sys::ibv_wr_opcode_IBV_WR_RDMA_WRITE;
        self.source
            .post(REQUEST, opcode, source, Some(target))
            .map_err(Failure::unmet("posting a write"))?;
        self.cq.wait(&[REQUEST], self.timeout)
    }

    /// Fills all of `target` from whatever is at `source`, and waits.
    pub fn read(&self, source: Remote, target: &Mr) -> Result<Outcome, Failure> {
        let opcode = sys::ibv_wr_opcode_IBV_WR_RDMA_READ;
        self.target
            .post(REQUEST, opcode, target, Some(source))
            .map_err(Failure::unmet("posting a read"))?;
        self.cq.wait(&[REQUEST], self.timeout)
    }

    fn send(&self, source: &Mr, target: &Mr) -> Result<Outcome, Failure> {
        let opcode = sys::ibv_wr_opcode_IBV_WR_SEND;
        self.target
            .post_receive(RECEIVE, target)
            .and_then(|()| self.source.post(REQUEST, opcode, source, None))
            .map_err(Failure::unmet("posting a send"))?;
        // It is over when both sides are done, unless it failed.
        self.cq.wait(&[REQUEST, RECEIVE], self.timeout)
    }
}

/// One queue pair, connected to one of another machine. An error leaves it
/// unusable.
pub struct Link {
    qp: Qp,
    address: Address,
    cq: Rc<Cq>,
    timeout: Duration,
}

impl Link {
    pub fn create(pd: &Arc<Pd>, port: &Port) -> Result<Self, Failure> {
        let cq = Cq::create(&pd.device, 2).map_err(Failure::unmet("ibv_create_cq()"))?;
        let qp = Qp::create(pd, &cq).map_err(Failure::unmet("ibv_create_qp()"))?;
        let address = Address {
            gid: port.gid,
            qp: qp.number(),
            // Any 24 bits.
            first_packet: 0x30_0000,
        };
        Ok(Self {
            qp,
            address,
            cq,
            timeout: port.timeout,
        })
    }

    pub fn address(&self) -> Address {
        self.address
    }

    pub fn connect(&self, port: &Port, peer: &Address) -> Result<(), Failure> {
        self.qp
            .connect(port, self.address.first_packet, peer, Patience::Seconds)
            .map_err(Failure::unmet(
                "connecting to another machine with ibv_modify_qp()",
            ))
    }

    pub fn write(&self, source: &Mr, target: Remote) -> Result<Outcome, Failure> {
        let opcode = sys::ibv_wr_opcode_IBV_WR_RDMA_WRITE;
        self.request("a write", opcode, source, Some(target))
    }

    pub fn read(&self, source: Remote, target: &Mr) -> Result<Outcome, Failure> {
        let opcode = sys::ibv_wr_opcode_IBV_WR_RDMA_READ;
        self.request("a read", opcode, target, Some(source))
    }

    pub fn send(&self, source: &Mr) -> Result<Outcome, Failure> {
        self.request("a send", sys::ibv_wr_opcode_IBV_WR_SEND, source, None)
    }

    fn request(
        &self,
        what: &str,
        opcode: sys::ibv_wr_opcode,
        local: &Mr,
        remote: Option<Remote>,
    ) -> Result<Outcome, Failure> {
        self.qp
            .post(REQUEST, opcode, local, remote)
            .map_err(Failure::unmet(format_args!("posting {what}")))?;
        self.cq.wait(&[REQUEST], self.timeout)
    }

    /// Before the other side sends.
    pub fn post_receive(&self, target: &Mr) -> Result<(), Failure> {
        self.qp
            .post_receive(RECEIVE, target)
            .map_err(Failure::unmet("posting a receive"))
    }

    pub fn received(&self) -> Result<Outcome, Failure> {
        self.cq.wait(&[RECEIVE], self.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_flags_have_names() {
        assert_eq!(Access::parse("none"), Some(Access(0)));
        let some = sys::ibv_access_flags_IBV_ACCESS_LOCAL_WRITE
            | sys::ibv_access_flags_IBV_ACCESS_RELAXED_ORDERING;
        assert_eq!(Access::parse("lw,relaxed"), Some(Access(some)));
        assert_eq!(Access::parse("lw,rw,rr"), Some(Access::ALL));
        for text in ["", "lw,", "LW", "none,lw", "7"] {
            assert_eq!(Access::parse(text), None, "{text}");
        }
    }

    #[test]
    fn only_optional_flags_ask_for_the_newer_verb() {
        let optional = |text| Access::parse(text).unwrap().0 & sys::gpuverbs_access_optional != 0;
        assert!(!optional("lw,rw,rr,atomic"));
        assert!(optional("lw,relaxed"));
    }

    #[test]
    fn statuses_have_the_names_of_the_header() {
        // The header numbers them without a gap.
        for (number, (status, name)) in STATUSES.iter().enumerate() {
            assert_eq!(*status as usize, number, "{name}");
        }
        assert_eq!(Status(10).to_string(), "IBV_WC_REM_ACCESS_ERR");
        assert_eq!(Status(99).to_string(), "IBV_WC_99");
    }

    #[test]
    fn refusals() {
        let outcome = |status| Outcome::Completed(Status(status));
        assert!(outcome(sys::ibv_wc_status_IBV_WC_REM_ACCESS_ERR).is_refusal());
        assert!(outcome(sys::ibv_wc_status_IBV_WC_LOC_PROT_ERR).is_refusal());
        assert!(outcome(sys::ibv_wc_status_IBV_WC_WR_FLUSH_ERR).is_refusal());
        assert!(!outcome(sys::ibv_wc_status_IBV_WC_SUCCESS).is_refusal());
        assert!(!outcome(sys::ibv_wc_status_IBV_WC_RETRY_EXC_ERR).is_refusal());
        assert!(!Outcome::TimedOut.is_refusal());
        assert!(outcome(sys::ibv_wc_status_IBV_WC_SUCCESS).is_success());
        assert!(!Outcome::TimedOut.is_success());
    }

    #[test]
    fn ipv4_gids_are_known_by_their_prefix() {
        let mut gid = [0; 16];
        gid[10..12].copy_from_slice(&[0xff; 2]);
        gid[12..].copy_from_slice(&[192, 168, 7, 1]);
        assert!(is_ipv4(&gid));
        gid[0] = 0xfe;
        assert!(!is_ipv4(&gid));
        assert!(!is_ipv4(&[0; 16]));
    }
}
