# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether this node supports dma-buf, and which RDMA devices take a dma-buf.

Each device is asked in the same way as programs ask (ask.py). If asking is impossible, the kernel's
list of functions shows whether the device's driver has the verb for dma-buf. The kernel's version
would be wrong for drivers that a distribution or an OFED has changed; the list is right for them,
too.

One answer misleads: a driver of mlx5 with the patch "RDMA/mlx5: Create ODP EQ for non-pinned dmabuf
MRs" looks at the descriptor first, and then refuses each dma-buf with EOPNOTSUPP if the device
cannot page on demand (ODP). Only the versions of kernel.org show whether a driver has the patch."""

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


# The driver that needs a device with ODP, and the versions of kernel.org from which on the driver
# needs such a device. Each long-term kernel has its own version.
NEEDS_ODP = "mlx5_core"
SINCE, SINCE_IN = [7, 2], {"6.12": 111, "6.18": 53}
NO_ODP = "it answers EBADF, but cannot page on demand (ODP), "
REFUSED = "without which mlx5 takes none since kernel 7.2, 6.18.53 and 6.12.111"
PERHAPS_REFUSED = "without which a newer mlx5 takes none"


class Answer(NamedTuple):
    """Whether an RDMA device takes a dma-buf, and the source of this answer."""

    yes: bool
    why: str
    # Whether the answer is certain.
    sure: bool = True
    # Whether the device says yes to a program that asks, and then refuses each dma-buf.
    misleads: bool = False


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
    if {ask.YES, ask.WITHOUT_ODP} & {*asked(machine).values()}:
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
    if said == ask.WITHOUT_ODP and nic.driver() == NEEDS_ODP:
        return without_odp(machine)
    if said:
        error = said.split()[0]
        return Answer(error == ask.YES, f"it answers {error}")
    driver = nic.driver() or "unknown"
    driver = VERBS_OF.get(driver, driver)
    if driver in dma_buf_drivers(machine):
        return Answer(True, f"its driver {driver} has the verb")
    return Answer(False, f"its driver {driver} does not have the verb")


@once
def without_odp(machine: Machine) -> Answer:
    """Returns the answer of an mlx5 device that cannot page on demand. Most drivers take dma-bufs
    for such a device, so a program may try."""
    version = [int(number) for number in re.findall(r"\d+", machine.kernel)[:3]]
    least = SINCE_IN.get(".".join(map(str, version[:2])))
    patched = version >= SINCE or (least is not None and version[2:] >= [least])
    # The kernel marks a module with O if the module does not belong to the kernel.
    if patched and "O" not in machine.text(f"/sys/module/{VERBS_OF[NEEDS_ODP]}/taint"):
        return Answer(False, NO_ODP + REFUSED, misleads=True)
    return Answer(True, NO_ODP + PERHAPS_REFUSED, sure=False)


@once
def taken_by(machine: Machine) -> List[str]:
    """Returns the RDMA devices that take a dma-buf of GPU memory."""
    if lacking(machine):
        return []
    return [name for name, answer in answers(machine).items() if answer.yes]
