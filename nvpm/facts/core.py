# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The RDMA core: whether it has peer memory, and the clients that the module has registered with
it."""

import re
from typing import Optional

from ..read import ways
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import PEERS, SERVICE, Machine, parameters, statistics
from ..read.pci import gpus, nics
from . import pod
from .advice import Advice, service
from .core_advice import get_core, ofed
from .fact import Fact, Facts, bad, good, info, warn

PERSISTENT = "persistent: memory is pinned until it is deregistered"
REVOCABLE = "revocable: a registration ends when its memory is freed"

SET_OLD = (
    "echo 'options nv_peer_mem peerdirect_support=1' >>/etc/modprobe.d/nv_peer_mem.conf && "
    "{restart_service}"
)
SET_NEW = (
    "Remove peerdirect_support=1 from /etc/modprobe.d, or rebuild the module: {rebuild}. "
    "Then {restart_service}"
)


def facts(machine: Machine) -> Facts:
    yield peer_memory(machine)
    yield built_for(machine)
    yield from client_facts(machine)


def peer_memory(machine: Machine) -> Fact:
    where = peer_memory_in(machine)
    if where:
        return good(
            "RDMA core",
            "peer memory",
            f"yes, in {where}" + (ofed(machine) and f", {ofed(machine)}"),
        )
    if machine.loaded("ib_core"):
        value = "no: the one that is loaded does not have it"
        if not nics(machine) or not gpus(machine) or ways.given_away(machine):
            return info("RDMA core", "peer memory", value)
        if ways.dma_buf_serves(machine):
            value = f"{value}; dma-buf serves, but not programs that register a pointer"
            return info("RDMA core", "peer memory", value, get_core(machine))
        if ways.served_without_core(machine):
            return info("RDMA core", "peer memory", value)
        return bad("RDMA core", "peer memory", value, get_core(machine))
    loads = f"; {SERVICE} start loads it" if machine.exists(SERVICE) else ""
    return info("RDMA core", "peer memory", f"not loaded yet{loads}")


def built_for(machine: Machine) -> Optional[Fact]:
    """Compares two generations of the peer memory interface. The loaded module was built for one
    generation, and the installed MLNX_OFED has the other."""
    core = machine.text(statistics(machine) + "core_api")
    if not core:
        return None
    if not ofed(machine):
        return info("RDMA core", "built for", core)
    set_old = machine.text(parameters(machine) + "peerdirect_support") == "1"
    for_old = core.startswith("MLNX_OFED 4.1") or set_old
    is_old = bool(re.search(r"[A-Za-z]-(4\.[1-9]|5\.0)-", ofed(machine)))
    if for_old == is_old:
        return good("RDMA core", "built for", core)
    if is_old:
        value = f"{core}: this older core skips the clients"
        return bad("RDMA core", "built for", value, to_set(machine, "1", SET_OLD))
    value = f"{core}, but loaded for MLNX_OFED 4.1 to 5.0"
    return warn("RDMA core", "built for", value, to_set(machine, "0", SET_NEW))


def to_set(machine: Machine, setting: str, template: str) -> str:
    """Returns how to give the parameter peerdirect_support this value. TEMPLATE is the advice for a
    module that does not belong to a pod."""
    if pod.keeps_module(machine):
        return pod.PARAMETERS.format(setting=f"peerdirect_support={setting}")
    return Advice(machine).filled(template)


def client_facts(machine: Machine) -> Facts:
    peers = machine.exists(PEERS)
    for line in machine.lines(statistics(machine) + "clients"):
        client, *mode = line.split() or [""]
        if not client:
            continue
        name, how = f"client {client}", PERSISTENT if mode == ["persistent"] else REVOCABLE
        if not peers:
            yield info("RDMA core", name, how)
        elif machine.exists(f"{PEERS}/{client}"):
            yield good("RDMA core", name, how)
        else:
            value = f"the RDMA core does not list it (ls {PEERS})"
            yield bad("RDMA core", name, value, service(machine, "restart"))
