# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Whether this machine needs the module."""

from ..read import dma_buf, ways
from ..read.kernel_symbols import peer_memory_in
from ..read.machine import Machine
from ..read.pci import nics
from .fact import Facts, info

BOTH_MISSING = "yes, with another RDMA core: this one has no peer memory, and there is no dma-buf"
USELESS = "no: this RDMA core cannot use it; programs that use dma-buf work without it"
EITHER = "this or nvidia_peermem, which is loaded and serves the same programs"
NO_OTHER_WAY = "yes: there is no dma-buf, so no other way but NVIDIA's nvidia_peermem"
FOR_SOME = (
    "for programs that register with ibv_reg_mr; "
    "those that use dma-buf (ibv_reg_dmabuf_mr) work without it"
)


def facts(machine: Machine) -> Facts:
    lacks = dma_buf_lacks(machine)
    yes = "yes: kernel, RDMA core and driver have it"
    yield info("need", "dma-buf", f"no: {lacks}" if lacks else yes)
    yield info("need", "nv_peer_mem", who_needs_it(machine, lacks))


def dma_buf_lacks(machine: Machine) -> str:
    """Returns why dma-buf does not work on this machine; an empty string if it works."""
    lacks = dma_buf.lacking(machine)
    if lacks or not nics(machine) or dma_buf.taken_by(machine):
        return lacks
    answers = dma_buf.answers(machine).values()
    return "no RDMA device takes one: " + "; ".join(dict.fromkeys(one.why for one in answers))


def who_needs_it(machine: Machine, lacks: str) -> str:
    """Returns a text that says who needs the module. LACKS is the reason why dma-buf does not work,
    and is empty if dma-buf works."""
    if machine.loaded("ib_core") and not peer_memory_in(machine):
        return BOTH_MISSING if lacks else USELESS
    if ways.peermem_loaded(machine):
        return EITHER
    return NO_OTHER_WAY if lacks else FOR_SOME
