# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the kernel's list of functions. The list shows whether the RDMA core has peer memory and
dma-buf, and which drivers have the verb for dma-buf."""

import re
from typing import Dict, Set

from .machine import Machine, once

PEER_MEMORY, DMA_BUF = "ib_register_peer_memory_client", "ib_umem_dmabuf_get"
# A driver's verb, as in mlx5_ib_reg_user_mr_dmabuf.
VERB = "_reg_user_mr_dmabuf"

# In the list, the compiler may have added a suffix to a function's name, and the name of a module
# stands in brackets.
WANTED = re.compile(
    rf" ({PEER_MEMORY}|{DMA_BUF}|\w+{VERB})(?:\.[\w.]+)?(?:[ \t]+\[(\w+)\])?$".encode(),
    re.MULTILINE,
)


@once
def symbols(machine: Machine) -> Dict[str, str]:
    """Returns the module of each function that WANTED matches. The list is long, so it is read only
    once."""
    found = WANTED.findall(machine.read("/proc/kallsyms"))
    return {name.decode(): where.decode() or "the kernel itself" for name, where in reversed(found)}


def peer_memory_in(machine: Machine) -> str:
    """Returns the module that has the function by which clients register; an empty string if no
    module has this function."""
    return symbols(machine).get(PEER_MEMORY, "")


def dma_buf_in(machine: Machine) -> str:
    """Returns the module that imports a dma-buf for drivers; an empty string if no module does."""
    return symbols(machine).get(DMA_BUF, "")


@once
def dma_buf_drivers(machine: Machine) -> Set[str]:
    """Returns the drivers that have the verb for dma-buf. The name of the verb's function begins
    with the name of the driver."""
    return {name[: -len(VERB)] for name in symbols(machine) if name.endswith(VERB)}
