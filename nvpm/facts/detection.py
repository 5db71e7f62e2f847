# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether programs will find a way to GPU memory. Each program has its own test for GPUDirect
RDMA, and does not ask the module. This file repeats the tests of the programs."""

import re
from typing import Dict, List, NamedTuple, Optional, Tuple

from ..read import ways
from ..read.conf import configured
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import CONF, MODULE, PEERS, SERVICE, Machine, once
from ..read.pci import nics
from ..read.ways import DMA_BUF, PEERMEM
from .fact import Fact, Facts, good, info, warn

NV_MEM = PEERS + "/nv_mem/version"
OTHER_NAME = "/sys/module/nvidia_peermem/version"
OWN_NAME = "/sys/module/nv_peer_mem/version"
LOADED = "nvidia_peermem in /proc/modules"

NOTHING_ELSE = "It looks for nothing else, and this RDMA core does not have it:"


class Program(NamedTuple):
    """A program, and how it finds a way to GPU memory."""

    name: str
    # The program uses peer memory if any of these files exists. A program without such files tries
    # every way.
    looks_for: Tuple[str, ...]
    # How the program uses dma-buf: BY_ITSELF, or a text with the necessary setting. The text is
    # empty if the program cannot use dma-buf.
    dma_buf: str = ""
    advice: str = ""


BY_ITSELF = "by itself"

# For a new program, add a row, and a comment that names the source file of the program's test.
PROGRAMS = (
    # NCCL: src/transport/net_ib.cc, of 2.23 and later net_ib/gdr.cc
    Program("NCCL, up to 2.22", (NV_MEM,), BY_ITSELF, f"{NOTHING_ELSE} update NCCL."),
    Program("NCCL, newer", (NV_MEM, PEERS + "/nv_mem_nc/version", OTHER_NAME), BY_ITSELF),
    # NCCL: src/gin/gin.cc
    Program("NCCL GIN, GDAKI", (OTHER_NAME,), BY_ITSELF),
    # UCX: src/uct/ib/base/ib_md.c; UCC and NIXL through UCX
    Program("UCX", (NV_MEM, OTHER_NAME, OWN_NAME), BY_ITSELF),
    Program("UCC", (NV_MEM, OTHER_NAME, OWN_NAME), BY_ITSELF),
    Program("NIXL, by UCX", (NV_MEM, OTHER_NAME, OWN_NAME), BY_ITSELF),
    # UCX: src/uct/ib/mlx5/gdaki/gdaki.c
    Program("UCX GDAKI", (NV_MEM, OTHER_NAME, OWN_NAME), BY_ITSELF),
    # NVSHMEM: src/modules/transport/common/transport_gdr_common.cpp
    Program("NVSHMEM", (NV_MEM, PEERS + "/nvidia-peermem/version", OTHER_NAME), BY_ITSELF),
    # mscclpp: src/core/ib.cc
    Program("mscclpp", (LOADED,), BY_ITSELF),
    # Mooncake: mooncake-common/src/environ.cpp; it registers pointers unless told otherwise
    Program("Mooncake", (), "with WITH_NVIDIA_PEERMEM=0"),
    # Mooncake: tent/src/transport/rdma/rdma_transport.cpp
    Program("Mooncake TENT", (LOADED,)),
    # perftest: src/cuda_memory.c
    Program("perftest", (), "with --use_cuda_dmabuf"),
    # gpu-operator: validator/main.go
    Program("gpu-operator", (LOADED,)),
    # Open MPI 4.1: opal/mca/btl/openib/btl_openib_mca.c
    Program(
        "Open MPI openib, up to 4.1", (NV_MEM,), "", f"{NOTHING_ELSE} use UCX (--mca pml ucx)."
    ),
    # cuFile has no public source, but prints its test (messages.md)
    Program("cuFile, RDMA in user space", (LOADED,), 'with rdma_peer_type "dmabuf" in cufile.json'),
    # For these programs, the preloaded library registers memory as a dma-buf: nvpm_preload(7)
    Program("ibv_reg_mr of a pointer", (), "with nvpm run PROGRAM"),
)

# NCCL reaches EFA by its plugin aws-ofi-nccl, which uses libfabric.
BY_PLUGIN = "NCCL,"

# The signs that the marker provides.
MARKED = (OTHER_NAME, LOADED)

# libfabric (src/hmem_cuda.c and prov/verbs) uses only devices whose names show their vendor. This
# pattern matches such names.
LIBFABRIC = "libfabric"
NAMES = "mlx|bnxt_re|roce"
RENAME = (
    "rdma dev set DEVICE name roce0 gives it such a name (libfabric 2.1 and older know only mlx)."
)
NO_SUCH_NAME = "no: no RDMA device has mlx, bnxt_re or roce in its name"

NO_MARKER = (
    f"{SERVICE} restart: it says why the module nvidia_peermem, which MARKER=yes asks for, "
    "is not there."
)
SET_MARKER = (
    f"Set MARKER=yes in {CONF}, then {SERVICE} restart: that adds a module named nvidia_peermem."
)


def facts(machine: Machine) -> Facts:
    pointer = ways.peer_memory_by(machine) or ways.own_way(machine)
    nothing = not pointer and not ways.there_are(machine, DMA_BUF)
    if nothing or not nics(machine) or ways.excluded_gpus(machine):
        yield info("detection", "programs", "nothing to detect: there is no way to GPU memory")
        return
    for program in PROGRAMS:
        yield fact(machine, program)
    yield libfabric(machine)
    yield marker(machine)


def ways_found(machine: Machine) -> Dict[str, str]:
    """Returns the way that each program finds. The way is the name of a module, or dma-buf. It is
    empty if the program finds no way."""
    found = {program.name: way(machine, program) for program in PROGRAMS}
    if ways.own_way(machine):
        found[LIBFABRIC] = ways.own_way(machine)
    elif libfabric_device(machine) and ways.peer_memory_by(machine):
        found[LIBFABRIC] = ways.peer_memory_by(machine)
    else:
        found[LIBFABRIC] = DMA_BUF if ways.there_are(machine, DMA_BUF) else ""
    return found


def setting(name: str) -> str:
    """Returns the setting that the program NAME needs in order to use dma-buf; an empty string if
    the program needs no setting."""
    wanted = {program.name: program.dma_buf for program in PROGRAMS}.get(name, "")
    return "" if wanted == BY_ITSELF else wanted


def way(machine: Machine, program: Program) -> str:
    peer = ways.peer_memory_by(machine)
    if peer and (seen(machine, program) or not program.looks_for):
        return peer
    own = ways.own_way(machine)
    if own and (not program.looks_for or program.name.startswith(BY_PLUGIN)):
        return own
    return DMA_BUF if program.dma_buf and ways.there_are(machine, DMA_BUF) else ""


@once
def listed(machine: Machine) -> bool:
    modules = machine.all_text("/proc/modules")
    return bool(re.search(f"^{PEERMEM} ", modules, re.MULTILINE))


def seen(machine: Machine, program: Program) -> str:
    """Returns the first sign of peer memory that the program sees; an empty string if it sees
    none."""
    for what in program.looks_for:
        if listed(machine) if what == LOADED else machine.exists(what):
            return what
    return ""


def fact(machine: Machine, program: Program) -> Fact:
    found, sees = way(machine, program), seen(machine, program)
    looks_for = f"it looks for {' '.join(program.looks_for)}"
    if found == DMA_BUF:
        value = f"by dma-buf {setting(program.name)}".rstrip()
        if ways.peer_memory_by(machine):
            value = f"{value}; of peer memory it sees none: {looks_for}"
        return info("detection", program.name, value)
    if found and found == ways.own_way(machine):
        return good("detection", program.name, f"yes: {found} registers GPU memory itself")
    if found:
        return good("detection", program.name, f"yes: {sees or 'it looks for nothing, and tries'}")
    if not ways.peer_memory_by(machine):
        return info("detection", program.name, "no: it uses peer memory alone")
    # The fact `marker` has the advice for all programs that look for the marker, so their own facts
    # have no advice.
    advice = "" if looks_for_marker(program) else program.advice
    return info("detection", program.name, f"no: {looks_for}", advice)


def looks_for_marker(program: Program) -> bool:
    return any(what in MARKED for what in program.looks_for)


def marker(machine: Machine) -> Optional[Fact]:
    """Returns one fact that names all programs that miss the marker."""
    if not machine.loaded(MODULE) or machine.exists(OTHER_NAME):
        return None
    blind = [
        program.name
        for program in PROGRAMS
        if looks_for_marker(program) and not way(machine, program)
    ]
    if not blind:
        return None
    value = f"no module is called nvidia_peermem, for which these look: {'; '.join(blind)}"
    asked = configured(machine, "MARKER") == "yes"
    return warn("detection", "marker", value, NO_MARKER if asked else SET_MARKER)


def libfabric_device(machine: Machine) -> Optional[str]:
    names: List[str] = [nic.name for nic in nics(machine)]
    return next((name for name in names if re.search(NAMES, name)), None)


def libfabric(machine: Machine) -> Fact:
    device, own = libfabric_device(machine), ways.own_way(machine)
    if own:
        return good("detection", LIBFABRIC, f"yes: {own} registers GPU memory itself")
    if peer_memory_in(machine) and device:
        value = f"yes: ib_register_peer_memory_client in /proc/kallsyms, device {device}"
        return good("detection", LIBFABRIC, value)
    if ways.there_are(machine, DMA_BUF):
        return info("detection", LIBFABRIC, "by dma-buf")
    if not peer_memory_in(machine):
        value = "no: there is no ib_register_peer_memory_client in /proc/kallsyms"
        return warn("detection", LIBFABRIC, value, f"{SERVICE} start")
    return warn("detection", LIBFABRIC, NO_SUCH_NAME, RENAME)
