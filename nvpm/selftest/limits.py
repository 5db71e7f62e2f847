# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The rate that the links between a GPU and an RDMA device allow, from sysfs."""

import re
from typing import List, NamedTuple, Optional

from ..facts.topology import relation
from ..read.machine import Machine
from ..read.pci import Gpu, Nic, Pci, gpus, nics, number, pci_at

# The part of a PCIe link's bits that is data: 128 of 130, and packets of 256 bytes with headers.
DATA = 128 / 130 * 256 / 280
# Links up to 5 GT/s send 8 bits as 10.
SLOW, SLOW_DATA = 5.0, 8 / 10 * 128 / 152


class Limit(NamedTuple):
    """Bytes per second, and the part that limits."""

    rate: float
    what: str


def pcie(pci: Pci, what: str, idles: bool) -> Optional[Limit]:
    """Returns the rate of a device's link. The link of an idle GPU becomes faster under load."""
    upper = pci_at(pci.machine, pci.path[-2] if len(pci.path) > 2 else "")
    speed = number(pci.max_speed if idles else pci.speed)
    if idles and number(upper.max_speed):
        speed = min(speed, number(upper.max_speed))
    width = number(pci.width)
    if not speed or not width:
        return None
    rate = speed * 1e9 * width / 8 * (DATA if speed > SLOW else SLOW_DATA)
    return Limit(rate, f"{what} {speed:g} GT/s x{width:g}")


def port(machine: Machine, path: str) -> Optional[Limit]:
    """Returns the rate of a port, whose file says "400 Gb/sec (4X NDR)"."""
    found = re.match(r"([0-9.]+) Gb/sec", machine.text(f"{path}/rate"))
    return Limit(float(found[1]) * 1e9 / 8, f"port {found[1]} Gb/s") if found else None


def gpu_of(machine: Machine, pci: str) -> Optional[Gpu]:
    return next((gpu for gpu in gpus(machine) if gpu.name == pci), None)


def nic_of(machine: Machine, name: str) -> Optional[Nic]:
    return next((nic for nic in nics(machine) if nic.name == name), None)


def limit_of(machine: Machine, pci: str, device: str, path: str) -> Optional[Limit]:
    """Returns the lowest of the rates between this GPU and this port; None if none is known, as of
    a device made of software."""
    gpu, nic = gpu_of(machine, pci), nic_of(machine, device)
    if not gpu or not nic or not nic.pci or nic.software:
        return None
    found: List[Optional[Limit]] = [
        pcie(gpu.pci, "GPU", True),
        pcie(nic.pci, device, False),
        port(machine, path),
    ]
    return min(filter(None, found), key=lambda limit: limit.rate, default=None)


def distance_of(machine: Machine, pci: str, device: str) -> str:
    """Returns the distance as `nvidia-smi topo -m` names it; an empty string if it is unknown."""
    gpu, nic = gpu_of(machine, pci), nic_of(machine, device)
    if not gpu or not nic or not nic.pci or not gpu.pci.path or not nic.pci.path:
        return ""
    return relation(machine, gpu.pci, nic.pci)[0]


def is_software(machine: Machine, device: str) -> bool:
    nic = nic_of(machine, device)
    return nic is not None and (bool(nic.software) or not nic.pci)
