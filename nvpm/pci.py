# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""PCI devices and the bridges above them, as sysfs shows them; which of them are GPUs and RDMA devices."""

import functools
import os
import re

from .machine import once

DEVICES = "/sys/bus/pci/devices/"
ADDRESS = re.compile("[0-9a-f]:[0-9a-f]{2}:[0-9a-f]{2}[.][0-7]$")
NVIDIA, DISPLAY = "0x10de", "0x03"

# GH200, GB200 and GB300: the processor accesses the memory of these GPUs like its own.
COHERENT = (0x2342, 0x2345, 0x2348, 0x2941, 0x31C2)


def number(text):
    """The number that the text begins with; 0 if it begins with none."""
    return float((re.findall("^[0-9]+(?:[.][0-9]+)?", text) or [0])[0])


class Pci:
    """A device or a bridge."""

    def __init__(self, machine, address):
        self.machine, self.address, self.directory = machine, address, DEVICES + address
        place = machine.target(self.directory) if address else ""
        # Root complex, root port, bridges, and the device itself; empty if it is not there.
        self.path = ("pci" + place.rpartition("/pci")[2]).split("/") if place else []
        self.node = int(self.text("numa_node") or -1)
        (self.speed, self.width), (self.max_speed, self.max_width) = (
            [re.sub(" PCIe$", "", self.text(f"{when}_link_{what}")) for what in ("speed", "width")]
            for when in ("current", "max")
        )

    def text(self, attribute):
        return self.machine.text(self.directory + "/" + attribute) if self.address else ""

    def iommu(self):
        """How the addresses that the device uses are translated."""
        return self.text("iommu_group/type") or (
            "unknown" if self.machine.exists(self.directory + "/iommu_group") else "none"
        )

    def config(self, size):
        """The configuration space, of which all but root get 64 bytes, as numbers of four bytes."""
        data = self.machine.read(self.directory + "/config", size)
        return [int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4)]


# Each is read once, because several devices lie below the same bridges.
device = functools.lru_cache(maxsize=None)(Pci)


class Gpu:
    def __init__(self, machine, address, driver):
        self.machine, self.name, self.driver, self.pci = (
            machine,
            address,
            driver,
            device(machine, address),
        )
        self.product = int(self.pci.text("device") or "0", 16)
        self.coherent = self.product in COHERENT or machine.exists(
            f"/proc/driver/nvidia/gpus/{address}/numa_status"
        )

    def bar1(self):
        """The size of its window for other devices, in MiB; 0 if it is unknown."""
        windows = self.machine.lines(self.pci.directory + "/resource")
        first, last = (
            [int(word, 16) for word in windows[1].split()[:2]] if len(windows) > 1 else (0, 0)
        )
        return (last - first + 1) >> 20 if last else 0

    def largest_bar1(self):
        """The largest possible size of the window, in MiB; 0 if it cannot change. Each size is a bit, from 1 MiB on."""
        return 1 << int(self.pci.text("resource1_resize") or "0", 16).bit_length() >> 1

    def instances(self):
        """How many GPU instances MIG has divided it into."""
        information = self.machine.all_text(f"/proc/driver/nvidia/gpus/{self.name}/information")
        minor = re.findall("^Device Minor:[ \t]*([0-9]+)", information, re.MULTILINE)
        return (
            len(self.machine.glob(f"/proc/driver/nvidia/capabilities/gpu{minor[0]}/mig/gi[0-9]*"))
            if minor
            else 0
        )


class Nic:
    """An RDMA device. One made of software is where its network card is."""

    def __init__(self, machine, name):
        self.name, self.directory, self.software = name, "/sys/class/infiniband/" + name, ""
        place = self.directory
        if not machine.exists(place + "/device") and machine.text(place + "/parent"):
            self.software = machine.text(place + "/parent")
            place = "/sys/class/net/" + self.software
        addresses = [
            part for part in machine.target(place + "/device").split("/") if ADDRESS.search(part)
        ]
        self.pci = device(machine, addresses[-1]) if addresses else None


@once
def gpus(machine):
    """NVIDIA's display controllers, and whatever its driver drives."""
    found = []
    for address in map(os.path.basename, machine.glob(DEVICES + "*")):
        driver = os.path.basename(machine.target(DEVICES + address + "/driver"))
        vendor, kind = (
            machine.text(DEVICES + address + "/" + word) for word in ("vendor", "class")
        )
        if driver == "nvidia" or (vendor == NVIDIA and kind.startswith(DISPLAY)):
            found.append(Gpu(machine, address, driver))
    return found


@once
def nics(machine):
    return [
        Nic(machine, os.path.basename(name))
        for name in machine.glob("/sys/class/infiniband/*")
        if machine.exists(name)
    ]
