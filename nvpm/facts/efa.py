# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says what EFA lacks on this node to reach GPU memory. EFA's driver asks no client of the RDMA
core. It asks NVIDIA's driver itself, by the module efa_nv_peermem, or takes a dma-buf."""

import re
from typing import Tuple

from ..read.machine import Machine, modinfo
from ..read.pci import gpus
from ..read.place import without_gpudirect
from ..read.products import TURING

# Linux since commit 9011e49d54dc (6.6) and these stable versions resolves no symbols of proprietary
# modules for modules that use GPL-only symbols, as EFA's driver does. The source is
# awslabs/amazon-eks-ami#1494. Other series older than 6.6 count as not changed.
CHANGED = {(4, 14): 326, (5, 4): 257, (5, 10): 195, (5, 15): 131, (6, 1): 52}
CHANGED_SINCE = (6, 6)

OTHER_INSTANCE = (
    "Use an instance type with GPUDirect RDMA (p4d, p5, p6 and their relatives), or host memory: "
    "NCCL and libfabric go on so by themselves."
)
REFUSED = (
    "efa finds no NVIDIA driver that serves it: kernel {kernel} does not let efa link to the "
    "proprietary one"
)
NOTHING_SERVES = "efa finds no NVIDIA driver that serves it"
OPEN_DRIVER = (
    "Install NVIDIA's open kernel modules (nvidia-open), and AWS's newest EFA installer, whose efa "
    "takes dma-bufs or brings efa_nv_peermem. nv_peer_mem is not needed."
)
TOO_OLD_GPU = (
    "NVIDIA's open driver, which this kernel needs, does not serve this GPU: boot a kernel before "
    "that change, or use host memory."
)
LOAD_BEFORE = (
    "Load NVIDIA's driver before efa: modprobe -r efa && modprobe efa stops the programs that use "
    "it. If the file p2p stays empty, run AWS's newest EFA installer. nv_peer_mem is not needed."
)
LOAD_PEERMEM = (
    "modprobe efa_nv_peermem, which EFA's driver asks beside NVIDIA's open driver. nv_peer_mem is "
    "not needed."
)
INSTALL = (
    "Run AWS's newest EFA installer: its efa takes dma-bufs (kernel 5.12 or later), and its "
    "efa_nv_peermem serves older kernels. nv_peer_mem is not needed."
)


def lacks(machine: Machine) -> Tuple[str, str]:
    """Returns why EFA does not reach GPU memory by itself, and advice."""
    if without_gpudirect(machine):
        return without_gpudirect(machine), OTHER_INSTANCE
    if "P" in machine.text("/sys/module/nvidia/taint"):
        if not changed(machine.kernel):
            return NOTHING_SERVES, LOAD_BEFORE
        old = any(0 < gpu.product < TURING for gpu in gpus(machine))
        return REFUSED.format(kernel=machine.kernel), TOO_OLD_GPU if old else OPEN_DRIVER
    if modinfo(machine, "efa_nv_peermem") and not machine.loaded("efa_nv_peermem"):
        return NOTHING_SERVES, LOAD_PEERMEM
    return NOTHING_SERVES, INSTALL


def changed(kernel: str) -> bool:
    """Returns whether this kernel keeps EFA's driver from NVIDIA's proprietary one."""
    numbers = [int(number) for number in re.findall(r"\d+", kernel)[:3]] + [0, 0, 0]
    series = (numbers[0], numbers[1])
    return series >= CHANGED_SINCE or (series in CHANGED and numbers[2] >= CHANGED[series])
