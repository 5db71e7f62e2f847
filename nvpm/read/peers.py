# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says whether the driver of an RDMA device asks for peer memory. The driver asks the RDMA core, or
NVIDIA's driver directly. A driver that never asks looks healthy, because registrations of other
memory succeed without asking."""

from typing import NamedTuple

from .dma_buf import VERBS_OF
from .machine import Machine, once
from .pairs import pairs
from .pci import Nic, nics
from .place import without_gpudirect
from .products import ASK, MAY, NO, OWN_PEER_MEMORY, YES


class Asks(NamedTuple):
    """Whether the driver of an RDMA device asks the RDMA core for peer memory, and the reason."""

    can: str
    why: str


def asks(machine: Machine, nic: Nic) -> Asks:
    """Returns whether the device's driver asks the RDMA core for peer memory."""
    if not nic.pci:
        return Asks(NO, "not a PCI device")
    if any(met.device == nic.pci.address for met in pairs(machine)):
        return Asks(YES, "it has asked")
    driver = nic.driver()
    if driver in ASK and not nic.software:
        return Asks(YES, driver)
    module = VERBS_OF.get(driver, driver)
    if nic.software:
        module = "siw" if nic.name.startswith("siw") else "rdma_rxe"
    if module in OWN_PEER_MEMORY and without_gpudirect(machine):
        return Asks(NO, f"{without_gpudirect(machine)}, so its driver {module} asks nobody")
    if module in OWN_PEER_MEMORY:
        return Asks(NO, f"its driver {module} never asks the RDMA core")
    # The kernel marks a module with O if the module does not belong to the kernel.
    if not driver or "O" in machine.text(f"/sys/module/{module}/taint"):
        return Asks(
            MAY, f"whether its driver {module or 'unknown'} asks the RDMA core is not known"
        )
    return Asks(NO, f"its driver {module} never asks the RDMA core")


def own_peer_memory(machine: Machine, nic: Nic) -> str:
    """Returns the name of this device's driver if that driver asks NVIDIA's driver for GPU memory
    directly, without the RDMA core and its clients; otherwise an empty string. The EFA driver says
    in the file `p2p` whether it can ask directly."""
    driver = nic.driver()
    if driver not in OWN_PEER_MEMORY or without_gpudirect(machine):
        return ""
    if nic.pci and nic.pci.text("p2p").startswith("NVIDIA"):
        return driver
    return ""


@once
def none_asks(machine: Machine) -> str:
    """Returns why no device's driver asks for peer memory; an empty string if the driver of some
    device asks."""
    found = [asks(machine, nic) for nic in nics(machine)]
    if not found or any(one.can != NO for one in found):
        return ""
    drivers = ", ".join(dict.fromkeys(one.why for one in found))
    return drivers if len(found) == 1 else f"no RDMA device can use it ({drivers})"
