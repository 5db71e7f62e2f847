// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
//! The structures and numbers of `<infiniband/verbs.h>` that nvpm uses, under the same names. They have not changed
//! since libibverbs 1.1, and a test compares them with the header. Fields whose names begin with `_` are not used.
//! Flags that the header declares as unsigned are signed here, because all of them are small.
#![allow(non_camel_case_types, clippy::struct_field_names)]
use std::ffi::{c_int, c_uint, c_void};

pub const IBV_ACCESS_LOCAL_WRITE: c_int = 1;
pub const IBV_ACCESS_REMOTE_WRITE: c_int = 2;
pub const IBV_ACCESS_REMOTE_READ: c_int = 4;
pub const IBV_QPT_RC: c_int = 2;
pub const IBV_QPS_INIT: c_int = 1;
pub const IBV_QPS_RTR: c_int = 2;
pub const IBV_QPS_RTS: c_int = 3;
pub const IBV_QP_STATE: c_int = 1 << 0;
pub const IBV_QP_ACCESS_FLAGS: c_int = 1 << 3;
pub const IBV_QP_PKEY_INDEX: c_int = 1 << 4;
pub const IBV_QP_PORT: c_int = 1 << 5;
pub const IBV_QP_AV: c_int = 1 << 7;
pub const IBV_QP_PATH_MTU: c_int = 1 << 8;
pub const IBV_QP_TIMEOUT: c_int = 1 << 9;
pub const IBV_QP_RETRY_CNT: c_int = 1 << 10;
pub const IBV_QP_RNR_RETRY: c_int = 1 << 11;
pub const IBV_QP_RQ_PSN: c_int = 1 << 12;
pub const IBV_QP_MAX_QP_RD_ATOMIC: c_int = 1 << 13;
pub const IBV_QP_MIN_RNR_TIMER: c_int = 1 << 15;
pub const IBV_QP_SQ_PSN: c_int = 1 << 16;
pub const IBV_QP_MAX_DEST_RD_ATOMIC: c_int = 1 << 17;
pub const IBV_QP_DEST_QPN: c_int = 1 << 20;
pub const IBV_WR_RDMA_WRITE: c_int = 0;
pub const IBV_WR_RDMA_READ: c_int = 4;
pub const IBV_SEND_SIGNALED: c_uint = 2;
pub const IBV_QPF_GRH_REQUIRED: u8 = 1;
pub const IBV_ODP_SUPPORT: u64 = 1;
/// A context with this value in `abi_compat` is the end of a `verbs_context`.
pub const EXTENDED: u64 = u64::MAX;

/// The names of the statuses of completions, in the order of their numbers, from 0.
pub const IBV_WC: [&str; 22] = [
    "SUCCESS",
    "LOC_LEN_ERR",
    "LOC_QP_OP_ERR",
    "LOC_EEC_OP_ERR",
    "LOC_PROT_ERR",
    "WR_FLUSH_ERR",
    "MW_BIND_ERR",
    "BAD_RESP_ERR",
    "LOC_ACCESS_ERR",
    "REM_INV_REQ_ERR",
    "REM_ACCESS_ERR",
    "REM_OP_ERR",
    "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR",
    "LOC_RDD_VIOL_ERR",
    "REM_INV_RD_REQ_ERR",
    "REM_ABORT_ERR",
    "INV_EECN_ERR",
    "INV_EEC_STATE_ERR",
    "FATAL_ERR",
    "RESP_TIMEOUT_ERR",
    "GENERAL_ERR",
];

/// A pointer to an object of the library that nvpm only hands on.
pub type Opaque = *mut c_void;

/// An older library does not fill in the last fields.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_port_attr {
    pub state: c_int,
    pub max_mtu: c_int,
    pub active_mtu: c_int,
    pub gid_tbl_len: c_int,
    pub port_cap_flags: u32,
    pub max_msg_sz: u32,
    pub bad_pkey_cntr: u32,
    pub qkey_viol_cntr: u32,
    pub pkey_tbl_len: u16,
    pub lid: u16,
    pub sm_lid: u16,
    pub lmc: u8,
    pub max_vl_num: u8,
    pub sm_sl: u8,
    pub subnet_timeout: u8,
    pub init_type_reply: u8,
    pub active_width: u8,
    pub active_speed: u8,
    pub phys_state: u8,
    pub link_layer: u8,
    pub flags: u8,
    pub port_cap_flags2: u16,
    pub active_speed_ex: u32,
}

#[repr(C)]
pub struct ibv_pd {
    pub context: Opaque,
    pub handle: u32,
}

#[repr(C)]
pub struct ibv_mr {
    pub context: Opaque,
    pub pd: Opaque,
    pub addr: Opaque,
    pub length: usize,
    pub handle: u32,
    pub lkey: u32,
    pub rkey: u32,
}

#[repr(C)]
pub struct ibv_qp {
    pub context: Opaque,
    pub qp_context: Opaque,
    pub pd: Opaque,
    pub send_cq: Opaque,
    pub recv_cq: Opaque,
    pub srq: Opaque,
    pub handle: u32,
    pub qp_num: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_qp_cap {
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub max_inline_data: u32,
}

#[repr(C)]
pub struct ibv_qp_init_attr {
    pub qp_context: Opaque,
    pub send_cq: Opaque,
    pub recv_cq: Opaque,
    pub srq: Opaque,
    pub cap: ibv_qp_cap,
    pub qp_type: c_int,
    pub sq_sig_all: c_int,
}

/// The header's union also has two numbers of 64 bits, from which it gets its alignment.
#[repr(C, align(8))]
#[derive(Clone, Copy, Default)]
pub struct ibv_gid {
    pub raw: [u8; 16],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_global_route {
    pub dgid: ibv_gid,
    pub flow_label: u32,
    pub sgid_index: u8,
    pub hop_limit: u8,
    pub traffic_class: u8,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_ah_attr {
    pub grh: ibv_global_route,
    pub dlid: u16,
    pub sl: u8,
    pub src_path_bits: u8,
    pub static_rate: u8,
    pub is_global: u8,
    pub port_num: u8,
}

/// An older library does not read the last fields.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_qp_attr {
    pub qp_state: c_int,
    pub cur_qp_state: c_int,
    pub path_mtu: c_int,
    pub path_mig_state: c_int,
    pub qkey: u32,
    pub rq_psn: u32,
    pub sq_psn: u32,
    pub dest_qp_num: u32,
    pub qp_access_flags: c_int,
    pub cap: ibv_qp_cap,
    pub ah_attr: ibv_ah_attr,
    pub alt_ah_attr: ibv_ah_attr,
    pub pkey_index: u16,
    pub alt_pkey_index: u16,
    pub en_sqd_async_notify: u8,
    pub sq_draining: u8,
    pub max_rd_atomic: u8,
    pub max_dest_rd_atomic: u8,
    pub min_rnr_timer: u8,
    pub port_num: u8,
    pub timeout: u8,
    pub retry_cnt: u8,
    pub rnr_retry: u8,
    pub alt_port_num: u8,
    pub alt_timeout: u8,
    pub rate_limit: u32,
}

#[repr(C)]
pub struct ibv_sge {
    pub addr: u64,
    pub length: u32,
    pub lkey: u32,
}

/// The member for RDMA of the header's union, followed by the rest of the union's size.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct rdma {
    pub remote_addr: u64,
    pub rkey: u32,
    pub _aligned: u32,
    pub _atomic: [u64; 2],
}

/// After the unions, the field for memory windows is the largest.
#[repr(C)]
pub struct ibv_send_wr {
    pub wr_id: u64,
    pub next: *mut ibv_send_wr,
    pub sg_list: *mut ibv_sge,
    pub num_sge: c_int,
    pub opcode: c_int,
    pub send_flags: c_uint,
    pub imm_data: u32,
    pub wr: rdma,
    pub qp_type: u64,
    pub bind_mw: [u64; 6],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct ibv_wc {
    pub wr_id: u64,
    pub status: c_int,
    pub opcode: c_int,
    pub vendor_err: u32,
    pub byte_len: u32,
    pub imm_data: u32,
    pub qp_num: u32,
    pub src_qp: u32,
    pub wc_flags: c_uint,
    pub pkey_index: u16,
    pub slid: u16,
    pub sl: u8,
    pub dlid_path_bits: u8,
}

pub type PollCq = unsafe extern "C" fn(Opaque, c_int, *mut ibv_wc) -> c_int;
pub type PostSend = unsafe extern "C" fn(*mut ibv_qp, *mut ibv_send_wr, *mut *mut ibv_send_wr) -> c_int;
pub type QueryDeviceEx = unsafe extern "C" fn(*mut ibv_context, *const c_void, *mut ibv_device_attr_ex, usize) -> c_int;

/// Inline functions of the header call these two functions through pointers in the context. The device's driver has set
/// the pointers.
#[repr(C)]
pub struct ibv_context_ops {
    pub _before_poll_cq: [Opaque; 11],
    pub poll_cq: Option<PollCq>,
    pub _before_post_send: [Opaque; 13],
    pub post_send: Option<PostSend>,
    pub _behind: [Opaque; 6],
}

/// The size of the C library's mutex, which depends on the processor.
const MUTEX: usize = if cfg!(target_arch = "aarch64") { 6 } else { 5 };

#[repr(C)]
pub struct ibv_context {
    pub device: Opaque,
    pub ops: ibv_context_ops,
    pub cmd_fd: c_int,
    pub async_fd: c_int,
    pub num_comp_vectors: c_int,
    pub _mutex: [u64; MUTEX],
    pub abi_compat: u64,
}

/// The beginning of the header's `ibv_odp_caps`, and the rest of its size.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct ibv_odp_caps {
    pub general_caps: u64,
    pub _of_rc: u32,
    pub _of_uc: u32,
    pub _of_ud: u32,
    pub _aligned: u32,
}

/// Libraries before rdma-core 33 write fields behind the size that the caller gives, so there is room for these.
#[repr(C)]
pub struct ibv_device_attr_ex {
    pub _orig_attr: [u64; 29],
    pub comp_mask: u32,
    pub odp_caps: ibv_odp_caps,
    pub _room: [u64; 512],
}

/// New fields come at the beginning, which is left out here. `sz` is the size of the whole.
#[repr(C)]
pub struct verbs_context {
    pub query_device_ex: Option<QueryDeviceEx>,
    pub _between: [Opaque; 11],
    pub sz: usize,
    pub context: ibv_context,
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::mem::offset_of;
    use std::process::Command;

    use super::*;

    /// A compared number: an expression in C, and its value here.
    type Compared = (String, usize);

    /// Lists the offset and the size of fields.
    macro_rules! fields {
        ($found:ident, $kind:literal, $name:ident: $($field:ident)*) => {
            $(
                let place = concat!(stringify!($name), ", ", stringify!($field));
                $found.push((format!("offsetof({} {place})", $kind), offset_of!($name, $field)));
                let member = concat!(stringify!($name), " *)0)->", stringify!($field));
                $found.push((format!("sizeof((({} {member})", $kind), size_of_field(|it: &$name| &raw const it.$field)));
            )*
        };
    }

    macro_rules! numbers {
        ($found:ident: $($name:ident)*) => { $($found.push((stringify!($name).to_owned(), $name as usize));)* };
    }

    fn size_of_field<T, F>(_: impl Fn(&T) -> *const F) -> usize {
        size_of::<F>()
    }

    /// Structures that are larger in a newer library are left out.
    fn sizes(found: &mut Vec<Compared>) {
        for (name, size) in [
            ("struct ibv_mr", size_of::<ibv_mr>()),
            ("struct ibv_qp_cap", size_of::<ibv_qp_cap>()),
            ("struct ibv_qp_init_attr", size_of::<ibv_qp_init_attr>()),
            ("union ibv_gid", size_of::<ibv_gid>()),
            ("struct ibv_global_route", size_of::<ibv_global_route>()),
            ("struct ibv_ah_attr", size_of::<ibv_ah_attr>()),
            ("struct ibv_sge", size_of::<ibv_sge>()),
            ("struct ibv_send_wr", size_of::<ibv_send_wr>()),
            ("struct ibv_wc", size_of::<ibv_wc>()),
            ("struct ibv_context_ops", size_of::<ibv_context_ops>()),
            ("struct ibv_odp_caps", size_of::<ibv_odp_caps>()),
            ("((struct ibv_send_wr *)0)->wr", size_of::<rdma>()),
        ] {
            found.push((format!("sizeof({name})"), size));
        }
    }

    fn all_fields(found: &mut Vec<Compared>) {
        fields!(found, "struct", ibv_port_attr: state max_mtu active_mtu gid_tbl_len port_cap_flags max_msg_sz
            bad_pkey_cntr qkey_viol_cntr pkey_tbl_len lid sm_lid lmc max_vl_num sm_sl subnet_timeout init_type_reply
            active_width active_speed phys_state link_layer flags port_cap_flags2);
        fields!(found, "struct", ibv_pd: context handle);
        fields!(found, "struct", ibv_mr: context pd addr length handle lkey rkey);
        fields!(found, "struct", ibv_qp: context qp_context pd send_cq recv_cq srq handle qp_num);
        fields!(found, "struct", ibv_qp_cap: max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data);
        fields!(found, "struct", ibv_qp_init_attr: qp_context send_cq recv_cq srq cap qp_type sq_sig_all);
        fields!(found, "union", ibv_gid: raw);
        fields!(found, "struct", ibv_global_route: dgid flow_label sgid_index hop_limit traffic_class);
        fields!(found, "struct", ibv_ah_attr: grh dlid sl src_path_bits static_rate is_global port_num);
        fields!(found, "struct", ibv_qp_attr: qp_state cur_qp_state path_mtu path_mig_state qkey rq_psn sq_psn
            dest_qp_num qp_access_flags cap ah_attr alt_ah_attr pkey_index alt_pkey_index en_sqd_async_notify
            sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer port_num timeout retry_cnt rnr_retry
            alt_port_num alt_timeout rate_limit);
        fields!(found, "struct", ibv_sge: addr length lkey);
        fields!(found, "struct", ibv_send_wr: wr_id next sg_list num_sge opcode send_flags imm_data wr);
        fields!(found, "struct", ibv_wc: wr_id status opcode vendor_err byte_len imm_data qp_num src_qp wc_flags
            pkey_index slid sl dlid_path_bits);
        fields!(found, "struct", ibv_context_ops: poll_cq post_send);
        fields!(found, "struct", ibv_context: device ops cmd_fd async_fd num_comp_vectors abi_compat);
        fields!(found, "struct", ibv_odp_caps: general_caps);
        fields!(found, "struct", ibv_device_attr_ex: comp_mask odp_caps);
        // The header has members of these numbers in unions behind the member for RDMA.
        let place = |field| format!("offsetof(struct ibv_send_wr, {field})");
        found.push((place("wr.rdma.remote_addr"), offset_of!(ibv_send_wr, wr) + offset_of!(rdma, remote_addr)));
        found.push((place("wr.rdma.rkey"), offset_of!(ibv_send_wr, wr) + offset_of!(rdma, rkey)));
        found.push((place("qp_type"), offset_of!(ibv_send_wr, qp_type)));
        found.push((place("bind_mw"), offset_of!(ibv_send_wr, bind_mw)));
        // The fields before a context have fixed distances from it.
        let to_end =
            |field| format!("offsetof(struct verbs_context, context) - offsetof(struct verbs_context, {field})");
        let context = offset_of!(verbs_context, context);
        found.push((to_end("query_device_ex"), context - offset_of!(verbs_context, query_device_ex)));
        found.push((to_end("sz"), context - offset_of!(verbs_context, sz)));
    }

    fn all_numbers(found: &mut Vec<Compared>) {
        numbers!(found: IBV_ACCESS_LOCAL_WRITE IBV_ACCESS_REMOTE_WRITE IBV_ACCESS_REMOTE_READ IBV_QPT_RC IBV_QPS_INIT
            IBV_QPS_RTR IBV_QPS_RTS IBV_QP_STATE IBV_QP_ACCESS_FLAGS IBV_QP_PKEY_INDEX IBV_QP_PORT IBV_QP_AV
            IBV_QP_PATH_MTU IBV_QP_TIMEOUT IBV_QP_RETRY_CNT IBV_QP_RNR_RETRY IBV_QP_RQ_PSN IBV_QP_MAX_QP_RD_ATOMIC
            IBV_QP_MIN_RNR_TIMER IBV_QP_SQ_PSN IBV_QP_MAX_DEST_RD_ATOMIC IBV_QP_DEST_QPN IBV_WR_RDMA_WRITE
            IBV_WR_RDMA_READ IBV_SEND_SIGNALED IBV_QPF_GRH_REQUIRED IBV_ODP_SUPPORT);
        found.push(("__VERBS_ABI_IS_EXTENDED".to_owned(), usize::MAX));
        found.extend(IBV_WC.iter().enumerate().map(|(number, name)| (format!("IBV_WC_{name}"), number)));
    }

    /// Compiles and runs a program in C that prints the numbers, offsets and sizes of the header.
    #[test]
    fn the_header_has_this_layout() {
        let mut expected = Vec::new();
        sizes(&mut expected);
        all_fields(&mut expected);
        all_numbers(&mut expected);
        let mut source =
            "#include <stddef.h>\n#include <stdio.h>\n#include <infiniband/verbs.h>\nint main(void) {\n".to_owned();
        for (text, _) in &expected {
            writeln!(source, "printf(\"%zu\\n\", (size_t)({text}));").unwrap();
        }
        source.push_str("}\n");
        let place = std::env::temp_dir().join(format!("nvpm-layout-{}", std::process::id()));
        std::fs::create_dir(&place).unwrap();
        std::fs::write(place.join("layout.c"), source).unwrap();
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let compiled = Command::new(compiler).args(["-o", "layout", "layout.c"]).current_dir(&place).status().unwrap();
        assert!(
            compiled.success(),
            "a C compiler and <infiniband/verbs.h> are needed: apt-get install gcc libibverbs-dev"
        );
        let printed = Command::new(place.join("layout")).output().unwrap().stdout;
        std::fs::remove_dir_all(&place).unwrap();
        let found: Vec<usize> = String::from_utf8(printed).unwrap().lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(found.len(), expected.len());
        assert!(found.len() > 200);
        for ((text, ours), theirs) in expected.iter().zip(found) {
            assert_eq!(*ours, theirs, "{text}");
        }
    }
}
