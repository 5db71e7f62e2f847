# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""NVIDIA's own module nvidia_peermem, which can take the place of nv_peer_mem on this node."""

import re
from typing import Dict

from ..read import ways
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import DESCRIPTION, Machine, modinfo, module_wanted, once
from ..read.pci import gpus, nics
from ..read.peers import none_asks
from ..read.place import container
from .advice import Advice
from .security import refused

NAME = "nvidia_peermem"
LOAD = (
    "modprobe nvidia-peermem; for each boot: echo nvidia-peermem "
    ">/etc/modules-load.d/nvidia-peermem.conf. It came with NVIDIA's driver; if it answers Invalid "
    "argument, install the driver again, now that this RDMA core is there. Or install nv_peer_mem "
    "in its place: docs/installing.md."
)


@once
def on_disk(machine: Machine) -> Dict[str, str]:
    """Returns the fields of NVIDIA's installed nvidia_peermem; none if this kernel has no such
    module. The description shows whether a file of this name is nv_peer_mem. Debian's files have
    another name, which the list of all modules has."""
    fields = modinfo(machine, NAME)
    if fields.get("description") == DESCRIPTION:
        return {}
    if fields:
        return fields
    dependencies = machine.all_text(f"/lib/modules/{machine.kernel}/modules.dep")
    named = re.findall(
        r"^[^:\n]*\b(nvidia[\w-]*[-_]peermem)\.ko[^:\n]*:", dependencies, re.MULTILINE
    )
    found = (modinfo(machine, name) or {"name": name} for name in sorted(named))
    return next(found, {})


def fits(machine: Machine) -> bool:
    """Returns whether the installed nvidia_peermem is that of the loaded NVIDIA driver, because the
    kernel refuses another one."""
    loaded = machine.text("/sys/module/nvidia/version")
    return on_disk(machine).get("version", loaded) == loaded or not loaded


@once
def can_load(machine: Machine) -> bool:
    """Returns whether nvidia_peermem is installed here and not loaded, and nothing that can be seen
    keeps it from being loaded and used."""
    return bool(
        on_disk(machine)
        and fits(machine)
        and not machine.loaded(NAME)
        and peer_memory_in(machine)
        and not container(machine)
        and not refused(machine, NAME)
        and not Advice(machine).forbidding_line(NAME)
    )


@once
def missed(machine: Machine) -> bool:
    """Returns whether loading nvidia_peermem is the first thing to do: this node has no way to
    register GPU memory, nv_peer_mem is not meant to be here, and nvidia_peermem can be loaded."""
    return bool(
        gpus(machine)
        and not ways.given_away(machine)
        and not ways.excluded_gpus(machine)
        and not (nics(machine) and none_asks(machine))
        and not module_wanted(machine)
        and not ways.dma_buf_serves(machine)
        and can_load(machine)
    )
