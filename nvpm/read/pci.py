# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads PCI devices and the bridges above them from sysfs. Some of these devices are the GPUs and
RDMA devices."""

import functools
import os
import re
from typing import List, Optional, Tuple

from .machine import Machine, decoded, once
from .products import NO, Product, product_of

DEVICES = "/sys/bus/pci/devices/"
ADDRESS = re.compile("[0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$")
NVIDIA, DISPLAY = "0x10de", "0x03"

# The product numbers of GH200, GB200 and GB300. The processor accesses the memory of these GPUs
# like its own memory.
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
        # The path has the root complex, the root port, the bridges, and the device itself. It is
        # empty for a missing device. A domain of VMD has a root complex of its own below that of
        # the machine, so the last root complex counts.
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
        """Returns the configuration space as numbers of four bytes. Users other than root can read
        only the first 64 bytes."""
        data = self.machine.read(f"{self.directory}/config", size)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


# A bridge is read only once, although several devices may lie below it.
pci_at = functools.lru_cache(maxsize=None)(Pci)


class Gpu:
    def __init__(self, machine: Machine, address: str, driver: str) -> None:
        self.machine, self.name, self.driver = machine, address, driver
        self.pci = pci_at(machine, address)
        self.product = integer(self.pci.text("device"), base=16)
        numa = f"/proc/driver/nvidia/gpus/{address}/numa_status"
        self.coherent = self.product in COHERENT or machine.exists(numa)

    def silent(self) -> bool:
        """Returns whether the GPU no longer answers on PCI. Its configuration space then reads as
        ones. The configuration space of a virtual function reads as ones on a healthy machine
        too."""
        lost = self.pci.config(4) == [0xFFFFFFFF]
        return lost and not self.machine.exists(f"{self.pci.directory}/physfn")

    def bar1(self) -> int:
        """Returns the size of BAR1 in MiB; 0 if the size is unknown. BAR1 is the window through
        which other devices reach the GPU's memory."""
        windows = self.machine.lines(f"{self.pci.directory}/resource")
        if len(windows) < 2:
            return 0
        first, last = (integer(word, base=16) for word in (windows[1].split() + ["", ""])[:2])
        return (last - first + 1) >> 20 if last else 0

    def largest_bar1(self) -> int:
        """Returns the largest possible size of BAR1 in MiB; 0 if the size is fixed. In the file,
        each bit stands for a possible size, and the lowest bit stands for 1 MiB."""
        return 1 << integer(self.pci.text("resource1_resize"), base=16).bit_length() >> 1

    def information(self, name: str) -> str:
        """Returns a value from the driver about this GPU; an empty string without a driver."""
        said = self.machine.all_text(f"/proc/driver/nvidia/gpus/{self.name}/information")
        found = re.search(f"^{name}:[ \t]*(.*?)[ \t]*$", said, re.MULTILINE)
        return found[1] if found else ""

    def model(self) -> str:
        """Returns the GPU's name from the driver. Without a driver, returns the name from the
        system's list of PCI devices."""
        return self.information("Model") or listed_name(self.machine, self.product)

    def doubt(self) -> Optional[Product]:
        """Returns the row of a product that takes no part in GPUDirect RDMA, or perhaps takes no
        part; None if this GPU takes part."""
        return product_of(self.model())

    def excluded(self) -> bool:
        """Returns whether this product takes no part in GPUDirect RDMA for certain."""
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
            # When facts are printed, square brackets enclose a list of devices, so the name gets
            # round brackets.
            return decoded(found[1].strip()).replace("[", "(").replace("]", ")")
    return ""


class Nic:
    """An RDMA device. If the device is made of software, its place is that of the network card
    below it."""

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
    """Returns NVIDIA's display controllers, and all other devices that NVIDIA's driver drives."""
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
    """Returns a key for sorting names as people do, so that mlx5_2 comes before mlx5_10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]
