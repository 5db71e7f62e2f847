# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the reasons why files cannot show whether a way works."""

import re
from typing import List

from .machine import Machine, once
from .pci import Gpu, Nic, gpus, nics
from .peers import asks, own_peer_memory
from .place import confidential
from .products import MAY
from .ways import DMA_BUF, of_pairs


@once
def uncertain(machine: Machine) -> str:
    """Returns the reason why files cannot show whether the ways of this node work. Returns an empty
    string if some pair of GPU and device has a way about which there is no doubt."""
    first = ""
    gpu_of = {gpu.name: gpu for gpu in gpus(machine)}
    nic_of = {nic.name: nic for nic in nics(machine)}
    for (gpu, nic), found in of_pairs(machine).items():
        if found:
            doubt = doubt_of(machine, gpu_of[gpu], nic_of[nic], found)
            if not doubt:
                return ""
            first = first or doubt
    return first


def doubt_of(machine: Machine, gpu: Gpu, nic: Nic, found: List[str]) -> str:
    """Returns the doubt about the ways of one pair."""
    kind = confidential(machine)
    if kind:
        return f"this is {kind}, in which GPUs keep their memory from other devices"
    doubt = gpu.doubt()
    if doubt:
        return f"{gpu.model()} is {doubt.why}"
    if gpu.coherent and driver_keeps_memory(machine):
        return "the driver keeps the memory of coherent GPUs to itself (CDMM), which was not tried"
    if DMA_BUF in found or own_peer_memory(machine, nic):
        return ""
    asking = asks(machine, nic)
    return f"{nic.name}: {asking.why}" if asking.can == MAY else ""


@once
def driver_keeps_memory(machine: Machine) -> bool:
    """Returns whether the driver of a Grace machine keeps the GPU's memory to itself (CDMM).
    Otherwise the driver gives this memory to the kernel as a NUMA node. Only the driver's option
    shows the mode."""
    loaded = machine.all_text("/proc/driver/nvidia/params")
    if re.search("^CoherentGPUMemoryMode: .*driver", loaded, re.MULTILINE):
        return True
    files = machine.glob("/etc/modprobe.d/*.conf", "/usr/lib/modprobe.d/*.conf")
    option = r"^\s*options\s+nvidia\s.*NVreg_CoherentGPUMemoryMode=driver"
    return bool(re.search(option, machine.all_text(*files), re.MULTILINE))
