# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Completions of requests, and the end of a queue pair after a failure."""

from card import Card
from layout import C, View, new
from queues import QueuePair

# The vendor's error codes, which drivers print beside the syndrome.
VENDOR = {
    "LOCAL_PROT_ERR": 0x51,
    "WR_FLUSH_ERR": 0xF9,
    "REMOTE_INVAL_REQ_ERR": 0x8A,
    "REMOTE_ACCESS_ERR": 0x88,
    "REMOTE_OP_ERR": 0x89,
    "TRANSPORT_RETRY_EXC_ERR": 0x81,
    "RNR_RETRY_EXC_ERR": 0x87,
}


class Error(Exception):
    """A request fails. NAME is the end of the name of a syndrome."""

    def __init__(self, name: str, why: object = "") -> None:
        super().__init__(f"{name}: {why}")
        self.name = name


class Wait(Exception):
    """The other side is not there, or has no room. FAILURE is the error if the wait takes too long.
    A wait without FAILURE has no end."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure


def completion(qp: QueuePair, kind: int, opcode: int, number: int) -> View:
    cqe = new("mlx5_cqe64")
    cqe["op_own"] = kind << 4
    cqe["sop_drop_qpn"] = opcode << 24 | qp.number
    cqe["srqn"] = qp.context["user_index"]
    cqe["wqe_counter"] = number & 0xFFFF
    return cqe


def failed(device: Card, queue: int, cqe: View, name: str) -> None:
    error = View("mlx5_err_cqe", cqe.data)
    error["syndrome"] = getattr(C, f"CQE_SYNDROME_{name}")
    error["vendor_err_synd"] = VENDOR.get(name, 0)
    device.complete(queue, cqe, True)


def fail(device: Card, qp: QueuePair) -> None:
    """Puts a queue pair into the state of error, in which its requests are flushed."""
    if qp.state == C.QP_STATE_ERR:
        return
    qp.state = C.QP_STATE_ERR
    flush_receives(device, qp)
    if qp.context["rq_type"] == C.SRQ_RQ:
        device.event(C.EVENT_TYPE_SRQ_LAST_WQE, {"data.qp_srq.qp_srq_n": qp.number})


def flush_receives(device: Card, qp: QueuePair) -> None:
    while qp.receives and (taken := qp.receives.take()):
        device.counts["resp_cqe_flush_error"] += 1
        cqe = completion(qp, C.CQE_RESP_ERR, 0, taken[0])
        failed(device, qp.context["cqn_rcv"], cqe, "WR_FLUSH_ERR")
