# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whether the programs that use GPUDirect RDMA will see that it is there. Each has its own test, and
none asks the module: this repeats their tests."""

import os
import re
from typing import Dict, List

from .core import peer_memory_in
from .fact import Fact, Facts, good, none, warn
from .machine import CONF, MODULE, PEERS, SERVICE, Machine, configured

NV_MEM = PEERS + "/nv_mem/version"
OTHER_NAME = "/sys/module/nvidia_peermem/version"
OWN_NAME = "/sys/module/nv_peer_mem/version"

LOADED = "nvidia_peermem in /proc/modules"

# A program is content with any of these files, or with a loaded module of that name. The programs'
# own sources have these tests: src/core/ib.cc of mscclpp, tent/src/transport/rdma/rdma_transport.cpp of
# Mooncake, btl_openib_mca.c of Open MPI 4.1.
PROGRAMS: Dict[str, List[str]] = {
    "NCCL, up to 2.22": [NV_MEM],
    "NCCL, newer": [NV_MEM, PEERS + "/nv_mem_nc/version", OTHER_NAME],
    "NCCL GIN, GDAKI": [OTHER_NAME],
    "UCX": [NV_MEM, OTHER_NAME, OWN_NAME],
    "UCC": [NV_MEM, OTHER_NAME, OWN_NAME],
    "NVSHMEM": [NV_MEM, PEERS + "/nvidia-peermem/version", OTHER_NAME],
    "mscclpp": [LOADED],
    "Mooncake TENT": [LOADED],
    "gpu-operator": [LOADED],
    "Open MPI openib, up to 4.1": [NV_MEM],
}
NOTHING_ELSE = "It looks for nothing else, and this RDMA core does not have it:"
UPDATE = {
    "NCCL, up to 2.22": f"{NOTHING_ELSE} update NCCL.",
    "Open MPI openib, up to 4.1": f"{NOTHING_ELSE} use UCX (--mca pml ucx).",
}

# libfabric also looks at the name of the device, which has to show its maker.
NAMES = "mlx|bnxt_re|roce"
RENAME = (
    "rdma dev set DEVICE name roce0 gives it such a name (libfabric 2.1 and older know only mlx)."
)

NO_MARKER = (
    f"{SERVICE} restart: it says why the module nvidia_peermem, which MARKER=yes asks for, "
    "is not there."
)
SET_MARKER = (
    f"Set MARKER=yes in {CONF}, then {SERVICE} restart: that adds a module named nvidia_peermem."
)


def facts(machine: Machine) -> Facts:
    if not machine.loaded(MODULE):
        yield none("detection", "programs", "nothing to detect: the module is not loaded")
        return
    marker = marker_advice(machine)
    listed = re.search("^nvidia_peermem ", machine.all_text("/proc/modules"), re.MULTILINE)
    for program, files in PROGRAMS.items():
        found = [file for file in files if (listed if file == LOADED else machine.exists(file))]
        if found:
            yield good("detection", program, f"yes: {found[0]}")
        else:
            advice = f"{UPDATE.get(program, '')} {marker}".strip()
            yield warn("detection", program, "no: it looks for " + " ".join(files), advice)
    yield libfabric(machine)


def libfabric(machine: Machine) -> Fact:
    if not peer_memory_in(machine):
        value = "no: there is no ib_register_peer_memory_client in /proc/kallsyms"
        return warn("detection", "libfabric", value, f"{SERVICE} start")
    names = map(os.path.basename, machine.glob("/sys/class/infiniband/*"))
    device = next((name for name in names if re.search(NAMES, name)), None)
    if device:
        value = f"yes: ib_register_peer_memory_client in /proc/kallsyms, device {device}"
        return good("detection", "libfabric", value)
    value = "no: no RDMA device has mlx, bnxt_re or roce in its name"
    return warn("detection", "libfabric", value, RENAME)


def marker_advice(machine: Machine) -> str:
    """How to get a module called nvidia_peermem; empty if there is one."""
    if machine.exists(OTHER_NAME):
        return ""
    return NO_MARKER if configured(machine, "MARKER") == "yes" else SET_MARKER
