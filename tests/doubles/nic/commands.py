# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The firmware's commands that make, change and end objects. Commands that only answer a question
are in capabilities.py."""

from collections.abc import Callable
from typing import Any, TypeVar

import capabilities
import completions
import keys
import requests
from card import Card
from layout import C, View, byte_of, place
from queues import (
    BLOCK,
    EQE,
    Buffer,
    CompletionQueue,
    EventQueue,
    QueuePair,
    ReceiveQueue,
    SharedQueue,
)

T = TypeVar("T")
Handler = Callable[[Card, View, View], None]

HANDLERS: dict[str, Handler] = dict(capabilities.HANDLERS)

# Commands that succeed, and change nothing that this device emulates.
SILENT = {
    "ENABLE_HCA", "DISABLE_HCA", "INIT_HCA", "SET_HCA_CAP", "SET_ISSI", "SET_DRIVER_VERSION",
    "QUERY_PAGES", "MANAGE_PAGES", "MODIFY_HCA_VPORT_CONTEXT", "MODIFY_NIC_VPORT_CONTEXT",
    "PAGE_FAULT_RESUME", "ATTACH_TO_MCG", "DETACH_FROM_MCG", "QUERY_LAG", "DEALLOC_PD",
    "DEALLOC_XRCD", "DEALLOC_TRANSPORT_DOMAIN", "DEALLOC_Q_COUNTER", "DEALLOC_UAR", "DESTROY_UCTX",
}  # fmt: skip

# Commands that make an object without a behaviour, and the field of the answer with its number.
PLAIN = {
    "ALLOC_PD": "pd",
    "ALLOC_XRCD": "xrcd",
    "ALLOC_TRANSPORT_DOMAIN": "transport_domain",
    "ALLOC_Q_COUNTER": "counter_set_id",
    "CREATE_UCTX": "uid",
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


def run(device: Card, name: str, given: bytes, out: View) -> None:
    """Carries out the command NAME, and fills its output."""
    if name in SILENT:
        return
    if field := PLAIN.get(name):
        out[field] = next(device.numbers)
    elif handler := HANDLERS.get(name):
        handler(device, View(f"{name.lower()}_in", given), out)
    else:
        raise Refused(C.CMD_STAT_BAD_OP_ERR)


@command("TEARDOWN_HCA")
def teardown(device: Card, given: View, out: View) -> None:
    """Ends the driver's use of the device. Every object must be gone by then."""
    del given, out
    report_left(device)
    device.forget()


def report_left(device: Card) -> None:
    """Reports the objects that the driver has left."""
    left = {"key": [key for key in device.keys.by_index if key != keys.RESERVED]}
    for kind, number in device.held:
        left.setdefault(kind, []).append(number)
    for kind, numbers in left.items():
        if numbers:
            text = f"{len(numbers)} {kind}, the first {numbers[0]:#x}"
            device.witness.violation("left_at_unload", text)


# ---- doorbells and events ------------------------------------------------------------------


@command("ALLOC_UAR")
def alloc_uar(device: Card, given: View, out: View) -> None:
    del given
    out["uar"] = next(device.uars)


@command("CREATE_EQ")
def create_eq(device: Card, given: View, out: View) -> None:
    context = given.part("eq_context_entry", "eqc")
    number = out["eq_number"] = next(device.event_numbers)
    buffer = buffer_of(device, given, context["log_page_size"] + 12, context["page_offset"])
    size = context["log_eq_size"]
    device.hold("event queue", number, buffer.spans(EQE << size))
    device.event_queues[number] = EventQueue(
        number, buffer, size, context["intr"], given["event_bitmask[0]"]
    )


@command("DESTROY_EQ")
def destroy_eq(device: Card, given: View, out: View) -> None:
    del out
    end(device, "event queue", device.event_queues, given["eq_number"])


def found(objects: dict[int, T], number: int) -> T:
    """Returns the object NUMBER. The command ends with an error if there is none."""
    if not (object_ := objects.get(number)):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    return object_


def end(device: Card, kind: str, objects: dict[int, Any], number: int) -> None:
    """Ends an object, which holds no addresses any more."""
    if not objects.pop(number, None):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)
    device.held.pop((kind, number), None)


# ---- memory of queues ---------------------------------------------------------------------------


def buffer_of(device: Card, given: View, shift: int, page_offset: int) -> Buffer:
    """Returns the buffer whose pages stand at the end of a command's input. PAGE_OFFSET counts
    sixty-fourths of a page."""
    pages = pages_at(given, byte_of(given.name, "pas"))
    return Buffer(device.memory, pages, shift, page_offset << (shift - 6))


def pages_at(given: View, begin: int) -> list[int]:
    """Returns the bus addresses at the end of an input. Their lowest bits are rights."""
    words = range(begin, len(given.data) - 7, 8)
    return [int.from_bytes(given.data[at : at + 8]) & ~0xFFF for at in words]


def in_memory(device: Card, number: int, offset: int) -> Buffer:
    """Returns the buffer that lies in the registered memory NUMBER of a user (DevX)."""
    memory = found(device.memories, number)
    return Buffer(device.memory, memory.pages, memory.shift, memory.offset + offset)


def unnamed(view: View, path: str, skip: int, width: int) -> int:
    """Returns WIDTH bits, SKIP bits after the beginning of a field for which the kernel's header
    has no name, because only programs use the field."""
    begin = view.base * 8 + place(view.name, path)[0] + skip
    return int.from_bytes(view.data[begin // 8 : (begin + width) // 8])


def doorbell_of(device: Card, context: View, umem: int) -> int:
    """Returns the bus address of a queue's doorbell record, which may lie in a user's memory."""
    address = context["dbr_addr"]
    return in_memory(device, umem, address).address(0) if context["dbr_umem_valid"] else address


@command("CREATE_UMEM")
def create_umem(device: Card, given: View, out: View) -> None:
    """Registers memory of a user for queues. The command does not say where the memory ends in its
    last page."""
    umem = given.part("umem", "umem")
    number = out["umem_id"] = next(device.numbers)
    pages = pages_at(given, byte_of("create_umem_in", "umem") + byte_of("umem", "mtt"))
    memory = Buffer(device.memory, pages, umem["log_page_size"] + 12, umem["page_offset"])
    device.memories[number] = memory
    length = (len(pages) << memory.shift) - memory.offset
    device.hold("memory of a user", number, memory.spans(length))


@command("DESTROY_UMEM")
def destroy_umem(device: Card, given: View, out: View) -> None:
    """Ends a registration of memory, unless a queue uses the memory."""
    del out
    memory = device.memories.get(given["umem_id"])
    kinds = (device.queue_pairs, device.completion_queues, device.shared_queues)
    queues = (queue for kind in kinds for queue in kind.values())
    if memory and any(queue.buffer.pages is memory.pages for queue in queues):
        raise Refused(C.CMD_STAT_BAD_RES_STATE_ERR)
    end(device, "memory of a user", device.memories, given["umem_id"])


# ---- memory keys -------------------------------------------------------------------------------


@command("CREATE_MKEY")
def create_mkey(device: Card, given: View, out: View) -> None:
    number = out["mkey_index"] = next(device.numbers)
    key = keys.created(number, given)
    if given["mkey_umem_valid"]:
        key.pages = pages_in_memory(device, key, given)
    device.keys.by_index[number] = key
    device.filled(key)


def pages_in_memory(device: Card, key: keys.Key, given: View) -> list[int]:
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
def destroy_mkey(device: Card, given: View, out: View) -> None:
    del out
    if not device.keys.by_index.pop(given["mkey_index"], None):
        raise Refused(C.CMD_STAT_BAD_RES_ERR)


@command("QUERY_MKEY")
def query_mkey(device: Card, given: View, out: View) -> None:
    key = found(device.keys.by_index, given["mkey_index"])
    context = out.part("memory_key_mkey_entry", "mkc")
    context.update(free=int(key.free), mkey_7_0=key.tag, pd=key.domain, start_addr=key.start)
    context["len"] = key.length


# ---- completion queues ---------------------------------------------------------------------------


def buffer_of_cq(device: Card, given: View) -> tuple[Buffer, int, int]:
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
def create_cq(device: Card, given: View, out: View) -> None:
    context = given.part("cq_context", "cqc")
    number = out["cqn"] = next(device.numbers)
    doorbell = doorbell_of(device, context, unnamed(context, "reserved_at_20", 0, 32))
    queue = CompletionQueue(
        number, *buffer_of_cq(device, given), context["c_eqn_or_apu_element"], doorbell
    )
    device.completion_queues[number] = queue
    hold_cq(device, queue)


def hold_cq(device: Card, queue: CompletionQueue) -> None:
    spans = queue.buffer.spans(queue.entry << queue.log_size)
    device.hold("completion queue", queue.number, [*spans, record(queue.doorbell)])


def record(doorbell: int) -> tuple[int, int]:
    """Returns the place of a doorbell record, which has two words."""
    return doorbell, doorbell + 8


@command("MODIFY_CQ")
def modify_cq(device: Card, given: View, out: View) -> None:
    """Changes a completion queue. Only a new size has an effect here."""
    del out
    cq = found(device.completion_queues, given["cqn"])
    if given["op_mod"] == RESIZE:
        cq.resize(*buffer_of_cq(device, given))
        hold_cq(device, cq)


# The modifier of MODIFY_CQ for a new size.
RESIZE = 1


@command("DESTROY_CQ")
def destroy_cq(device: Card, given: View, out: View) -> None:
    del out
    end(device, "completion queue", device.completion_queues, given["cqn"])


@command("QUERY_CQ")
def query_cq(device: Card, given: View, out: View) -> None:
    cq = found(device.completion_queues, given["cqn"])
    context = out.part("cq_context", "cqc")
    context.update(log_cq_size=cq.log_size, producer_counter=cq.produced)


# ---- shared receive queues -------------------------------------------------------------------


@command("CREATE_RMP")
def create_rmp(device: Card, given: View, out: View) -> None:
    wq = given.part("ctx.wq", "wq")
    number = out["rmpn"] = next(device.numbers)
    if wq["wq_umem_valid"]:
        buffer = in_memory(device, wq["wq_umem_id"], wq["wq_umem_offset"])
    else:
        shift = wq["log_wq_pg_sz"] + 12
        pages = pages_at(given, byte_of("create_rmp_in", "ctx.wq") + byte_of("wq", "pas"))
        buffer = Buffer(device.memory, pages, shift, wq["page_offset"] << (shift - 6))
    queue = SharedQueue(
        buffer,
        wq["log_wq_sz"],
        1 << wq["log_wq_stride"],
        doorbell_of(device, wq, wq["dbr_umem_id"]),
        number=number,
        domain=wq["pd"],
    )
    add_shared(device, queue)


@command("CREATE_XRC_SRQ")
def create_xrc_srq(device: Card, given: View, out: View) -> None:
    context = given.part("xrc_srq_context_entry", "xrc_srqc")
    number = out["xrc_srqn"] = next(device.numbers)
    queue = SharedQueue(
        buffer_of(device, given, context["log_page_size"] + 12, context["page_offset"]),
        context["log_xrc_srq_size"],
        16 << context["log_rq_stride"],
        context["db_record_addr_h"] << 32 | context["db_record_addr_l"] << 2,
        number=number,
        domain=context["pd"],
        completions=context["cqn"],
        user_index=context["user_index"],
    )
    add_shared(device, queue)


def add_shared(device: Card, queue: SharedQueue) -> None:
    device.shared_queues[queue.number] = queue
    spans = queue.buffer.spans(queue.stride << queue.log_size)
    device.hold("shared receive queue", queue.number, [*spans, record(queue.doorbell)])


@command("MODIFY_RMP")
@command("QUERY_RMP")
@command("QUERY_XRC_SRQ")
def keep_shared_queue(device: Card, given: View, out: View) -> None:
    """Answers commands about shared receive queues that change nothing here."""
    del device, given, out


@command("ARM_XRC_SRQ")
def arm_xrc_srq(device: Card, given: View, out: View) -> None:
    del out
    queue = found(device.shared_queues, given["xrc_srqn"])
    queue.limit = given["lwm"]


@command("ARM_RQ")
def arm_rq(device: Card, given: View, out: View) -> None:
    del out
    queue = found(device.shared_queues, given["srq_number"])
    queue.limit = given["lwm"]


@command("DESTROY_RMP")
def destroy_rmp(device: Card, given: View, out: View) -> None:
    del out
    end(device, "shared receive queue", device.shared_queues, given["rmpn"])


@command("DESTROY_XRC_SRQ")
def destroy_xrc_srq(device: Card, given: View, out: View) -> None:
    del out
    end(device, "shared receive queue", device.shared_queues, given["xrc_srqn"])


# ---- queue pairs ---------------------------------------------------------------------------------


@command("CREATE_QP")
def create_qp(device: Card, given: View, out: View) -> None:
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
    sends = 0 if context["no_sq"] else BLOCK << context["log_sq_size"]
    if behind + sends:
        spans = buffer.spans(behind + sends)
        device.hold("queue pair", number, [*spans, record(doorbell)])


@command("DESTROY_QP")
def destroy_qp(device: Card, given: View, out: View) -> None:
    del out
    end(device, "queue pair", device.queue_pairs, given["qpn"])


@command("QUERY_QP")
def query_qp(device: Card, given: View, out: View) -> None:
    qp = queue_pair(device, given)
    begin, length = byte_of("query_qp_out", "qpc"), byte_of("create_qp_in", "wq_umem_offset")
    length -= byte_of("create_qp_in", "qpc")
    assert isinstance(out.data, bytearray)
    context = qp.context
    out.data[begin : begin + length] = context.data[context.base : context.base + length]
    out["qpc.state"] = qp.state


def queue_pair(device: Card, given: View) -> QueuePair:
    return found(device.queue_pairs, given["qpn"])


# Transitions of a queue pair: the state that follows, and the fields of the context that the
# command brings.
TRANSITIONS = {
    "RST2INIT_QP": ("INIT", "rre rwe rae atomic_mode pm_state q_key"),
    "INIT2INIT_QP": ("INIT", "rre rwe rae atomic_mode q_key"),
    "INIT2RTR_QP": (
        "RTR",
        "remote_qpn mtu min_rnr_nak next_rcv_psn log_rra_max rre rwe rae atomic_mode",
    ),
    "RTR2RTS_QP": ("RTS", "retry_count rnr_retry next_send_psn log_sra_max"),
    "RTS2RTS_QP": ("RTS", "rre rwe rae atomic_mode min_rnr_nak q_key"),
    "SQERR2RTS_QP": ("RTS", ""),
}
PATH = ("rlid", "grh", "mlid", "ack_timeout", "pkey_index", "src_addr_index", "hop_limit")


def transition(name: str) -> Handler:
    """Returns the handler of a transition of a queue pair's state."""

    def handler(device: Card, given: View, out: View) -> None:
        del out
        qp, told = queue_pair(device, given), given.part("qpc", "qpc")
        state, fields = TRANSITIONS[name]
        for field in fields.split():
            qp.context[field] = told[field]
        for field in PATH if name in ("INIT2RTR_QP", "RTR2RTS_QP") else []:
            path = f"primary_address_path.{field}"
            qp.context[path] = told[path] or qp.context[path]
        if name == "RST2INIT_QP":
            # The command may choose the protection domain and other queues again.
            for field in ("pd", "cqn_snd", "cqn_rcv", "srqn_rmpn_xrqn"):
                qp.context[field] = told[field] or qp.context[field]
        qp.state = getattr(C, f"QP_STATE_{state}")
        requests.progress(device, qp)

    return handler


for transition_name in TRANSITIONS:
    HANDLERS[transition_name] = transition(transition_name)


@command("2ERR_QP")
def to_error(device: Card, given: View, out: View) -> None:
    del out
    qp = queue_pair(device, View("rst2init_qp_in", given.data))
    completions.fail(device, qp)
    requests.progress(device, qp)


@command("2RST_QP")
def to_reset(device: Card, given: View, out: View) -> None:
    del out
    qp = queue_pair(device, View("rst2init_qp_in", given.data))
    qp.state, qp.sent, qp.deadline = C.QP_STATE_RST, 0, None
    device.waiting.discard(qp.number)
    if qp.receives:
        qp.receives.taken = 0
