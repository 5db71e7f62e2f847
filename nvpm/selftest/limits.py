# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Computes from sysfs the rate that the links between a GPU and an RDMA device allow."""

import re
from typing import List, NamedTuple, Optional

from ..facts.topology import relation
from ..read.machine import Machine
from ..read.pci import Gpu, Nic, Pci, gpus, nics, number, pci_at

# The share of a PCIe link's bits that is data. The link sends 128 bits as 130 bits, and a packet
# with 256 bytes of data has 280 bytes.
DATA = 128 / 130 * 256 / 280
# Links up to 5 GT/s send 8 bits as 10 bits, and a packet with 128 bytes of data has 152 bytes.
SLOW, SLOW_DATA = 5.0, 8 / 10 * 128 / 152


class Limit(NamedTuple):
    """A rate in bytes per second, and the name of the part that limits the rate."""

    rate: float
    what: str


def pcie(pci: Pci, what: str, idles: bool) -> Optional[Limit]:
    """Returns the rate of a device's link. With IDLES, the maximum speed counts, because the link
    of an idle GPU becomes faster under load."""
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
    """Returns the lowest limit between this GPU and this port. Returns None if no limit is known,
    for example because the device is made of software."""
    gpu, nic = gpu_of(machine, pci), nic_of(machine, device)
    if not gpu or not nic or not nic.pci or nic.software:
        return None
    found: List[Optional[Limit]] = [
        # The data of a coherent GPU passes NVLink-C2C, and not the GPU's link on PCI.
        None if gpu.coherent else pcie(gpu.pci, "GPU", True),
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
