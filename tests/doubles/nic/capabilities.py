# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The firmware's commands that answer a question: abilities of the device, its port, counters."""

from collections.abc import Callable

import wire
from card import Card
from layout import C, View, byte_of, size

Handler = Callable[[Card, View, View], None]

HANDLERS: dict[str, Handler] = {}

# The vendor, as the registry of unique numbers knows it.
MELLANOX = 0x0002C9

# The numbers for an active port of InfiniBand with a link.
ACTIVE, LINK_UP, INIT_PORT_POLICY = 4, 5, 2

# What InfiniBand says of a port, in bits: automatic migration, events of ports, and the like.
PORT_ABILITIES = 0x02514848

# A link of 4 lanes, each at 50 Gbit/s, and the lanes and speeds that the port could have.
LANES_4, LANES_ANY, HDR, SPEEDS_ANY = 4, 0x1F, 0x40, 0x7F

GENERAL = {
    "log_max_srq_sz": 15, "log_max_qp_sz": 15, "log_max_qp": 17, "log_max_srq": 16,
    "log_max_cq_sz": 22, "log_max_cq": 17, "log_max_eq_sz": 16, "log_max_eq": 6,
    "log_max_mkey": 20, "log_max_klm_list_size": 16, "log_max_pd": 16, "log_max_xrcd": 16,
    "log_max_mcg": 10, "log_max_transport_domain": 10, "log_max_msg": 30,
    "log_max_ra_req_qp": 4, "log_max_ra_res_qp": 4, "log_max_ra_req_dc": 4,
    "log_max_ra_res_dc": 4, "max_wqe_sz_sq": 1024,
    "max_wqe_sz_rq": 512, "max_qp_mcg": 240, "log_pg_sz": 12, "log_bf_reg_size": 9, "bf": 1,
    "uar_4k": 1, "num_of_uars_per_page": 1, "num_ports": 1, "port_type": 0, "ib_virt": 1,
    "vhca_id": 1, "cqe_version": 1, "fixed_buffer_size": 1, "atomic": 1, "null_mkey": 1,
    "cq_moderation": 1, "cq_resize": 1, "umr_extended_translation_offset": 1, "imaicl": 1,
    "rc": 1, "uc": 1, "ud": 1, "xrc": 1, "stat_rate_support": 0xFF, "local_ca_ack_delay": 16,
    "max_qp_cnt": 10, "repeated_block_disabled": 1, "block_lb_mc": 1, "drain_sigerr": 1,
    "vport_counters": 1, "device_frequency_khz": 1000000,
    "log_max_umem": 16, "log_max_uctx": 8,
}  # fmt: skip

ATOMIC = {
    "supported_atomic_req_8B_endianness_mode_1": 1,
    "atomic_req_8B_endianness_mode": 1,
    # Compare and swap, and fetch and add.
    "atomic_operations": 3,
    "atomic_size_qp": 8,
    "atomic_size_dc": 8,
}


def question(name: str) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        HANDLERS[name] = handler
        return handler

    return add


@question("QUERY_ISSI")
def query_issi(device: Card, given: View, out: View) -> None:
    """Answers that the interfaces 0 and 1 of the firmware are known. Each interface has a bit, and
    the last bit is that of interface 0."""
    del device, given
    assert isinstance(out.data, bytearray)
    last = size("query_issi_out")
    out.data[last - 1] = 2


@question("QUERY_HCA_CAP")
def query_hca_cap(device: Card, given: View, out: View) -> None:
    # If the lowest bit is set, the command asks for the present abilities, and otherwise for the
    # greatest possible abilities.
    kind = given["op_mod"] >> 1
    if kind == C.CAP_GENERAL:
        out.part("capability", "cmd_hca_cap").update(**GENERAL, pg=int(device.odp))
    elif kind == C.CAP_ODP and device.odp:
        # TODO[ODPF]: the device says yes to paging on demand, and never has a page fault.
        abilities = out.part("capability", "odp_cap")
        for scheme in ("transport_page_fault_scheme_cap", "memory_page_fault_scheme_cap"):
            for transport in ("rc", "ud", "xrc"):
                for act in ("send", "receive", "write", "read", "atomic", "srq_receive"):
                    abilities[f"{scheme}.{transport}_odp_caps.{act}"] = 1
    elif kind == C.CAP_ATOMIC:
        out.part("capability", "atomic_caps").update(**ATOMIC)


@question("QUERY_ADAPTER")
def query_adapter(device: Card, given: View, out: View) -> None:
    del device, given
    assert isinstance(out.data, bytearray)
    begin = byte_of("query_adapter_out", "query_adapter_struct.vsd_contd_psid")
    out.data[begin : begin + 16] = b"LAB0000000001".ljust(16, b"\0")
    out["query_adapter_struct.ieee_vendor_id"] = MELLANOX


@question("QUERY_SPECIAL_CONTEXTS")
def query_special_contexts(device: Card, given: View, out: View) -> None:
    del device, given
    out.update(dump_fill_mkey=0x500, null_mkey=0x600, resd_lkey=0x700)


# ---- the port -----------------------------------------------------------------------------------


@question("QUERY_HCA_VPORT_CONTEXT")
def query_hca_vport_context(device: Card, given: View, out: View) -> None:
    del given
    out.part("hca_vport_context", "hca_vport_context").update(
        cap_mask1=PORT_ABILITIES,
        vport_state=ACTIVE,
        port_physical_state=LINK_UP,
        vport_state_policy=INIT_PORT_POLICY,
        port_guid=wire.guid_of(device.lid),
        node_guid=wire.guid_of(device.lid) & ~0xFF | 0x80 | device.lid,
        system_image_guid=wire.guid_of(device.lid) & ~0xFF | 0x80 | device.lid,
        lid=device.lid,
        sm_lid=1,
        subnet_timeout=18,
    )


@question("QUERY_HCA_VPORT_GID")
def query_hca_vport_gid(device: Card, given: View, out: View) -> None:
    del given
    out["gids_num"] = 1
    begin = size("query_hca_vport_gid_out")
    gid = wire.PREFIX << 64 | wire.guid_of(device.lid)
    assert isinstance(out.data, bytearray)
    out.data[begin : begin + 16] = gid.to_bytes(16)


@question("QUERY_HCA_VPORT_PKEY")
def query_hca_vport_pkey(device: Card, given: View, out: View) -> None:
    """Answers with the default partition, as a full member."""
    del device, given
    assert isinstance(out.data, bytearray)
    begin = byte_of("query_hca_vport_pkey_out", "pkey")
    out.data[begin : begin + 4] = (0xFFFF).to_bytes(4)


@question("QUERY_VPORT_STATE")
def query_vport_state(device: Card, given: View, out: View) -> None:
    del device, given
    out.update(state=1, admin_state=1)


@question("ACCESS_REG")
def access_reg(device: Card, given: View, out: View) -> None:
    """Answers with the contents of a register of the port: its speed, packet size and lanes."""
    del device
    begin = byte_of("access_register_out", "register_data")
    assert isinstance(out.data, bytearray)
    length = len(given.data) - begin
    out.data[begin : begin + length] = given.data[begin:]
    register = given_register(given)
    if register == C.REG_PTYS:
        View("ptys_reg", out.data, begin).update(
            ib_link_width_oper=LANES_4,
            ib_link_width_capability=LANES_ANY,
            ib_proto_oper=HDR,
            ib_proto_capability=SPEEDS_ANY,
        )
    elif register == C.REG_PMTU:
        View("pmtu_reg", out.data, begin).update(max_mtu=4096, admin_mtu=4096, oper_mtu=4096)
    elif register == C.REG_PVLC:
        View("pvlc_reg", out.data, begin)["vl_hw_cap"] = 4


def given_register(given: View) -> int:
    return View("access_register_in", given.data)["register_id"]


# ---- counters ------------------------------------------------------------------------------------


@question("QUERY_VPORT_COUNTER")
def query_vport_counter(device: Card, given: View, out: View) -> None:
    del given
    for way in ("received", "transmitted"):
        out[f"{way}_ib_unicast.packets"] = device.counts[f"{way}_packets"]
        out[f"{way}_ib_unicast.octets"] = device.counts[f"{way}_bytes"]


Q_COUNTERS = (
    "rx_write_requests", "rx_read_requests", "rx_atomic_requests", "out_of_buffer",
    "local_ack_timeout_err", "rnr_nak_retry_err", "req_local_protection", "req_cqe_error",
    "req_remote_access_errors", "resp_remote_access_errors", "req_remote_invalid_request",
    "req_cqe_flush_error", "resp_cqe_flush_error", "req_transport_retries_exceeded",
)  # fmt: skip


@question("QUERY_Q_COUNTER")
def query_q_counter(device: Card, given: View, out: View) -> None:
    del given
    for name in Q_COUNTERS:
        out[name] = device.counts[name]
