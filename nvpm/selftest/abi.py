# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Declares the structures and numbers of <infiniband/verbs.h> that the selftest uses, under the
same names. They have not changed since libibverbs 1.1. tests/nvpm/test_layout.py compares them with
the header."""

import ctypes
import os
from ctypes import POINTER, c_int, c_void_p
from typing import Any, Dict, List, Tuple

IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ = 1, 2, 4
IBV_QPT_RC = 2
IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS = 1, 2, 3
IBV_QP_STATE = 1 << 0
IBV_QP_ACCESS_FLAGS = 1 << 3
IBV_QP_PKEY_INDEX = 1 << 4
IBV_QP_PORT = 1 << 5
IBV_QP_AV = 1 << 7
IBV_QP_PATH_MTU = 1 << 8
IBV_QP_TIMEOUT = 1 << 9
IBV_QP_RETRY_CNT = 1 << 10
IBV_QP_RNR_RETRY = 1 << 11
IBV_QP_RQ_PSN = 1 << 12
IBV_QP_MAX_QP_RD_ATOMIC = 1 << 13
IBV_QP_MIN_RNR_TIMER = 1 << 15
IBV_QP_SQ_PSN = 1 << 16
IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 17
IBV_QP_DEST_QPN = 1 << 20
IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ = 0, 4
IBV_SEND_SIGNALED = 2
IBV_QPF_GRH_REQUIRED = 1

# The names of the statuses of completions, in the order of their numbers, from 0.
IBV_WC = [
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
]

TYPES: Dict[str, Any] = {
    "u8": ctypes.c_uint8,
    "u16": ctypes.c_uint16,
    "u32": ctypes.c_uint32,
    "u64": ctypes.c_uint64,
    "int": c_int,
    "unsigned": ctypes.c_uint,
    "size": ctypes.c_size_t,
    "pointer": c_void_p,
}


def structure(name: str, text: str, base: Any = ctypes.Structure) -> Any:
    """Returns a new structure, and adds it to TYPES. TEXT lists the fields as in C: `TYPE
    NAME...;`, with [N] after the name of an array. Fields whose names begin with _ are not used."""
    fields: List[Tuple[str, Any]] = []
    for kind, *names in (part.split() for part in text.split(";")):
        for field, _, number in (one.rstrip("]").partition("[") for one in names):
            fields.append((field, TYPES[kind] * int(number) if number else TYPES[kind]))
    TYPES[name] = type(name, (base,), {"_fields_": fields})
    TYPES[f"{name}*"] = POINTER(TYPES[name])
    return TYPES[name]


# An older library does not fill in the last fields.
ibv_port_attr = structure(
    "ibv_port_attr",
    """int state max_mtu active_mtu gid_tbl_len;
    u32 port_cap_flags max_msg_sz bad_pkey_cntr qkey_viol_cntr;
    u16 pkey_tbl_len lid sm_lid;
    u8 lmc max_vl_num sm_sl subnet_timeout init_type_reply active_width active_speed;
    u8 phys_state link_layer flags;
    u16 port_cap_flags2; u32 active_speed_ex""",
)
ibv_pd = structure("ibv_pd", "pointer context; u32 handle")
ibv_mr = structure("ibv_mr", "pointer context pd addr; size length; u32 handle lkey rkey")
ibv_qp = structure("ibv_qp", "pointer context qp_context pd send_cq recv_cq srq; u32 handle qp_num")
ibv_qp_cap = structure(
    "ibv_qp_cap", "u32 max_send_wr max_recv_wr max_send_sge max_recv_sge max_inline_data"
)
ibv_qp_init_attr = structure(
    "ibv_qp_init_attr",
    "pointer qp_context send_cq recv_cq srq; ibv_qp_cap cap; int qp_type sq_sig_all",
)
ibv_gid = structure("ibv_gid", "u8 raw[16]; u64 _aligned", ctypes.Union)
ibv_global_route = structure(
    "ibv_global_route", "ibv_gid dgid; u32 flow_label; u8 sgid_index hop_limit traffic_class"
)
ibv_ah_attr = structure(
    "ibv_ah_attr",
    "ibv_global_route grh; u16 dlid; u8 sl src_path_bits static_rate is_global port_num",
)
# An older library does not read the last fields.
ibv_qp_attr = structure(
    "ibv_qp_attr",
    """int qp_state cur_qp_state path_mtu path_mig_state;
    u32 qkey rq_psn sq_psn dest_qp_num;
    unsigned qp_access_flags; ibv_qp_cap cap;
    ibv_ah_attr ah_attr alt_ah_attr;
    u16 pkey_index alt_pkey_index;
    u8 en_sqd_async_notify sq_draining max_rd_atomic max_dest_rd_atomic min_rnr_timer;
    u8 port_num timeout retry_cnt rnr_retry alt_port_num alt_timeout;
    u32 rate_limit""",
)
ibv_sge = structure("ibv_sge", "u64 addr; u32 length lkey")
_rdma = structure("rdma", "u64 remote_addr; u32 rkey")
# The unused fields give the structures their right sizes. The member for atomic operations is the
# largest of this union. After the union, the field for memory windows is the largest.
_wr = structure("wr", "rdma rdma; u64 _atomic[4]", ctypes.Union)
ibv_send_wr = structure(
    "ibv_send_wr",
    """u64 wr_id; pointer next; ibv_sge* sg_list; int num_sge opcode;
    unsigned send_flags; u32 imm_data; wr wr; u64 qp_type;
    u64 bind_mw[6]""",
)
ibv_wc = structure(
    "ibv_wc",
    """u64 wr_id; int status opcode; u32 vendor_err byte_len imm_data qp_num src_qp;
    unsigned wc_flags; u16 pkey_index slid;
    u8 sl dlid_path_bits""",
)
# Inline functions of the header call these two functions through pointers in the context. The
# device's driver has set the pointers.
poll_cq = TYPES["poll_cq"] = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, TYPES["ibv_wc*"])
post_send = TYPES["post_send"] = ctypes.CFUNCTYPE(
    c_int, c_void_p, TYPES["ibv_send_wr*"], POINTER(c_void_p)
)
ibv_context_ops = structure(
    "ibv_context_ops",
    "pointer _before_poll_cq[11]; poll_cq poll_cq; pointer _before_post_send[13]; "
    "post_send post_send; pointer _behind[6]",
)
# The mutex is that of the C library, whose size depends on the processor.
_mutex = structure("mutex", f"u64 _all[{6 if os.uname().machine == 'aarch64' else 5}]")
ibv_context = structure(
    "ibv_context",
    """pointer device; ibv_context_ops ops; int cmd_fd async_fd num_comp_vectors;
    mutex _mutex; u64 abi_compat""",
)
# A context with this value in `abi_compat` is the end of a verbs_context.
EXTENDED = (1 << 64) - 1
IBV_ODP_SUPPORT = 1
ibv_odp_caps = structure("ibv_odp_caps", "u64 general_caps; u32 _of_rc _of_uc _of_ud _aligned")
# Libraries before rdma-core 33 write fields behind the size that the caller gives, so there is room
# for these.
ibv_device_attr_ex = structure(
    "ibv_device_attr_ex", "u64 _orig_attr[29]; u32 comp_mask; ibv_odp_caps odp_caps; u64 _room[512]"
)
query_device_ex = TYPES["query_device_ex"] = ctypes.CFUNCTYPE(
    c_int, c_void_p, c_void_p, TYPES["ibv_device_attr_ex*"], ctypes.c_size_t
)
# New fields come at the beginning, which is left out here. `sz` is the size of the whole.
verbs_context = structure(
    "verbs_context",
    "query_device_ex query_device_ex; pointer _between[11]; size sz; ibv_context context",
)
