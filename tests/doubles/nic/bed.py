# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A device on a bench: a driver of a few lines, and memory that is a file. The tests of the device
use the same commands, queues and doorbells as a driver."""

import os
import struct
from pathlib import Path

import commands
import requests
from device import Device
from layout import C, View, new, size
from queues import QueuePair
from wire import Wire
from witness import FRAME, Witness

# Bus addresses of the driver's memory and of the GPU's memory.
RAM, GPU = 0x10_0000, 0x8000_0000
RAM_BYTES, GPU_BYTES = 4 << 20, 16 * FRAME
RIGHTS = {"lr": 1, "lw": 1, "rr": 1, "rw": 1, "a": 1}


class Bed:
    def __init__(self) -> None:
        ram, gpu = os.memfd_create("ram"), os.memfd_create("gpu")
        os.ftruncate(ram, RAM_BYTES)
        os.ftruncate(gpu, GPU_BYTES)
        self.gpu = gpu
        self.device = Device(Wire(), Witness(Path(f"/proc/self/fd/{gpu}")), 1)
        self.device.memory.map(RAM, RAM_BYTES, ram, 0)
        self.device.memory.map(GPU, GPU_BYTES, gpu, 0)
        os.close(ram)
        self.free = RAM
        self.domain = self.run("ALLOC_PD")["pd"]

    @property
    def violations(self) -> set[str]:
        return set(self.device.witness.violations)

    def pages(self, count: int = 1) -> list[int]:
        """Returns addresses of fresh pages. No two pages lie beside each other."""
        found = [self.free + 8192 * number for number in range(count)]
        self.free += 8192 * count
        return found

    def run(self, name: str, extra: bytes = b"", /, **fields: int) -> View:
        """Runs a command with these fields, where `__` stands for a point. Returns its output."""
        return self.run_with(name, extra, fields)

    def run_with(self, name: str, extra: bytes, fields: dict[str, int]) -> View:
        given = View(f"{name.lower()}_in", bytearray(size(f"{name.lower()}_in")) + extra)
        for path, value in fields.items():
            given[path.replace("__", ".")] = value
        out = new(f"{name.lower()}_out")
        commands.run(self.device, name, bytes(given.data), out)
        return out

    def key(self, start: int, length: int, pages: list[int], shift: int = 12, **rights: int) -> int:
        """Makes a key, and returns its number."""
        entries = [page | C.EN_RD | C.EN_WR for page in pages]
        entries += [0] * (len(entries) % 2)
        table = struct.pack(f">{len(entries)}Q", *entries)
        context = {"access_mode_1_0": C.MKC_ACCESS_MODE_MTT, "start_addr": start, "len": length}
        context |= {"log_page_size": shift, "pd": self.domain, "mkey_7_0": 0x2A}
        context |= RIGHTS | rights
        named = {f"memory_key_mkey_entry__{name}": value for name, value in context.items()}
        named["translations_octword_actual_size"] = len(entries) // 2
        out = self.run_with("CREATE_MKEY", table, named)
        return out["mkey_index"] << 8 | 0x2A

    def cq(self, log: int = 2) -> int:
        """Makes a completion queue whose buffer begins in the middle of a page."""
        pages, doorbell = self.pages(2), self.pages()[0]
        out = self.run(
            "CREATE_CQ",
            struct.pack(">2Q", *pages),
            cq_context__log_cq_size=log,
            cq_context__page_offset=62,
            cq_context__dbr_addr=doorbell,
        )
        return out["cqn"]

    def qp(self, cq: int, log: int = 1) -> QueuePair:
        """Makes a queue pair, and connects the pair to itself."""
        pages, doorbell = self.pages(2), self.pages()[0]
        fields = {"st": C.QP_ST_RC, "log_sq_size": log, "log_rq_size": 1, "log_rq_stride": 2}
        fields |= {"cqn_snd": cq, "cqn_rcv": cq, "dbr_addr": doorbell, "page_offset": 63}
        fields |= {"pd": self.domain, "user_index": 77}
        named = {f"qpc__{name}": value for name, value in fields.items()}
        number = self.run_with("CREATE_QP", struct.pack(">2Q", *pages), named)["qpn"]
        allowed = {"qpc__rre": 1, "qpc__rwe": 1, "qpc__rae": 1}
        self.run("RST2INIT_QP", qpn=number, qpc__pd=self.domain, **allowed)
        path = {"qpc__remote_qpn": number, "qpc__primary_address_path__rlid": 1}
        self.run("INIT2RTR_QP", qpn=number, **path, **allowed)
        self.run("RTR2RTS_QP", qpn=number)
        return self.device.queue_pairs[number]

    def post(self, qp: QueuePair, request: bytes) -> None:
        """Writes a request into the send queue, and rings the doorbell."""
        posted = qp.posted()
        blocks = -(-len(request) // 64)
        padded = request.ljust(blocks * 64, b"\0")
        for number in range(blocks):
            place = (posted + number) % (1 << qp.context["log_sq_size"])
            block = padded[64 * number : 64 * number + 64]
            self.device.memory.write(qp.buffer.address(qp.send_offset + 64 * place), block)
        self.ring(qp, C.SND_DBR, posted + blocks)
        requests.progress(self.device, qp)
        # The driver takes the completions out of their queue.
        for cq in self.device.completion_queues.values():
            self.device.memory.write(cq.doorbell, cq.produced.to_bytes(4))

    def ring(self, qp: QueuePair, which: int, count: int) -> None:
        self.device.memory.write(qp.doorbell + 4 * which, (count & 0xFFFF).to_bytes(4))

    def completions(self, number: int) -> list[View]:
        """Returns the newest completions, as many as the queue has entries, from the oldest on."""
        cq = self.device.completion_queues[number]
        newest = range(max(0, cq.produced - (1 << cq.log_size)), cq.produced)
        places = (index % (1 << cq.log_size) * cq.entry + cq.entry - 64 for index in newest)
        return [View("mlx5_cqe64", cq.buffer.read(place, 64)) for place in places]

    def last(self, number: int) -> View:
        return self.completions(number)[-1]


def request(opcode: int, *segments: bytes, completion: bool = True, **fields: int) -> bytes:
    """Returns a send request."""
    control = new("mlx5_wqe_ctrl_seg")
    control["opmod_idx_opcode"] = opcode
    control["qpn_ds"] = (len(b"".join(segments)) + 16) // 16
    control["fm_ce_se"] = C.WQE_CTRL_CQ_UPDATE if completion else 0
    control.update(**fields)
    return bytes(control.data) + b"".join(segments)


def data(key: int, address: int, length: int) -> bytes:
    return struct.pack(">IIQ", length, key, address)


def remote(key: int, address: int) -> bytes:
    return struct.pack(">QII", address, key, 0)


def umr(flags: int, mask: int, table: bytes = b"", offset: int = 0, **context: int) -> bytes:
    """Returns the segments of a request that changes a key, with its entries inside."""
    return umr_of(flags | C.UMR_INLINE, mask, len(table), offset, **context) + table


def umr_of(flags: int, mask: int, length: int, offset: int = 0, **context: int) -> bytes:
    """Returns the segments of a request that changes a key, without its entries, which have this
    length."""
    control = View("mlx5_wqe_umr_ctrl_seg", bytearray(size("mlx5_wqe_umr_ctrl_seg")))
    control["flags"] = flags
    control["xlt_octowords"], control["xlt_offset"] = length // 16, offset
    control["mkey_mask"] = mask
    mkc = new("mkc")
    mkc.update(**context)
    return bytes(control.data) + bytes(mkc.data)
