# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The firmware's commands that make, change and end objects. Commands that only answer a question
are in capabilities.py."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import capabilities
import keys
import requests
from layout import C, View, byte_of, place
from queues import Buffer, CompletionQueue, EventQueue, QueuePair, ReceiveQueue, SharedQueue

import completions

if TYPE_CHECKING:
    from device import Device

Handler = Callable[["Device", View, View], None]

HANDLERS: dict[str, Handler] = dict(capabilities.HANDLERS)

# Commands that succeed, and change nothing that this device emulates.
SILENT = {
    "ENABLE_HCA", "DISABLE_HCA", "INIT_HCA", "SET_HCA_CAP", "SET_ISSI", "SET_DRIVER_VERSION",
    "QUERY_PAGES", "MANAGE_PAGES", "MODIFY_HCA_VPORT_CONTEXT", "MODIFY_NIC_VPORT_CONTEXT",
    "PAGE_FAULT_RESUME", "ATTACH_TO_MCG", "DETACH_FROM_MCG", "QUERY_LAG",
}  # fmt: skip

# Objects that a driver makes and ends, and that have no behaviour here: the kind, and the field
# with the number in the answer.
PLAIN = {
    "PD": "pd",
    "XRCD": "xrcd",
    "TRANSPORT_DOMAIN": "transport_domain",
    "Q_COUNTER": "counter_set_id",
}


class Refused(Exception):
    """A command cannot be carried out. STATUS is for the driver."""

    def __init__(self, status: int) -> None:
        self.status = status


def command(name: str) -> Callable[[Handler], Handler]:
    def add(handler: Handler) -> Handler:
        HANDLERS[name] = handler
        return handler

    return add


def run(device: "Device", name: str, given: bytes, out: View) -> None:
    """Carries out the command NAME, and fills its output."""
    device.counts[f"command_{name}"] += 1
    if name in SILENT:
        return
    verb, _, kind = name.partition("_")
    if kind in PLAIN and verb in ("ALLOC", "DEALLOC"):
        plain(device, verb, kind, given, out)
    elif handler := HANDLERS.get(name):
        handler(device, View(f"{name.lower()}_in", given), out)
    else:
        raise Refused(C.CMD_STAT_BAD_OP_ERR)


def plain(device: "Device", verb: str, kind: str, given: bytes, out: View) -> None:
    """Makes or ends an object without a behaviour."""
    field = PLAIN[kind]
    if verb == "ALLOC":
        number = next(device.numbers)
        if kind == "Q_COUNTER":
            number &= 0xFF
        device.others.add((kind, number))
        out[field] = number
    else:
        number = View(f"{verb}_{kind}_in".lower(), given)[field]
        device.others.discard((kind, number))


@command("TEARDOWN_HCA")
def teardown(device: "Device", given: View, out: View) -> None:
    """Ends the driver's use of the device. Every object must be gone by then."""
    del given, out
    left = {
        "key": [key for key in device.keys.by_index if key != keys.RESERVED],
        "queue pair": list(device.queue_pairs),
        "completion queue": list(device.completion_queues),
        "shared receive queue": list(device.shared_queues),
        "memory of a user": list(device.memories),
    }
    for kind, numbers in left.items():
        if numbers:
            text = f"{len(numbers)} {kind}, the first {numbers[0]:#x}"
            device.witness.violation("left_at_unload", text)
    device.forget()


# ---- doorbells and events ------------------------------------------------------------------


@command("ALLOC_UAR")
def alloc_uar(device: "Device", given: View, out: View) -> None:
    del given
    out["uar"] = number = next(device.uars)
    device.others.add(("UAR", number))


@command("DEALLOC_UAR")
def dealloc_uar(device: "Device", given: View, out: View) -> None:
    del out
    device.others.discard(("UAR", given["uar"]))


@command("CREATE_EQ")
def create_eq(device: "Device", given: View, out: View) -> None:
    context = given.part("eq_context_entry", "eqc")
    number = out["eq_number"] = next(device.numbers)
    device.event_queues[number] = EventQueue(
        number,
        buffer_of(device, given, context["log_page_size"] + 12, context["page_offset"]),
        context["log_eq_size"],
        context["intr"],
        given["event_bitmask[0]"],
    )


@command("DESTROY_EQ")
def destroy_eq(device: "Device", given: View, out: View) -> None:
    del out
    device.event_queues.pop(given["eq_number"], None)


# ---- memory of queues ---------------------------------------------------------------------------


def buffer_of(device: "Device", given: View, shift: int, page_offset: int) -> Buffer:
    """Returns the buffer whose pages stand at the end of a command's input. PAGE_OFFSET counts
    sixty-fourths of a page."""
    pages = pages_at(given, byte_of(given.name, "pas"))
    return Buffer(device.memory, pages, shift, page_offset << (shift - 6))


def pages_at(given: View, begin: int) -> list[int]:
    """Returns the bus addresses at the end of an input. Their lowest bits are rights."""
    words = range(begin, len(given.data) - 7, 8)
    return [int.from_bytes(given.data[at : at + 8]) & ~0xFFF for at in words]


def in_memory(device: "Device", number: int, offset: int) -> Buffer:
    """Returns the buffer that lies in the registered memory NUMBER of a user (DevX)."""
    if not (memory := device.memories.get(number)):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    return Buffer(device.memory, memory.pages, memory.shift, memory.offset + offset)


def unnamed(view: View, path: str, skip: int, width: int) -> int:
    """Returns WIDTH bits, SKIP bits after the beginning of a field for which the kernel's header
    has no name, because only programs use the field."""
    begin = view.base * 8 + place(view.name, path)[0] + skip
    return int.from_bytes(view.data[begin // 8 : (begin + width) // 8])


def doorbell_of(device: "Device", context: View, umem: int) -> int:
    """Returns the bus address of a queue's doorbell record, which may lie in a user's memory."""
    address = context["dbr_addr"]
    return in_memory(device, umem, address).address(0) if context["dbr_umem_valid"] else address


@command("CREATE_UCTX")
def create_uctx(device: "Device", given: View, out: View) -> None:
    del given
    number = out["uid"] = next(device.numbers) & 0xFFFF
    device.others.add(("UCTX", number))


@command("DESTROY_UCTX")
def destroy_uctx(device: "Device", given: View, out: View) -> None:
    del out
    device.others.discard(("UCTX", given["uid"]))


@command("CREATE_UMEM")
def create_umem(device: "Device", given: View, out: View) -> None:
    """Registers memory of a user for queues. The memory is watched as that of a key is."""
    umem = given.part("umem", "umem")
    number = out["umem_id"] = next(device.numbers)
    pages = pages_at(given, byte_of("create_umem_in", "umem") + byte_of("umem", "mtt"))
    shift = umem["log_page_size"] + 12
    device.memories[number] = Buffer(device.memory, pages, shift, umem["page_offset"])
    watched = keys.Key(
        number,
        mode=C.MKC_ACCESS_MODE_MTT,
        length=len(pages) << shift,
        page_shift=shift,
        pages=[page | C.EN_RD | C.EN_WR for page in pages],
    )
    device.user_memories[number] = watched
    device.filled(watched)


@command("DESTROY_UMEM")
def destroy_umem(device: "Device", given: View, out: View) -> None:
    del out
    device.memories.pop(given["umem_id"], None)
    device.user_memories.pop(given["umem_id"], None)


# ---- memory keys -------------------------------------------------------------------------------


@command("CREATE_MKEY")
def create_mkey(device: "Device", given: View, out: View) -> None:
    number = out["mkey_index"] = next(device.numbers)
    key = keys.created(number, given)
    if given["mkey_umem_valid"]:
        key.pages = pages_in_memory(device, key, given)
    device.keys.by_index[number] = key
    device.filled(key)


def pages_in_memory(device: "Device", key: keys.Key, given: View) -> list[int]:
    """Returns the entries of a key of registered memory of a user (DevX), which begins at an offset
    in that memory."""
    offset = unnamed(given, "reserved_at_320", 32, 64)
    buffer = in_memory(device, unnamed(given, "reserved_at_320", 0, 32), offset)
    page = 1 << key.page_shift
    before = key.start % page
    if key.page_shift > buffer.shift or offset < before:
        raise Refused(C.CMD_STAT_BAD_PARAM_ERR)
    places = range(-before, key.length, page)
    return [buffer.address(place) | C.EN_RD | C.EN_WR for place in places]


@command("DESTROY_MKEY")
def destroy_mkey(device: "Device", given: View, out: View) -> None:
    del out
    if not device.keys.by_index.pop(given["mkey_index"], None):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)


@command("QUERY_MKEY")
def query_mkey(device: "Device", given: View, out: View) -> None:
    if not (key := device.keys.by_index.get(given["mkey_index"])):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    context = out.part("memory_key_mkey_entry", "mkc")
    context.update(free=int(key.free), mkey_7_0=key.tag, pd=key.domain, start_addr=key.start)
    context["len"] = key.length


# ---- completion queues ---------------------------------------------------------------------------


def buffer_of_cq(device: "Device", given: View) -> tuple[Buffer, int, int]:
    """Returns the buffer of a completion queue, the logarithm of its size, and the size of its
    entries."""
    context = given.part("cq_context", "cqc")
    if given["cq_umem_valid"]:
        offset = unnamed(given, "reserved_at_280", 0, 64)
        buffer = in_memory(device, unnamed(given, "reserved_at_280", 64, 32), offset)
    else:
        buffer = buffer_of(device, given, context["log_page_size"] + 12, context["page_offset"])
    return buffer, context["log_cq_size"], 128 if context["cqe_sz"] == 1 else 64


@command("CREATE_CQ")
def create_cq(device: "Device", given: View, out: View) -> None:
    context = given.part("cq_context", "cqc")
    number = out["cqn"] = next(device.numbers)
    doorbell = doorbell_of(device, context, unnamed(context, "reserved_at_20", 0, 32))
    device.completion_queues[number] = CompletionQueue(
        number, *buffer_of_cq(device, given), context["c_eqn_or_apu_element"], doorbell
    )


@command("MODIFY_CQ")
def modify_cq(device: "Device", given: View, out: View) -> None:
    """Changes a completion queue. Only a new size has an effect here."""
    del out
    if not (cq := device.completion_queues.get(given["cqn"])):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    if given["op_mod"] == RESIZE:
        cq.resize(*buffer_of_cq(device, given))


# The modifier of MODIFY_CQ for a new size.
RESIZE = 1


@command("DESTROY_CQ")
def destroy_cq(device: "Device", given: View, out: View) -> None:
    del out
    if not device.completion_queues.pop(given["cqn"], None):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)


@command("QUERY_CQ")
def query_cq(device: "Device", given: View, out: View) -> None:
    if not (cq := device.completion_queues.get(given["cqn"])):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    context = out.part("cq_context", "cqc")
    context.update(log_cq_size=cq.log_size, producer_counter=cq.produced)


# ---- shared receive queues -------------------------------------------------------------------


@command("CREATE_RMP")
def create_rmp(device: "Device", given: View, out: View) -> None:
    wq = given.part("ctx.wq", "wq")
    number = out["rmpn"] = next(device.numbers)
    if wq["wq_umem_valid"]:
        buffer = in_memory(device, wq["wq_umem_id"], wq["wq_umem_offset"])
    else:
        shift = wq["log_wq_pg_sz"] + 12
        pages = pages_at(given, byte_of("create_rmp_in", "ctx.wq") + byte_of("wq", "pas"))
        buffer = Buffer(device.memory, pages, shift, wq["page_offset"] << (shift - 6))
    device.shared_queues[number] = SharedQueue(
        buffer,
        wq["log_wq_sz"],
        1 << wq["log_wq_stride"],
        doorbell_of(device, wq, wq["dbr_umem_id"]),
        number=number,
        domain=wq["pd"],
    )


@command("CREATE_XRC_SRQ")
def create_xrc_srq(device: "Device", given: View, out: View) -> None:
    context = given.part("xrc_srq_context_entry", "xrc_srqc")
    number = out["xrc_srqn"] = next(device.numbers)
    device.shared_queues[number] = SharedQueue(
        buffer_of(device, given, context["log_page_size"] + 12, context["page_offset"]),
        context["log_xrc_srq_size"],
        16 << context["log_rq_stride"],
        context["db_record_addr_h"] << 32 | context["db_record_addr_l"] << 2,
        number=number,
        domain=context["pd"],
        completions=context["cqn"],
        user_index=context["user_index"],
    )


@command("MODIFY_RMP")
@command("QUERY_RMP")
@command("QUERY_XRC_SRQ")
def keep_shared_queue(device: "Device", given: View, out: View) -> None:
    """Answers commands about shared receive queues that change nothing here."""
    del device, given, out


@command("ARM_XRC_SRQ")
def arm_xrc_srq(device: "Device", given: View, out: View) -> None:
    del out
    if not (queue := device.shared_queues.get(given["xrc_srqn"])):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    queue.limit = given["lwm"]


@command("ARM_RQ")
def arm_rq(device: "Device", given: View, out: View) -> None:
    del out
    if not (queue := device.shared_queues.get(given["srq_number"])):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    queue.limit = given["lwm"]


@command("DESTROY_RMP")
def destroy_rmp(device: "Device", given: View, out: View) -> None:
    del out
    device.shared_queues.pop(given["rmpn"], None)


@command("DESTROY_XRC_SRQ")
def destroy_xrc_srq(device: "Device", given: View, out: View) -> None:
    del out
    device.shared_queues.pop(given["xrc_srqn"], None)


# ---- queue pairs ---------------------------------------------------------------------------------


@command("CREATE_QP")
def create_qp(device: "Device", given: View, out: View) -> None:
    context = View("qpc", bytearray(given.data), given.base + byte_of("create_qp_in", "qpc"))
    number = out["qpn"] = next(device.numbers)
    if given["wq_umem_valid"]:
        buffer = in_memory(device, given["wq_umem_id"], given["wq_umem_offset"])
    else:
        buffer = buffer_of(device, given, context["log_page_size"] + 12, context["page_offset"])
    doorbell = doorbell_of(device, context, unnamed(context, "reserved_at_684", 0x9C, 32))
    receives, behind = None, 0
    if context["rq_type"] == C.NON_ZERO_RQ:
        stride = 16 << context["log_rq_stride"]
        receives = ReceiveQueue(buffer, context["log_rq_size"], stride, doorbell)
        # The send queue follows the receive queue.
        behind = stride << context["log_rq_size"]
    device.queue_pairs[number] = QueuePair(number, context, buffer, behind, receives, doorbell)


@command("DESTROY_QP")
def destroy_qp(device: "Device", given: View, out: View) -> None:
    del out
    if not device.queue_pairs.pop(given["qpn"], None):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)


@command("QUERY_QP")
def query_qp(device: "Device", given: View, out: View) -> None:
    qp = queue_pair(device, given)
    begin, length = byte_of("query_qp_out", "qpc"), byte_of("create_qp_in", "wq_umem_offset")
    length -= byte_of("create_qp_in", "qpc")
    assert isinstance(out.data, bytearray)
    context = qp.context
    out.data[begin : begin + length] = context.data[context.base : context.base + length]
    out["qpc.state"] = qp.state


def queue_pair(device: "Device", given: View) -> QueuePair:
    if not (qp := device.queue_pairs.get(given["qpn"])):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    return qp


# Fields of the context that a transition of a queue pair's state takes from the command.
TAKEN = {
    "RST2INIT_QP": "rre rwe rae atomic_mode pm_state q_key",
    "INIT2INIT_QP": "rre rwe rae atomic_mode q_key",
    "INIT2RTR_QP": "remote_qpn mtu min_rnr_nak next_rcv_psn log_rra_max rre rwe rae atomic_mode",
    "RTR2RTS_QP": "retry_count rnr_retry next_send_psn log_sra_max",
    "RTS2RTS_QP": "rre rwe rae atomic_mode min_rnr_nak q_key",
    "SQERR2RTS_QP": "",
    "SQD_RTS_QP": "",
}
ADDRESS = ["rlid", "grh", "mlid", "ack_timeout", "pkey_index", "src_addr_index", "hop_limit"]
STATES = {
    "RST2INIT_QP": "INIT",
    "INIT2INIT_QP": "INIT",
    "INIT2RTR_QP": "RTR",
    "RTR2RTS_QP": "RTS",
    "RTS2RTS_QP": "RTS",
    "SQERR2RTS_QP": "RTS",
    "SQD_RTS_QP": "RTS",
}


def transition(name: str) -> Handler:
    """Returns the handler of a transition of a queue pair's state."""

    def handler(device: "Device", given: View, out: View) -> None:
        del out
        qp, told = queue_pair(device, given), given.part("qpc", "qpc")
        for field in TAKEN[name].split():
            qp.context[field] = told[field]
        for field in ADDRESS if name in ("INIT2RTR_QP", "RTR2RTS_QP") else []:
            path = f"primary_address_path.{field}"
            qp.context[path] = told[path] or qp.context[path]
        if name == "RST2INIT_QP":
            # The command may choose the protection domain and other queues again.
            for field in ("pd", "cqn_snd", "cqn_rcv", "srqn_rmpn_xrqn"):
                qp.context[field] = told[field] or qp.context[field]
        qp.state = getattr(C, f"QP_STATE_{STATES[name]}")
        requests.progress(device, qp)

    return handler


for transition_name in STATES:
    HANDLERS[transition_name] = transition(transition_name)


@command("2ERR_QP")
def to_error(device: "Device", given: View, out: View) -> None:
    del out
    qp = queue_pair(device, View("rst2init_qp_in", given.data))
    completions.fail(device, qp)
    requests.progress(device, qp)


@command("2RST_QP")
def to_reset(device: "Device", given: View, out: View) -> None:
    del out
    qp = queue_pair(device, View("rst2init_qp_in", given.data))
    qp.state, qp.sent, qp.deadline = C.QP_STATE_RST, 0, None
    if qp.receives:
        qp.receives.taken = 0
