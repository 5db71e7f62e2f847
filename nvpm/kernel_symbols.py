# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The kernel's own list of functions: whether the RDMA core has peer memory and dma-buf, and which
drivers have the verb for the latter."""

import re
from typing import Dict, Set

from .machine import Machine, once

PEER_MEMORY, DMA_BUF = "ib_register_peer_memory_client", "ib_umem_dmabuf_get"
# A driver's verb, as in mlx5_ib_reg_user_mr_dmabuf.
VERB = "_reg_user_mr_dmabuf"

# A function's name may have a suffix of the compiler's; a module's name stands in brackets.
WANTED = re.compile(
    rf" ({PEER_MEMORY}|{DMA_BUF}|\w+{VERB})(?:\.[\w.]+)?(?:[ \t]+\[(\w+)\])?$".encode(),
    re.MULTILINE,
)


@once
def symbols(machine: Machine) -> Dict[str, str]:
    """Which module has the functions that matter. The list is long: it is read once."""
    found = WANTED.findall(machine.read("/proc/kallsyms"))
    return {name.decode(): where.decode() or "the kernel itself" for name, where in reversed(found)}


def peer_memory_in(machine: Machine) -> str:
    """The module that has the function with which clients register; empty if none has."""
    return symbols(machine).get(PEER_MEMORY, "")


def dma_buf_in(machine: Machine) -> str:
    """The module that imports a dma-buf for drivers; empty if none does."""
    return symbols(machine).get(DMA_BUF, "")


@once
def dma_buf_drivers(machine: Machine) -> Set[str]:
    """The drivers that have the verb, by the names that their functions begin with."""
    return {name[: -len(VERB)] for name in symbols(machine) if name.endswith(VERB)}
