# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges the files that name modules for each boot: a module that this node cannot load makes
systemd-modules-load fail, at each boot."""

from typing import List, Optional

from ..read import ways
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import Machine
from ..read.modules_load import Line, loaded_on_boot
from ..read.pci import gpus
from .fact import Fact, info, warn

# These modules need NVIDIA's driver, and the driver needs a GPU.
OF_GPUS = (
    "nvidia",
    "nvidia_drm",
    "nvidia_modeset",
    "nvidia_uvm",
    "nvidia_peermem",
    "efa_nv_peermem",
    "gdrdrv",
    "nvidia_fs",
)
REMOVE = "Remove {lines}. Then systemctl restart systemd-modules-load."
# An update would bring back the line of a package's file.
HIDE = "{line} (or hide this file of a package: ln -s /dev/null /etc/modules-load.d/{name})"
NO_GPU = "this node has no NVIDIA GPU"
GIVEN_AWAY = "the GPUs are given to virtual machines"
NO_CORE = "the RDMA core has no peer memory, and nvidia_peermem answers Invalid argument"


def without_gpu(machine: Machine) -> List[Line]:
    """Returns the lines with modules that need a GPU, on a node that has none."""
    if gpus(machine) and not ways.given_away(machine):
        return []
    lines = loaded_on_boot(machine)
    return [line for line in lines if line.module in OF_GPUS and not machine.loaded(line.module)]


def remove(lines: List[Line]) -> str:
    return REMOVE.format(lines=", ".join(map(line_of, lines)))


def line_of(line: Line) -> str:
    text = f"the line {line.module} from {line.file}"
    if line.file.startswith("/etc/"):
        return text
    return HIDE.format(line=text, name=line.file.rpartition("/")[2])


def fact(machine: Machine) -> Optional[Fact]:
    found = without_gpu(machine)
    if found:
        names = ", ".join(f"{line.module} ({line.file})" for line in found)
        why = GIVEN_AWAY if gpus(machine) else NO_GPU
        value = f"{names} cannot be loaded, because {why}: systemd-modules-load fails at each boot"
        return warn("driver", "modules-load.d", value, remove(found))
    peermem = [line for line in loaded_on_boot(machine) if line.module == "nvidia_peermem"]
    refused = machine.loaded("ib_core") and not peer_memory_in(machine)
    if peermem and refused and not machine.loaded("nvidia_peermem"):
        value = f"nvidia_peermem ({peermem[0].file}) cannot be loaded, because {NO_CORE}"
        return info("driver", "modules-load.d", value, remove(peermem))
    return None
