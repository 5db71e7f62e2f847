// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! Two connected queue pairs of one port, by which a device moves data between memory of the host and of a GPU.
use std::ffi::c_int;
use std::ptr::{NonNull, null_mut};

use crate::abi;
use crate::verbs::{ALL, Completions, Domain, Error, PortAttributes, Region, not_null, zero};

/// What a device does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transfer {
    /// Reads memory of the host, and writes to the GPU.
    ToGpu,
    /// Reads memory of the GPU, and writes to the host.
    FromGpu,
    /// Asks for the GPU's memory, and writes to the host. Nothing is written to the GPU.
    ReadGpu,
}

/// The address of a port: its number, and the index and bytes of its GID if routes need one.
#[derive(Clone, Copy, Debug)]
pub struct PortAddress {
    pub number: u8,
    pub gid: Option<(u8, [u8; 16])>,
}

/// One end of the connection.
struct End<'r> {
    domain: &'r Domain<'r>,
    raw: NonNull<abi::ibv_qp>,
    number: u32,
}

impl<'r> End<'r> {
    fn new(domain: &'r Domain<'r>, completions: &'r Completions<'r>, depth: u32) -> Result<Self, Error> {
        let queue = completions.raw.as_ptr();
        let cap = abi::ibv_qp_cap {
            max_send_wr: depth,
            max_recv_wr: 1,
            max_send_sge: 1,
            max_recv_sge: 1,
            max_inline_data: 0,
        };
        let mut init = abi::ibv_qp_init_attr {
            qp_context: null_mut(),
            send_cq: queue,
            recv_cq: queue,
            srq: null_mut(),
            cap,
            qp_type: abi::IBV_QPT_RC,
            sq_sig_all: 0,
        };
        // SAFETY: The domain and the completion queue exist, and outlive the queue pair, which borrows them.
        let raw = unsafe { (domain.context.library.verbs.create_qp)(domain.raw.as_ptr(), &raw mut init) };
        let raw = not_null("ibv_create_qp", raw)?;
        // SAFETY: The library has returned a queue pair, whose number it does not change any more.
        let number = unsafe { raw.as_ref().qp_num };
        Ok(Self { domain, raw, number })
    }

    /// Returns the number of the first packet. Any number would do.
    fn first_packet(&self) -> u32 {
        self.number & 0xff_ffff
    }

    fn modify(&self, state: c_int, mask: c_int, mut attributes: abi::ibv_qp_attr) -> Result<(), Error> {
        attributes.qp_state = state;
        let modify = self.domain.context.library.verbs.modify_qp;
        // SAFETY: The queue pair exists, and the structure is the largest that a library reads.
        let code = unsafe { modify(self.raw.as_ptr(), &raw mut attributes, mask | abi::IBV_QP_STATE) };
        zero("ibv_modify_qp", code)
    }

    fn connect(&self, other: &Self, port: &PortAttributes, address: &PortAddress) -> Result<(), Error> {
        let none = abi::ibv_qp_attr::default();
        self.modify(
            abi::IBV_QPS_INIT,
            abi::IBV_QP_PKEY_INDEX | abi::IBV_QP_PORT | abi::IBV_QP_ACCESS_FLAGS,
            abi::ibv_qp_attr { port_num: address.number, qp_access_flags: ALL, ..none },
        )?;
        self.modify(
            abi::IBV_QPS_RTR,
            abi::IBV_QP_AV
                | abi::IBV_QP_PATH_MTU
                | abi::IBV_QP_DEST_QPN
                | abi::IBV_QP_RQ_PSN
                | abi::IBV_QP_MAX_DEST_RD_ATOMIC
                | abi::IBV_QP_MIN_RNR_TIMER,
            abi::ibv_qp_attr {
                ah_attr: route(port, address),
                path_mtu: port.mtu,
                dest_qp_num: other.number,
                rq_psn: other.first_packet(),
                max_dest_rd_atomic: 1,
                min_rnr_timer: 12,
                ..none
            },
        )?;
        // The timeout is about a second (4.096 us << 18). With the retries, the device gives up before the time limit
        // of the selftest ends.
        self.modify(
            abi::IBV_QPS_RTS,
            abi::IBV_QP_TIMEOUT
                | abi::IBV_QP_RETRY_CNT
                | abi::IBV_QP_RNR_RETRY
                | abi::IBV_QP_SQ_PSN
                | abi::IBV_QP_MAX_QP_RD_ATOMIC,
            abi::ibv_qp_attr {
                timeout: 18,
                retry_cnt: 6,
                rnr_retry: 6,
                sq_psn: self.first_packet(),
                max_rd_atomic: 1,
                ..none
            },
        )
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        let library = self.domain.context.library;
        // SAFETY: The queue pair exists, and only here it is destroyed.
        let code = unsafe { (library.verbs.destroy_qp)(self.raw.as_ptr()) };
        library.released("ibv_destroy_qp", code);
    }
}

/// Returns the route to this port. It has the LID of the port, or its GID on links and in subnets that demand a GID.
fn route(port: &PortAttributes, address: &PortAddress) -> abi::ibv_ah_attr {
    let mut route = abi::ibv_ah_attr { port_num: address.number, dlid: port.lid, ..Default::default() };
    if let Some((index, raw)) = address.gid {
        route.is_global = 1;
        route.grh.sgid_index = index;
        route.grh.hop_limit = 64;
        route.grh.dgid.raw = raw;
    }
    route
}

/// Both ends. They go before the regions that they reach.
pub struct QueuePair<'r> {
    // Fields go in this order, the last that was made first.
    _other: End<'r>,
    one: End<'r>,
    host: &'r Region<'r>,
    gpu: &'r Region<'r>,
}

impl<'r> QueuePair<'r> {
    /// Returns a queue pair that is connected to a second queue pair of the same port. DEPTH is the number of transfers
    /// at a time.
    pub fn connected(
        domain: &'r Domain<'r>,
        completions: &'r Completions<'r>,
        depth: u32,
        port: (&PortAttributes, &PortAddress),
        regions: (&'r Region<'r>, &'r Region<'r>),
    ) -> Result<Self, Error> {
        let one = End::new(domain, completions, depth)?;
        let other = End::new(domain, completions, depth)?;
        one.connect(&other, port.0, port.1)?;
        other.connect(&one, port.0, port.1)?;
        Ok(Self { _other: other, one, host: regions.0, gpu: regions.1 })
    }

    /// Lets the device transfer LENGTH bytes from OFFSET on, which both regions have.
    pub fn post(&self, transfer: Transfer, length: usize, offset: usize) -> Result<(), Error> {
        const VERB: &str = "ibv_post_send";
        const INVALID: Error = Error { verb: VERB, number: 22 };
        let (local, remote, opcode) = match transfer {
            Transfer::ToGpu => (self.host, self.gpu, abi::IBV_WR_RDMA_WRITE),
            Transfer::FromGpu => (self.gpu, self.host, abi::IBV_WR_RDMA_WRITE),
            Transfer::ReadGpu => (self.host, self.gpu, abi::IBV_WR_RDMA_READ),
        };
        let end = offset.checked_add(length).ok_or(INVALID)?;
        let size = u32::try_from(length).map_err(|_| INVALID)?;
        if end > local.length.min(remote.length) {
            return Err(INVALID);
        }
        let offset = offset as u64;
        let mut element = abi::ibv_sge { addr: local.address + offset, length: size, lkey: local.local_key };
        let wr = abi::rdma { remote_addr: remote.address + offset, rkey: remote.remote_key, ..Default::default() };
        let mut request = abi::ibv_send_wr {
            wr_id: 0,
            next: null_mut(),
            sg_list: &raw mut element,
            num_sge: 1,
            opcode,
            send_flags: abi::IBV_SEND_SIGNALED,
            imm_data: 0,
            wr,
            qp_type: 0,
            bind_mw: [0; 6],
        };
        let post = self.one.domain.context.post_send().ok_or(INVALID)?;
        let mut wrong = null_mut();
        // SAFETY: The queue pair exists. The driver copies the request and its element before it returns. The device
        // reaches only regions that this queue pair borrows, and Drop destroys it before them.
        let code = unsafe { post(self.one.raw.as_ptr(), &raw mut request, &raw mut wrong) };
        if code == 0 { Ok(()) } else { Err(Error { verb: VERB, number: code.abs() }) }
    }
}
