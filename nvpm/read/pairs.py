# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the NVIDIA driver's answers about pairs of a GPU and an RDMA device. The module asks the
driver when memory of the GPU is first registered with the device."""

from typing import List, NamedTuple

from .machine import Machine, once

FILE = "/proc/driver/nv_peer_mem/pairs"
OURS, DRIVER, REFUSED = WORDS = ("ours", "driver", "refused")


class Pair(NamedTuple):
    """A pair, and the driver's answer. `gpu` is the GPU's UUID (GPU-...). `device` is the PCI
    address of the RDMA device."""

    gpu: str
    device: str
    said: str


@once
def pairs(machine: Machine) -> List[Pair]:
    rows = (line.split() for line in machine.lines(FILE) if not line.startswith("#"))
    return [Pair(*row) for row in rows if len(row) == 3 and row[2] in WORDS]
