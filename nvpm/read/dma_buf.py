# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether this node supports dma-buf, and which RDMA devices take a dma-buf.

Each device is asked in the same way as programs ask (ask.py). If asking is impossible, the kernel's
list of functions shows whether the device's driver has the verb for dma-buf. The kernel's version
would be wrong for drivers that a distribution or an OFED has changed; the list is right for them,
too."""

import re
from typing import Dict, List, NamedTuple

from . import ask
from .kernel_symbols import dma_buf_drivers, dma_buf_in
from .machine import Machine, once
from .pci import Nic, nics
from .place import without_gpudirect

LIBVERBS = (
    "/usr/lib64/libibverbs.so.1",
    "/usr/lib/libibverbs.so.1",
    "/usr/lib/*/libibverbs.so.1",
)

# Drivers of PCI devices whose verbs are in a module with another name.
VERBS_OF = {
    "mlx5_core": "mlx5_ib",
    "ice": "irdma",
    "i40e": "irdma",
    "idpf": "irdma",
    "bnxt_en": "bnxt_re",
    "mana": "mana_ib",
}


class Answer(NamedTuple):
    """Whether an RDMA device takes a dma-buf, and the source of this answer."""

    yes: bool
    why: str


def exported(machine: Machine) -> bool:
    """Returns whether the NVIDIA driver exports dma-bufs. Only the open driver does."""
    return machine.loaded("nvidia") and "P" not in machine.text("/sys/module/nvidia/taint")


@once
def lacking(machine: Machine) -> str:
    """Returns the first requirement of dma-buf that the node lacks; an empty string if all are
    met."""
    if not machine.loaded("nvidia"):
        return "the NVIDIA driver is not loaded"
    if not exported(machine):
        return "the NVIDIA driver is the proprietary one; only the open one has it"
    # A device that has looked at a descriptor proves dma-buf, whatever the list of functions says.
    if ask.YES in asked(machine).values():
        return ""
    if not dma_buf_in(machine):
        # Distributions and OFEDs bring dma-buf to older kernels, so the kernel's version counts
        # only after the list of functions.
        if [int(number) for number in re.findall(r"\d+", machine.kernel)[:2]] < [5, 12]:
            return f"kernel {machine.kernel} is older than 5.12"
        if machine.loaded("ib_uverbs"):
            return "the RDMA core that is loaded does not have it"
        return "the RDMA core is not loaded"
    library = next(iter(machine.glob(*LIBVERBS)), "")
    if library and b"ibv_reg_dmabuf_mr" not in machine.read(library):
        return f"{library} is older than rdma-core 34"
    return ""


@once
def asked(machine: Machine) -> Dict[str, str]:
    """Returns the answers of the devices."""
    # The files of another machine must not be mixed with the devices of this machine.
    found = {} if machine.root or not nics(machine) else ask.devices()
    machine.tell("ibv_reg_dmabuf_mr() of no descriptor", found or "nobody was asked")
    return found


@once
def answers(machine: Machine) -> Dict[str, Answer]:
    """Returns for each RDMA device whether the device takes a dma-buf, and how this is known."""
    return {nic.name: answer(machine, nic) for nic in nics(machine)}


def answer(machine: Machine, nic: Nic) -> Answer:
    if nic.software:
        return Answer(False, f"software over {nic.software}")
    if nic.driver() == "efa" and without_gpudirect(machine):
        return Answer(False, without_gpudirect(machine))
    said = asked(machine).get(nic.name)
    if said:
        return Answer(said == ask.YES, f"it answers {said}")
    driver = nic.driver() or "unknown"
    driver = VERBS_OF.get(driver, driver)
    if driver in dma_buf_drivers(machine):
        return Answer(True, f"its driver {driver} has the verb")
    return Answer(False, f"its driver {driver} does not have the verb")


@once
def taken_by(machine: Machine) -> List[str]:
    """Returns the RDMA devices that take a dma-buf of GPU memory."""
    if lacking(machine):
        return []
    return [name for name, answer in answers(machine).items() if answer.yes]
