# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""PCI devices and the bridges above them, from sysfs; and the GPUs and RDMA devices among them."""

import functools
import os
import re
from typing import List, Optional, Tuple

from .machine import Machine, decoded, once
from .products import NO, Product, product_of

DEVICES = "/sys/bus/pci/devices/"
ADDRESS = re.compile("[0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$")
NVIDIA, DISPLAY = "0x10de", "0x03"

# GH200, GB200 and GB300: the processor accesses the memory of these GPUs like its own.
COHERENT = (0x2342, 0x2345, 0x2348, 0x2941, 0x31C2)


def integer(text: str, otherwise: int = 0, base: int = 10) -> int:
    """Returns the number that TEXT spells, or else OTHERWISE."""
    try:
        return int(text, base)
    except ValueError:
        return otherwise


def number(text: str) -> float:
    """Returns the number at the start of TEXT, or 0."""
    found = re.match("[0-9]+(?:[.][0-9]+)?", text)
    return float(found[0]) if found else 0.0


class Pci:
    """A device or a bridge."""

    def __init__(self, machine: Machine, address: str) -> None:
        self.machine, self.address, self.directory = machine, address, DEVICES + address
        place = machine.target(self.directory) if address else ""
        # Root complex, root port, bridges, and the device itself; nothing for a missing device.
        # Above a domain of its own, as VMD makes, another root complex may stand: the last counts.
        self.path = ("pci" + place.rpartition("/pci")[2]).split("/") if place else []
        self.node = integer(self.text("numa_node"), -1)
        self.speed, self.width = self.link("current")
        self.max_speed, self.max_width = self.link("max")

    def text(self, attribute: str) -> str:
        return self.machine.text(f"{self.directory}/{attribute}") if self.address else ""

    def link(self, when: str) -> List[str]:
        """Returns speed and width."""
        said = (self.text(f"{when}_link_{what}") for what in ("speed", "width"))
        return [re.sub(" PCIe$", "", text) for text in said]

    def iommu(self) -> str:
        """Returns how the addresses of the device are translated."""
        kind = self.text("iommu_group/type")
        if kind:
            return kind
        return "unknown" if self.machine.exists(f"{self.directory}/iommu_group") else "none"

    def config(self, size: int) -> List[int]:
        """Returns the configuration space as numbers of four bytes. Users other than root get 64
        bytes."""
        data = self.machine.read(f"{self.directory}/config", size)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


# Bridges are read once, because several devices lie below the same bridge.
pci_at = functools.lru_cache(maxsize=None)(Pci)


class Gpu:
    def __init__(self, machine: Machine, address: str, driver: str) -> None:
        self.machine, self.name, self.driver = machine, address, driver
        self.pci = pci_at(machine, address)
        self.product = integer(self.pci.text("device"), base=16)
        numa = f"/proc/driver/nvidia/gpus/{address}/numa_status"
        self.coherent = self.product in COHERENT or machine.exists(numa)

    def bar1(self) -> int:
        """Returns the size of the window for other devices, in MiB; 0 if the size is unknown."""
        windows = self.machine.lines(f"{self.pci.directory}/resource")
        if len(windows) < 2:
            return 0
        first, last = (integer(word, base=16) for word in (windows[1].split() + ["", ""])[:2])
        return (last - first + 1) >> 20 if last else 0

    def largest_bar1(self) -> int:
        """Returns the largest possible size of the window, in MiB; 0 if the size is fixed. Each bit
        is a size, the first 1 MiB."""
        return 1 << integer(self.pci.text("resource1_resize"), base=16).bit_length() >> 1

    def information(self, name: str) -> str:
        """Returns a value from the driver about this GPU; an empty string without a driver."""
        said = self.machine.all_text(f"/proc/driver/nvidia/gpus/{self.name}/information")
        found = re.search(f"^{name}:[ \t]*(.*?)[ \t]*$", said, re.MULTILINE)
        return found[1] if found else ""

    def model(self) -> str:
        """Returns the name by the driver, or else by the system's list of PCI devices."""
        return self.information("Model") or listed_name(self.machine, self.product)

    def doubt(self) -> Optional[Product]:
        """Returns what keeps this product from GPUDirect RDMA, for certain or perhaps."""
        return product_of(self.model())

    def excluded(self) -> bool:
        """Whether this product takes no part in GPUDirect RDMA."""
        doubt = self.doubt()
        return doubt is not None and doubt.can == NO

    def instances(self) -> int:
        """Returns the number of GPU instances made by MIG."""
        minor = self.information("Device Minor")
        if not minor.isdigit():
            return 0
        return len(self.machine.glob(f"/proc/driver/nvidia/capabilities/gpu{minor}/mig/gi[0-9]*"))


@functools.lru_cache(maxsize=None)
def listed_name(machine: Machine, product: int) -> str:
    """Returns the name of an NVIDIA product in the system's list of PCI devices, as in
    `GA102 (GeForce RTX 3090)`."""
    for file in machine.glob("/usr/share/misc/pci.ids", "/usr/share/hwdata/pci.ids"):
        vendor = machine.read(file).partition(b"\n10de  ")[2]
        its_products = re.split(rb"\n(?=[0-9a-f])", vendor, maxsplit=1)[0]
        found = re.search(rb"^\t%04x  (.*)" % product, its_products, re.MULTILINE)
        if found:
            # Brackets mean a list of devices where facts are printed.
            return decoded(found[1].strip()).replace("[", "(").replace("]", ")")
    return ""


class Nic:
    """An RDMA device. A device made of software has the place of its network card."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.name, self.directory, self.software = name, f"/sys/class/infiniband/{name}", ""
        place = self.directory
        if not machine.exists(f"{place}/device") and machine.text(f"{place}/parent"):
            self.software = machine.text(f"{place}/parent")
            place = f"/sys/class/net/{self.software}"
        parts = machine.target(f"{place}/device").split("/")
        addresses = [part for part in parts if ADDRESS.search(part)]
        self.pci: Optional[Pci] = pci_at(machine, addresses[-1]) if addresses else None
        self.machine = machine

    def driver(self) -> str:
        """Returns the driver of the PCI device; an empty string without a PCI device."""
        place = f"{self.pci.directory}/driver" if self.pci else ""
        return os.path.basename(self.machine.target(place)) if place else ""


@once
def gpus(machine: Machine) -> List[Gpu]:
    """Returns NVIDIA's display controllers, and all devices of its driver."""
    found = []
    for place in machine.glob(DEVICES + "*"):
        driver = os.path.basename(machine.target(f"{place}/driver"))
        vendor, kind = machine.text(f"{place}/vendor"), machine.text(f"{place}/class")
        if driver == "nvidia" or (vendor == NVIDIA and kind.startswith(DISPLAY)):
            found.append(Gpu(machine, os.path.basename(place), driver))
    return found


@once
def nics(machine: Machine) -> List[Nic]:
    found = machine.glob("/sys/class/infiniband/*")
    names = sorted((os.path.basename(name) for name in found if machine.exists(name)), key=counting)
    return [Nic(machine, name) for name in names]


def counting(name: str) -> List[Tuple[str, int]]:
    """Returns a key for sorting names as people do: mlx5_2 before mlx5_10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]
