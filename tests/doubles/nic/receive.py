# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The receiver's side of a message: a receive request, and the memory that the request names."""

from dataclasses import dataclass

from card import Card
from completions import Error, Wait, completion, fail, failed
from keys import Denied
from layout import C, View, size
from memory import Unreachable
from queues import QueuePair, SharedQueue

DATA = size("mlx5_wqe_data_seg")

# The end of a list of memory that is shorter than its room.
END_OF_LIST = 0x100


@dataclass
class Message:
    """A message for a receive request."""

    kind: int
    data: bytes
    immediate: int = 0
    # For datagrams: the sender's queue pair and address.
    source: int = 0
    source_lid: int = 0
    has_header: bool = False
    solicited: bool = False


def queue_of(device: Card, qp: QueuePair, shared: SharedQueue | None) -> SharedQueue | None:
    if shared or qp.context["rq_type"] != C.SRQ_RQ:
        return shared
    return device.shared_queues.get(qp.context["srqn_rmpn_xrqn"])


def has_room(device: Card, qp: QueuePair, shared: SharedQueue | None) -> bool:
    if found := queue_of(device, qp, shared):
        return found.left() > 0
    return qp.receives is not None and qp.receives.taken & 0xFFFF != qp.receives.posted()


KINDS = {
    "OPCODE_SEND": "CQE_RESP_SEND",
    "OPCODE_SEND_IMM": "CQE_RESP_SEND_IMM",
    "OPCODE_SEND_INVAL": "CQE_RESP_SEND_INV",
    "OPCODE_RDMA_WRITE_IMM": "CQE_RESP_WR_IMM",
}


def receive(
    device: Card,
    qp: QueuePair,
    message: Message,
    shared: SharedQueue | None,
    length: int | None = None,
) -> None:
    """Delivers a message to a receive request. A message without data of its own has the LENGTH of
    the data that was written."""
    found = queue_of(device, qp, shared)
    queue = found or qp.receives
    taken = queue.take() if queue else None
    if not taken:
        device.counts["out_of_buffer"] += 1
        raise Wait("RNR_RETRY_EXC_ERR")
    number, request = taken
    kinds = {getattr(C, opcode): getattr(C, cqe) for opcode, cqe in KINDS.items()}
    cqe = completion(qp, kinds[message.kind], 0, number)
    cqe["byte_cnt"] = len(message.data) if length is None else length
    cqe["immediate"] = message.immediate
    cqe["flags_rqpn"] = message.has_header << 28 | message.source
    cqe["slid"] = message.source_lid
    completions = qp.context["cqn_rcv"]
    if found:
        if found.completions is not None:
            cqe["srqn"], completions = found.user_index, found.completions
        elif qp.context["user_index"] == 0xFFFFFF:
            # The kernel's own queue pairs have no number of a user.
            cqe["srqn"] = found.number
        limit_event(device, found)
    try:
        domain = found.domain if found else qp.context["pd"]
        store(device, domain, request, message.data)
    except Error as error:
        cqe["op_own"] = C.CQE_RESP_ERR << 4
        failed(device, completions, cqe, error.name)
        fail(device, qp)
        sender = "REMOTE_OP_ERR" if error.name == "LOCAL_PROT_ERR" else "REMOTE_INVAL_REQ_ERR"
        raise Error(sender, error) from error
    if message.kind == C.OPCODE_SEND_INVAL:
        invalidate(device, qp, message.immediate)
    device.complete(completions, cqe, message.solicited)


def invalidate(device: Card, qp: QueuePair, number: int) -> None:
    """Ends the use of a key, as a message of the other side asks."""
    try:
        key = device.keys.find(number, qp.context["pd"])
    except Denied as why:
        raise Error("REMOTE_ACCESS_ERR", why) from why
    if not key.remote_invalidation:
        raise Error("REMOTE_ACCESS_ERR", f"key {number:#x} cannot be ended by the other side")
    key.free = True
    device.filled(key)


def limit_event(device: Card, queue: SharedQueue) -> None:
    """Raises an event if a shared queue has fewer requests than the driver wants."""
    if queue.limit and queue.left() < queue.limit:
        queue.limit = 0
        device.event(C.EVENT_TYPE_SRQ_RQ_LIMIT, {"data.qp_srq.qp_srq_n": queue.number})


def store(device: Card, domain: int, request: bytes, data: bytes) -> None:
    """Writes a message to the memory of a receive request."""
    for at in range(0, len(request) - DATA + 1, DATA):
        part = View("mlx5_wqe_data_seg", request, at)
        if not data or part["lkey"] == END_OF_LIST:
            break
        length = part["byte_count"] & 0x7FFFFFFF
        local_write(device, domain, part["lkey"], part["addr"], data[:length])
        data = data[length:]
    if data:
        raise Error("LOCAL_LENGTH_ERR", f"a message is {len(data)} bytes too long")


def local_read(device: Card, domain: int, key: int, address: int, length: int) -> bytes:
    try:
        return device.read_key(key, address, length, "lr", domain)
    except (Denied, Unreachable) as why:
        raise Error("LOCAL_PROT_ERR", why) from why


def local_write(device: Card, domain: int, key: int, address: int, data: bytes) -> None:
    try:
        device.write_key(key, address, data, "lw", domain)
    except (Denied, Unreachable) as why:
        raise Error("LOCAL_PROT_ERR", why) from why
