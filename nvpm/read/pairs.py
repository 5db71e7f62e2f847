# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The NVIDIA driver's answers about GPUs and RDMA devices that have met."""

from typing import List, NamedTuple

from .machine import Machine, once

FILE = "/proc/driver/nv_peer_mem/pairs"
OURS, DRIVER, REFUSED = WORDS = ("ours", "driver", "refused")


class Pair(NamedTuple):
    """A GPU, by its UUID as GPU-..., and a device, by its PCI address."""

    gpu: str
    device: str
    said: str


@once
def pairs(machine: Machine) -> List[Pair]:
    rows = (line.split() for line in machine.lines(FILE) if not line.startswith("#"))
    return [Pair(*row) for row in rows if len(row) == 3 and row[2] in WORDS]
