# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The RDMA core: whether it has peer memory, the clients that the module has registered with it, and
dma-buf beside it."""

import re
from typing import Dict, Optional

from .explain import INSTALL_CORE, Advice
from .fact import Fact, Facts, bad, good, none, warn
from .machine import PARAMETERS, PEERS, SERVICE, STATISTICS, Machine, once

PERSISTENT = "persistent: memory is pinned until it is deregistered"
REVOCABLE = "revocable: a registration ends when its memory is freed"

LIBVERBS = (
    "/usr/lib64/libibverbs.so.1",
    "/usr/lib/libibverbs.so.1",
    "/usr/lib/*/libibverbs.so.1",
)
SYMBOLS = rb" (ib_register_peer_memory_client|ib_umem_dmabuf_get)(?:[ \t]+\[(\w+)\])?$"

SET_OLD = (
    "echo 'options nv_peer_mem peerdirect_support=1' >>/etc/modprobe.d/nv_peer_mem.conf && "
    f"{SERVICE} restart"
)
SET_NEW = (
    "Remove peerdirect_support=1 from /etc/modprobe.d, or rebuild the module: {rebuild}. "
    f"Then {SERVICE} restart"
)

# Whether the module is needed.
BOTH_MISSING = "yes, with another RDMA core: this one has no peer memory, and there is no dma-buf"
USELESS = "no: this RDMA core cannot use it; programs that use dma-buf work without it"
EITHER = "this or nvidia_peermem, which is loaded and serves the same programs"
NO_OTHER_WAY = "yes: there is no dma-buf, so no other way but nvidia_peermem"
FOR_SOME = (
    "for programs that register with ibv_reg_mr; "
    "those that use dma-buf (ibv_reg_dmabuf_mr) work without it"
)


@once
def symbols(machine: Machine) -> Dict[str, str]:
    """Which module has the functions that matter. The list is long: it is read once."""
    found = re.findall(SYMBOLS, machine.read("/proc/kallsyms"), re.MULTILINE)
    return {name.decode(): where.decode() or "the kernel itself" for name, where in reversed(found)}


def peer_memory_in(machine: Machine) -> str:
    """The module that has the function with which clients register; empty if none has."""
    return symbols(machine).get("ib_register_peer_memory_client", "")


def facts(machine: Machine) -> Facts:
    ofed = machine.run("ofed_info", "-s")[1].rstrip(":")
    yield peer_memory(machine, ofed)
    yield built_for(machine, ofed)
    yield from client_facts(machine)


def peer_memory(machine: Machine, ofed: str) -> Fact:
    where = peer_memory_in(machine)
    if where:
        return good("RDMA core", "peer memory", f"yes, in {where}" + (ofed and f", {ofed}"))
    if machine.loaded("ib_core"):
        value = "no: the one that is loaded does not have it"
        return bad("RDMA core", "peer memory", value, INSTALL_CORE)
    return none("RDMA core", "peer memory", f"not loaded yet; {SERVICE} start loads it")


def built_for(machine: Machine, ofed: str) -> Optional[Fact]:
    """The generation of the interface that the module is loaded for, and that of the installed
    MLNX_OFED."""
    core = machine.text(STATISTICS + "core_api")
    if not core:
        return None
    if not ofed:
        return none("RDMA core", "built for", core)
    set_old = machine.text(PARAMETERS + "peerdirect_support") == "1"
    for_old = core.startswith("MLNX_OFED 4.1") or set_old
    is_old = bool(re.search(r"[A-Za-z]-(4\.[1-9]|5\.0)-", ofed))
    if for_old == is_old:
        return good("RDMA core", "built for", core)
    if is_old:
        value = f"{core}: this older core skips the clients"
        return bad("RDMA core", "built for", value, SET_OLD)
    value = f"{core}, but loaded for MLNX_OFED 4.1 to 5.0"
    return warn("RDMA core", "built for", value, Advice(machine).filled(SET_NEW))


def client_facts(machine: Machine) -> Facts:
    peers = machine.exists(PEERS)
    for line in machine.lines(STATISTICS + "clients"):
        client, *mode = line.split()
        name, how = f"client {client}", PERSISTENT if mode == ["persistent"] else REVOCABLE
        if not peers:
            yield none("RDMA core", name, how)
        elif machine.exists(f"{PEERS}/{client}"):
            yield good("RDMA core", name, how)
        else:
            value = f"the RDMA core does not list it (ls {PEERS})"
            yield bad("RDMA core", name, value, f"{SERVICE} restart")


def need(machine: Machine) -> Facts:
    """Whether this machine needs the module. RDMA devices reach GPU memory in three ways: dma-buf,
    which programs ask for with a verb of its own; and, for programs that register a pointer,
    nvidia_peermem or this module."""
    lacks = dma_buf_lacks(machine)
    yield none(
        "need",
        "dma-buf",
        f"no: {lacks}" if lacks else "yes: kernel, RDMA core and driver have it",
    )
    yield none("need", "nv_peer_mem", who_needs_it(machine, lacks))


def who_needs_it(machine: Machine, lacks: str) -> str:
    """LACKS: what dma-buf does not find."""
    if machine.loaded("ib_core") and not peer_memory_in(machine):
        return BOTH_MISSING if lacks else USELESS
    ours = machine.exists("/sys/module/nv_peer_mem/holders/nvidia_peermem")
    if machine.loaded("nvidia_peermem") and not ours:
        return EITHER
    return NO_OTHER_WAY if lacks else FOR_SOME


def dma_buf_lacks(machine: Machine) -> str:
    """What dma-buf needs and does not find; empty if it can be used."""
    if [int(number) for number in re.findall(r"\d+", machine.kernel)[:2]] < [5, 12]:
        return f"kernel {machine.kernel} is older than 5.12"
    if not machine.loaded("nvidia"):
        return "the NVIDIA driver is not loaded"
    if "P" in machine.text("/sys/module/nvidia/taint"):
        return "the NVIDIA driver is the proprietary one; only the open one has it"
    if "ib_umem_dmabuf_get" not in symbols(machine):
        if machine.loaded("ib_uverbs"):
            return "the RDMA core that is loaded does not have it"
        return "the RDMA core is not loaded"
    libverbs = "".join(machine.glob(*LIBVERBS)[:1])
    if libverbs and b"ibv_reg_dmabuf_mr" not in machine.read(libverbs):
        return f"{libverbs} is older than rdma-core 34"
    return ""
