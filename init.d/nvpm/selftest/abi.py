# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What of <infiniband/verbs.h> is used, with the names that it has there: structures
and numbers that have been the same since libibverbs 1.1. tests/selftest compares them
with the header."""
import ctypes
from ctypes import POINTER, c_int, c_size_t, c_uint, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_ACCESS_REMOTE_READ = 1, 2, 4
IBV_QPT_RC = 2
IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS = 1, 2, 3
IBV_QP_STATE, IBV_QP_ACCESS_FLAGS, IBV_QP_PKEY_INDEX, IBV_QP_PORT = 1 << 0, 1 << 3, 1 << 4, 1 << 5
IBV_QP_AV, IBV_QP_PATH_MTU, IBV_QP_TIMEOUT, IBV_QP_RETRY_CNT = 1 << 7, 1 << 8, 1 << 9, 1 << 10
IBV_QP_RNR_RETRY, IBV_QP_RQ_PSN, IBV_QP_MAX_QP_RD_ATOMIC = 1 << 11, 1 << 12, 1 << 13
IBV_QP_MIN_RNR_TIMER, IBV_QP_SQ_PSN, IBV_QP_MAX_DEST_RD_ATOMIC = 1 << 15, 1 << 16, 1 << 17
IBV_QP_DEST_QPN = 1 << 20
IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ = 0, 4
IBV_SEND_SIGNALED = 2
IBV_QPF_GRH_REQUIRED = 1

# How a completion ends; numbered in this order.
IBV_WC = """SUCCESS LOC_LEN_ERR LOC_QP_OP_ERR LOC_EEC_OP_ERR LOC_PROT_ERR WR_FLUSH_ERR MW_BIND_ERR
    BAD_RESP_ERR LOC_ACCESS_ERR REM_INV_REQ_ERR REM_ACCESS_ERR REM_OP_ERR RETRY_EXC_ERR
    RNR_RETRY_EXC_ERR LOC_RDD_VIOL_ERR REM_INV_RD_REQ_ERR REM_ABORT_ERR INV_EECN_ERR
    INV_EEC_STATE_ERR FATAL_ERR RESP_TIMEOUT_ERR GENERAL_ERR""".split()


class ibv_port_attr(ctypes.Structure):
    _fields_ = (
        [(name, c_int) for name in ("state", "max_mtu", "active_mtu", "gid_tbl_len")]
        + [(name, c_uint32) for name in ("port_cap_flags", "max_msg_sz", "bad_pkey_cntr", "qkey_viol_cntr")]
        + [(name, c_uint16) for name in ("pkey_tbl_len", "lid", "sm_lid")]
        + [(name, c_uint8) for name in ("lmc", "max_vl_num", "sm_sl", "subnet_timeout", "init_type_reply",
                                        "active_width", "active_speed", "phys_state", "link_layer", "flags")]
        # What an older library does not fill in.
        + [("port_cap_flags2", c_uint16), ("active_speed_ex", c_uint32)])


class ibv_pd(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("handle", c_uint32)]


class ibv_mr(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("pd", c_void_p), ("addr", c_void_p), ("length", c_size_t),
                ("handle", c_uint32), ("lkey", c_uint32), ("rkey", c_uint32)]


class ibv_qp_cap(ctypes.Structure):
    _fields_ = [(name, c_uint32) for name in
                ("max_send_wr", "max_recv_wr", "max_send_sge", "max_recv_sge", "max_inline_data")]


class ibv_qp_init_attr(ctypes.Structure):
    _fields_ = [("qp_context", c_void_p), ("send_cq", c_void_p), ("recv_cq", c_void_p), ("srq", c_void_p),
                ("cap", ibv_qp_cap), ("qp_type", c_int), ("sq_sig_all", c_int)]


class ibv_gid(ctypes.Union):
    _fields_ = [("raw", c_uint8 * 16), ("_aligned", c_uint64)]


class ibv_global_route(ctypes.Structure):
    _fields_ = [("dgid", ibv_gid), ("flow_label", c_uint32), ("sgid_index", c_uint8), ("hop_limit", c_uint8),
                ("traffic_class", c_uint8)]


class ibv_ah_attr(ctypes.Structure):
    _fields_ = [("grh", ibv_global_route), ("dlid", c_uint16)] + [
        (name, c_uint8) for name in ("sl", "src_path_bits", "static_rate", "is_global", "port_num")]


class ibv_qp_attr(ctypes.Structure):
    _fields_ = (
        [(name, c_int) for name in ("qp_state", "cur_qp_state", "path_mtu", "path_mig_state")]
        + [(name, c_uint32) for name in ("qkey", "rq_psn", "sq_psn", "dest_qp_num")]
        + [("qp_access_flags", c_uint), ("cap", ibv_qp_cap), ("ah_attr", ibv_ah_attr), ("alt_ah_attr", ibv_ah_attr),
           ("pkey_index", c_uint16), ("alt_pkey_index", c_uint16)]
        + [(name, c_uint8) for name in ("en_sqd_async_notify", "sq_draining", "max_rd_atomic", "max_dest_rd_atomic",
                                        "min_rnr_timer", "port_num", "timeout", "retry_cnt", "rnr_retry",
                                        "alt_port_num", "alt_timeout")]
        # What an older library does not look at.
        + [("rate_limit", c_uint32)])


class ibv_sge(ctypes.Structure):
    _fields_ = [("addr", c_uint64), ("length", c_uint32), ("lkey", c_uint32)]


class ibv_send_wr(ctypes.Structure):
    class wr(ctypes.Union):
        class rdma(ctypes.Structure):
            _fields_ = [("remote_addr", c_uint64), ("rkey", c_uint32)]

        # The largest of them is of atomic operations.
        _fields_ = [("rdma", rdma), ("_atomic", c_uint64 * 4)]

    _fields_ = [("wr_id", c_uint64), ("next", c_void_p), ("sg_list", POINTER(ibv_sge)), ("num_sge", c_int),
                ("opcode", c_int), ("send_flags", c_uint), ("imm_data", c_uint32), ("wr", wr),
                # For kinds of requests that are not used.
                ("qp_type", c_uint64), ("bind_mw", c_uint64 * 6)]


class ibv_wc(ctypes.Structure):
    _fields_ = [("wr_id", c_uint64), ("status", c_int), ("opcode", c_int), ("vendor_err", c_uint32),
                ("byte_len", c_uint32), ("imm_data", c_uint32), ("qp_num", c_uint32), ("src_qp", c_uint32),
                ("wc_flags", c_uint), ("pkey_index", c_uint16), ("slid", c_uint16), ("sl", c_uint8),
                ("dlid_path_bits", c_uint8)]


class ibv_qp(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("qp_context", c_void_p), ("pd", c_void_p), ("send_cq", c_void_p),
                ("recv_cq", c_void_p), ("srq", c_void_p), ("handle", c_uint32), ("qp_num", c_uint32)]


# These two are inline functions of the header, which call what the device's driver has
# left in the context.
poll_cq = ctypes.CFUNCTYPE(c_int, c_void_p, c_int, POINTER(ibv_wc))
post_send = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(ibv_send_wr), POINTER(c_void_p))


class ibv_context_ops(ctypes.Structure):
    _fields_ = [("_before_poll_cq", c_void_p * 11), ("poll_cq", poll_cq), ("_before_post_send", c_void_p * 13),
                ("post_send", post_send), ("_behind", c_void_p * 6)]


class ibv_context(ctypes.Structure):
    _fields_ = [("device", c_void_p), ("ops", ibv_context_ops), ("cmd_fd", c_int)]
