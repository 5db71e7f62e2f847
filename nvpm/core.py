# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The RDMA core: whether it has peer memory, the clients that the module has registered with it, and dma-buf beside it."""

import re

from .explain import INSTALL_CORE, Advice
from .fact import bad, first, good, none, warn
from .machine import PARAMETERS, PEERS, SERVICE, STATISTICS, once

PERSISTENT, REVOCABLE = (
    "persistent: memory is pinned until it is deregistered",
    "revocable: a registration ends when its memory is freed",
)
LIBVERBS = ("/usr/lib64/libibverbs.so.1", "/usr/lib/libibverbs.so.1", "/usr/lib/*/libibverbs.so.1")


@once
def symbols(machine):
    """Which module has the functions that matter. The list is long: it is read once."""
    pattern = rb" (ib_register_peer_memory_client|ib_umem_dmabuf_get)(?:[ \t]+\[(\w+)\])?$"
    found = re.findall(pattern, machine.read("/proc/kallsyms"), re.MULTILINE)
    return {name.decode(): where.decode() or "the kernel itself" for name, where in reversed(found)}


def peer_memory_in(machine):
    """The module that has the function with which clients register; empty if none has."""
    return symbols(machine).get("ib_register_peer_memory_client", "")


def facts(machine):
    where, ofed = peer_memory_in(machine), machine.run("ofed_info", "-s")[1].rstrip(":")
    built_for, peers = machine.text(STATISTICS + "core_api"), machine.exists(PEERS)
    # The generation of the interface that the module is loaded for, and that of the installed MLNX_OFED.
    for_old = (
        built_for.startswith("MLNX_OFED 4.1")
        or machine.text(PARAMETERS + "peerdirect_support") == "1"
    )
    is_old = bool(re.search(r"[A-Za-z]-(4\.[1-9]|5\.0)-", ofed))
    yield from first(
        "RDMA core",
        "peer memory",
        [
            (where, good, "yes, in " + where + (ofed and ", " + ofed)),
            (
                machine.loaded("ib_core"),
                bad,
                "no: the one that is loaded does not have it",
                INSTALL_CORE,
            ),
            (True, none, f"not loaded yet; {SERVICE} start loads it"),
        ],
    )
    yield from first(
        "RDMA core",
        "built for",
        [
            (built_for and not ofed, none, built_for),
            (built_for and for_old == is_old, good, built_for),
            (
                built_for and is_old,
                bad,
                built_for + ": this older core skips the clients",
                f"echo 'options nv_peer_mem peerdirect_support=1' >>/etc/modprobe.d/nv_peer_mem.conf && {SERVICE} restart",
            ),
            (
                built_for,
                warn,
                built_for + ", but loaded for MLNX_OFED 4.1 to 5.0",
                lambda: (
                    "Remove peerdirect_support=1 from /etc/modprobe.d, or rebuild the module: {}. Then {} restart".format(
                        Advice(machine)["rebuild"], SERVICE
                    )
                ),
            ),
        ],
    )
    for client, *mode in map(str.split, machine.lines(STATISTICS + "clients")):
        how = PERSISTENT if mode == ["persistent"] else REVOCABLE
        yield from first(
            "RDMA core",
            "client " + client,
            [
                (not peers, none, how),
                (machine.exists(PEERS + "/" + client), good, how),
                (True, bad, f"the RDMA core does not list it (ls {PEERS})", SERVICE + " restart"),
            ],
        )


def need(machine):
    """Whether this machine needs the module. RDMA devices reach GPU memory in three ways: dma-buf, which programs ask for with a verb of its own; and,
    for programs that register a pointer, nvidia_peermem or this module."""
    lacks, useless = (
        dma_buf_lacks(machine),
        machine.loaded("ib_core") and not peer_memory_in(machine),
    )
    other = machine.loaded("nvidia_peermem") and not machine.exists(
        "/sys/module/nv_peer_mem/holders/nvidia_peermem"
    )
    yield none(
        "need", "dma-buf", "no: " + lacks if lacks else "yes: kernel, RDMA core and driver have it"
    )
    yield from first(
        "need",
        "nv_peer_mem",
        [
            (
                useless and lacks,
                none,
                "yes, with another RDMA core: this one has no peer memory, and there is no dma-buf",
            ),
            (
                useless,
                none,
                "no: this RDMA core cannot use it; programs that use dma-buf work without it",
            ),
            (other, none, "this or nvidia_peermem, which is loaded and serves the same programs"),
            (lacks, none, "yes: there is no dma-buf, so no other way but nvidia_peermem"),
            (
                True,
                none,
                "for programs that register with ibv_reg_mr; those that use dma-buf (ibv_reg_dmabuf_mr) work without it",
            ),
        ],
    )


def dma_buf_lacks(machine):
    """What dma-buf needs and does not find; empty if it can be used."""
    libverbs = "".join(machine.glob(*LIBVERBS)[:1])
    if [int(number) for number in re.findall(r"\d+", machine.kernel)[:2]] < [5, 12]:
        return f"kernel {machine.kernel} is older than 5.12"
    if not machine.loaded("nvidia"):
        return "the NVIDIA driver is not loaded"
    if "P" in machine.text("/sys/module/nvidia/taint"):
        return "the NVIDIA driver is the proprietary one; only the open one has it"
    if "ib_umem_dmabuf_get" not in symbols(machine):
        return (
            "the RDMA core that is loaded does not have it"
            if machine.loaded("ib_uverbs")
            else "the RDMA core is not loaded"
        )
    if libverbs and b"ibv_reg_dmabuf_mr" not in machine.read(libverbs):
        return libverbs + " is older than rdma-core 34"
    return ""
