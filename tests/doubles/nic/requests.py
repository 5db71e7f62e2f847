# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The sender's side: executes the requests in the send queue of a queue pair.

A request is executed as a whole when its doorbell rings, on both sides. A message to a side that is
not ready waits, and is tried again, as often as the queue pair says."""

import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass

import keys
import wire
from card import Card
from completions import Error, Wait, completion, fail, failed
from keys import Denied
from layout import C, View, size
from memory import Unreachable
from queues import QueuePair
from receive import DATA, Message, has_room, local_read, local_write, receive

CONTROL, REMOTE = size("mlx5_wqe_ctrl_seg"), size("mlx5_wqe_raddr_seg")
OPERANDS = size("mlx5_wqe_atomic_seg")
XRC, AV, BASE_AV = size("mlx5_wqe_xrc_seg"), size("mlx5_av"), size("mlx5_base_av")

# The header of a datagram, for which each receive request has room at the beginning.
GRH = 40

# The number of bytes in a packet.
MTU = 4096

# Names under which a device counts errors, by the ends of the names of syndromes.
COUNTED = {
    "LOCAL_PROT_ERR": "req_local_protection",
    "REMOTE_ACCESS_ERR": "req_remote_access_errors",
    "REMOTE_INVAL_REQ_ERR": "req_remote_invalid_request",
    "TRANSPORT_RETRY_EXC_ERR": "req_transport_retries_exceeded",
    "WR_FLUSH_ERR": "req_cqe_flush_error",
}

# The greatest time in seconds that a request waits for the other side.
PATIENCE = 2.0
RNR_FOR_EVER = 7


def progress(device: Card, qp: QueuePair) -> None:
    """Executes the requests that wait in a send queue."""
    if qp.context["no_sq"]:
        return
    while qp.number in device.queue_pairs and qp.sent & 0xFFFF != qp.posted():
        if qp.state not in (C.QP_STATE_RTS, C.QP_STATE_ERR, C.QP_STATE_SQER):
            return
        request = qp.request()
        try:
            if qp.state != C.QP_STATE_RTS:
                raise Error("WR_FLUSH_ERR")
            execute(device, qp, request)
        except Wait as wait:
            if not too_late(device, qp, wait):
                return
            refuse(device, qp, request, Error(wait.failure))
        except Error as error:
            refuse(device, qp, request, error)
        qp.sent, qp.deadline = qp.following, None
        device.waiting.discard(qp.number)


def too_late(device: Card, qp: QueuePair, wait: Wait) -> bool:
    """Tells whether a request has waited too long. Otherwise the request is tried again later."""
    now = time.monotonic()
    shift = qp.context["primary_address_path.ack_timeout"]
    if not wait.failure or (wait.failure == "TRANSPORT_RETRY_EXC_ERR" and not shift):
        patience = float("inf")
    elif wait.failure == "RNR_RETRY_EXC_ERR":
        device.counts["rnr_nak_retry_err"] += 1
        patience = float("inf") if qp.context["rnr_retry"] == RNR_FOR_EVER else PATIENCE / 4
    else:
        device.counts["local_ack_timeout_err"] += 1
        # The time of InfiniBand is 4.096 microseconds times a power of two.
        patience = min(PATIENCE, 4.096e-6 * 2**shift * (qp.context["retry_count"] + 1))
    if qp.deadline is None:
        qp.deadline = now + patience
    device.waiting.add(qp.number)
    return now >= qp.deadline


def execute(device: Card, qp: QueuePair, request: bytes) -> None:
    control = View("mlx5_wqe_ctrl_seg", request)
    opcode = control["opmod_idx_opcode"] & 0xFF
    if device.delay:
        time.sleep(device.delay)
    if opcode == C.OPCODE_UMR:
        umr(device, qp, request)
    elif opcode != C.OPCODE_NOP:
        transport(device, qp, opcode, request)
    # A request asks for a completion in each case, or only after an error.
    if control["fm_ce_se"] & C.WQE_CTRL_CQ_UPDATE:
        completed(device, qp, opcode)


def completed(device: Card, qp: QueuePair, opcode: int) -> None:
    device.complete(qp.context["cqn_snd"], completion(qp, C.CQE_REQ, opcode, qp.sent), False)


def refuse(device: Card, qp: QueuePair, request: bytes, error: Error) -> None:
    """Ends a request with an error. The queue pair cannot be used after that."""
    opcode = View("mlx5_wqe_ctrl_seg", request)["opmod_idx_opcode"] & 0xFF
    device.counts[COUNTED.get(error.name, "req_cqe_error")] += 1
    device.log(f"queue pair {qp.number:#x}, opcode {opcode:#x}: {error}")
    cqe = completion(qp, C.CQE_REQ_ERR, opcode, qp.sent)
    failed(device, qp.context["cqn_snd"], cqe, error.name)
    fail(device, qp)


def umr(device: Card, qp: QueuePair, request: bytes) -> None:
    """Carries out a request that changes a memory key."""
    number = View("mlx5_wqe_ctrl_seg", request)["umr_mkey"]
    if device.losing_umr:
        raise Wait
    if device.failing_umr:
        device.failing_umr -= 1
        raise Error("LOCAL_PROT_ERR", "a request of type UMR that a test lets fail")
    if not (key := device.keys.by_index.get(number >> 8)):
        raise Error("LOCAL_PROT_ERR", f"there is no key {number:#x}")
    entries, (lkey, address, length) = keys.table_of(request)
    if length:
        # A card does not compare protection domains here: the driver of Linux 5.10 has the queue in
        # one domain, and the list in another.
        known = device.keys.by_index.get(lkey >> 8)
        domain = known.domain if known else qp.context["pd"]
        entries = local_read(device, domain, lkey, address, length)
    try:
        keys.change(key, request, entries)
    except keys.Failed as why:
        raise Error("MW_BIND_ERR", why) from why
    device.counts["umr"] += 1
    device.filled(key)


def pieces(request: bytes, at: int) -> Iterator[tuple[bytes, int, int, int]]:
    """Yields the memory that a request names: bytes that are in the request itself, or a key, an
    address and a length."""
    while at + DATA <= len(request):
        head = struct.unpack_from(">I", request, at)[0]
        if head & C.INLINE_SEG:
            length = head & 0x3FF
            yield request[at + 4 : at + 4 + length], 0, 0, 0
            at += (4 + length + 15) // 16 * 16
        else:
            data = View("mlx5_wqe_data_seg", request, at)
            yield b"", data["lkey"], data["addr"], data["byte_count"] & 0x7FFFFFFF
            at += DATA


def gathered(device: Card, qp: QueuePair, request: bytes, at: int) -> bytes:
    parts = []
    for inline, key, address, length in pieces(request, at):
        parts.append(inline or local_read(device, qp.context["pd"], key, address, length))
    return b"".join(parts)


def scattered(device: Card, qp: QueuePair, request: bytes, at: int, data: bytes) -> None:
    for _, key, address, length in pieces(request, at):
        local_write(device, qp.context["pd"], key, address, data[:length])
        data = data[length:]


WRITES = ("OPCODE_RDMA_WRITE", "OPCODE_RDMA_WRITE_IMM")
SENDS = ("OPCODE_SEND", "OPCODE_SEND_IMM", "OPCODE_SEND_INVAL")


def transport(device: Card, qp: QueuePair, opcode: int, request: bytes) -> None:
    """Carries out a request to another queue pair."""
    kind, at = qp.context["st"], CONTROL
    # TODO[RCMI]: the wire carries no management datagrams, so rdma_cm does not work.
    if kind in (C.QP_ST_UD, C.QP_ST_QP1):
        datagram(device, qp, opcode, request)
        return
    peer_device, peer = other_side(device, qp)
    shared = None
    if kind == C.QP_ST_XRC:
        number = View("mlx5_wqe_xrc_seg", request, at)["xrc_srqn"] & 0xFFFFFF
        shared, at = peer_device.shared_queues.get(number), at + XRC
    control = View("mlx5_wqe_ctrl_seg", request)
    message = Message(opcode, b"", control["imm"], solicited=bool(control["fm_ce_se"] & 2))
    if opcode in [getattr(C, name) for name in SENDS]:
        message.data = gathered(device, qp, request, at)
        receive(peer_device, peer, message, shared)
        sent(device, peer_device, message.data)
        return
    address = View("mlx5_wqe_raddr_seg", request, at)
    # With XRC, memory belongs to the protection domain of the receiver's queue.
    domain = shared.domain if shared else peer.context["pd"]
    remote = Remote(peer_device, peer, domain, address["rkey"], address["raddr"])
    at += REMOTE
    if opcode in [getattr(C, name) for name in WRITES]:
        data = gathered(device, qp, request, at)
        if opcode == C.OPCODE_RDMA_WRITE_IMM and not has_room(peer_device, peer, shared):
            raise Wait("RNR_RETRY_EXC_ERR")
        remote.write(data, "rw", "rwe")
        sent(device, peer_device, data)
        peer_device.counts["rx_write_requests"] += 1
        if opcode == C.OPCODE_RDMA_WRITE_IMM:
            receive(peer_device, peer, message, shared, len(data))
    elif opcode == C.OPCODE_RDMA_READ:
        data = remote.read(sum(length for *_, length in pieces(request, at)), "rr", "rre")
        sent(peer_device, device, data)
        peer_device.counts["rx_read_requests"] += 1
        scattered(device, qp, request, at, data)
    elif opcode in (C.OPCODE_ATOMIC_CS, C.OPCODE_ATOMIC_FA):
        operands = View("mlx5_wqe_atomic_seg", request, at)
        old = remote.atomic(opcode, operands["swap_add"], operands["compare"])
        peer_device.counts["rx_atomic_requests"] += 1
        scattered(device, qp, request, at + OPERANDS, old)
    else:
        raise Error("LOCAL_QP_OP_ERR", f"the lab does not know the opcode {opcode:#x}")


def sent(device: Card, other: Card, data: bytes) -> None:
    """Counts a message on both ports."""
    for side, way in ((device, "transmitted"), (other, "received")):
        side.counts[f"{way}_packets"] += max(1, -(-len(data) // MTU))
        side.counts[f"{way}_bytes"] += len(data)


def other_side(device: Card, qp: QueuePair) -> tuple[Card, QueuePair]:
    """Returns the device and the queue pair at the other end of a connection."""
    peer_device = device.wire.find(qp.context["primary_address_path.rlid"])
    peer = peer_device and peer_device.queue_pairs.get(qp.context["remote_qpn"])
    if not peer_device or not peer or peer.state not in (C.QP_STATE_RTR, C.QP_STATE_RTS):
        raise Wait("TRANSPORT_RETRY_EXC_ERR")
    return peer_device, peer


@dataclass
class Remote:
    """Memory of the other side, which a request names by a key and an address."""

    device: Card
    qp: QueuePair
    domain: int
    key: int
    address: int

    def allow(self, field: str) -> None:
        if not self.qp.context[field]:
            raise Error("REMOTE_INVAL_REQ_ERR", f"the other queue pair has no {field}")

    def deny(self, why: object) -> Error:
        """Returns the error for the sender. The receiver's queue pair fails, too."""
        self.device.counts["resp_remote_access_errors"] += 1
        fail(self.device, self.qp)
        kind = C.EVENT_TYPE_WQ_ACCESS_ERROR
        self.device.event(kind, {"data.qp_srq.qp_srq_n": self.qp.number})
        return Error("REMOTE_ACCESS_ERR", why)

    def read(self, length: int, right: str, field: str) -> bytes:
        self.allow(field)
        if not length:
            return b""
        try:
            return self.device.read_key(self.key, self.address, length, right, self.domain)
        except (Denied, Unreachable) as why:
            raise self.deny(why) from why

    def write(self, data: bytes, right: str, field: str) -> None:
        self.allow(field)
        if not data:
            return
        try:
            self.device.write_key(self.key, self.address, data, right, self.domain)
        except (Denied, Unreachable) as why:
            raise self.deny(why) from why

    def atomic(self, opcode: int, operand: int, compare: int) -> bytes:
        """Changes eight bytes, which are in the guest's order. Returns their old contents."""
        if self.address % 8:
            raise Error("REMOTE_INVAL_REQ_ERR", "an atomic operation at an odd address")
        data = self.read(8, "a", "rae")
        old = int.from_bytes(data, "little")
        if opcode == C.OPCODE_ATOMIC_FA:
            value = (old + operand) % (1 << 64)
        else:
            value = operand if old == compare else old
        self.write(value.to_bytes(8, "little"), "a", "rae")
        return data


def datagram(device: Card, qp: QueuePair, opcode: int, request: bytes) -> None:
    """Sends a datagram. If no queue pair takes the datagram, it is lost."""
    av = View("mlx5_av", request, CONTROL)
    extended = av["dqp_dct"] & C.EXTENDED_UD_AV
    at = CONTROL + (AV if extended else BASE_AV)
    data = gathered(device, qp, request, at)
    if not (peer_device := device.wire.find(av["rlid"])):
        return
    sent(device, peer_device, data)
    peer = find_datagram_queue(peer_device, av["dqp_dct"] & 0xFFFFFF)
    # A key with its highest bit set stands for the key of the sender's queue pair.
    key = av["key.qkey.qkey"]
    if key >> 31:
        key = qp.context["q_key"]
    if not peer or (peer.number != 1 and key != peer.context["q_key"]):
        return
    control = View("mlx5_wqe_ctrl_seg", request)
    message = Message(opcode, data, control["imm"], qp.number, device.lid)
    message.solicited = bool(control["fm_ce_se"] & 2)
    header = grh(device, peer_device, len(data)) if extended and av["grh_gid_fl"] >> 30 & 1 else b""
    message.has_header = bool(header)
    message.data = header.ljust(GRH, b"\0") + data
    try:
        receive(peer_device, peer, message, None)
    except (Wait, Error):
        peer_device.counts["out_of_buffer"] += 1


def find_datagram_queue(device: Card, number: int) -> QueuePair | None:
    if number != 1:
        return device.queue_pairs.get(number)
    found = (qp for qp in device.queue_pairs.values() if qp.context["st"] == C.QP_ST_QP1)
    return next(found, None)


def grh(device: Card, other: Card, length: int) -> bytes:
    """Returns a header with the addresses of both sides, in the form of IPv6."""
    sides = [wire.PREFIX << 64 | wire.guid_of(one.lid) for one in (device, other)]
    head = struct.pack(">IHBB", 6 << 28, length, 0x1B, 64)
    return head + b"".join(side.to_bytes(16) for side in sides)
