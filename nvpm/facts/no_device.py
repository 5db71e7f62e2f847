# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Says why this node has no RDMA device. The device's driver may be refused or missing. One of its
two modules may be loaded, but not the other, for example if they belong to different RDMA stacks.
The network of this node may have no verbs."""

import os
from typing import List, NamedTuple, Optional

from ..read.machine import Machine, once
from ..read.network import MELLANOX
from ..read.pci import DEVICES, nics
from ..read.place import container
from .advice import Advice
from .core_advice import ofed, restart
from .fact import Fact, Facts, bad, info, warn
from .security import because, refused

# Vendors of RDMA cards on PCI, and the modules that make an RDMA device of such a card.
MODULES = {
    "0x15b3": ("mlx5_core", "mlx5_ib"),
    "0x1d0f": ("efa", "efa"),
    "0x14e4": ("bnxt_en", "bnxt_re"),
    "0x8086": ("ice", "irdma"),
    "0x1414": ("mana", "mana_ib"),
}
# Some of these vendors also make many other cards. A card of such a vendor counts only if its
# product number or its driver is one for RDMA.
AMAZON = "0x1d0f"
EFA = ("0xefa0", "0xefa1", "0xefa2", "0xefa3")
# HPE Slingshot has no verbs. Its libfabric provider cxi reaches GPU memory without them.
CXI = "HPE Slingshot has no verbs; programs reach GPU memory by libfabric's provider cxi"
# Google's gVNIC has no verbs either. Google's own plugins for NCCL move GPU memory by TCP.
GVE = "Google's network card has no verbs; NCCL reaches GPU memory by Google's TCPX or TCPXO"
WITHOUT_VERBS = {"0x17db": CXI, "0x1ae0": GVE}
# The class of a card on PCI with ports for InfiniBand.
INFINIBAND = "0x0207"
# The vendors in the order in which their cards are looked at.
RANK = ("0x15b3", "0x1d0f", *WITHOUT_VERBS, "0x1414", "0x14e4", "0x8086")

NOTHING_ON_PCI = (
    "lspci lists no card of a known vendor of RDMA devices: check slot, power and firmware; in a "
    "virtual machine, whether it was given one."
)
GIVE_DEVICES = (
    "Give the container the node's RDMA devices (--device /dev/infiniband, or an RDMA device "
    "plugin); nvpm on the node says whether it has any."
)
NO_DRIVER = (
    "modprobe {module}; dmesg | grep {module} shows why not. If there is no such module, install "
    "OFED or the kernel's modules (linux-modules-extra-{kernel} on Ubuntu)."
)
NO_EFA = (
    "Run AWS's EFA installer, or modprobe efa; dmesg | grep efa shows why the driver does not take "
    "the card."
)
GIVEN_UP = (
    "dmesg | grep mlx5 says why. Where the firmware does not answer any more (Fatal error, health "
    "recovery failed), a cold start of the node is needed. A device can also be in the network "
    "namespace of a pod (rdma system)."
)
GIVEN = "{} is given to a virtual machine (vfio): RDMA is done there."
HALF = (
    "{card} has its driver {core}, and no RDMA device: {verbs} is {state}. modprobe {verbs}, then "
    "dmesg | grep {verbs}. "
)
# Without an OFED, both modules are the kernel's own, and one of them is older than the other.
TWO_KERNELS = (
    'If it says "disagrees about version of symbol" or "Unknown symbol", {core} and ib_core are of '
    "two builds of the kernel: reboot into the newest kernel, and make the initramfs anew "
    "(update-initramfs -u, or dracut -f)."
)
TWO_STACKS = (
    'If it says "disagrees about version of symbol" or "Unknown symbol", {core} and ib_core are of '
    "two stacks, of OFED and of the kernel: {restart}. If udev loads the kernel's own modules "
    "again: echo 'blacklist mlx5_core' and 'blacklist mlx5_ib' >/etc/modprobe.d/inbox-rdma.conf, "
    "and make the initramfs anew (update-initramfs -u, or dracut -f)."
)
# The core of an OFED takes only drivers that were built for it.
BESIDE_OFED = (
    'If it says "disagrees about version of symbol" or "Unknown symbol", ib_core is that of OFED, '
    "and the kernel's own {verbs} does not fit it: build the vendor's {verbs} for OFED, or remove "
    "OFED and use dma-buf."
)


class Card(NamedTuple):
    address: str
    vendor: str
    driver: str


@once
def cards(machine: Machine) -> List[Card]:
    """Returns the cards on PCI that could be RDMA devices."""
    found = []
    for place in machine.glob(DEVICES + "*"):
        vendor, kind = machine.text(f"{place}/vendor"), machine.text(f"{place}/class")
        if vendor not in MODULES and vendor not in WITHOUT_VERBS or not kind.startswith("0x02"):
            continue
        driver = os.path.basename(machine.target(f"{place}/driver"))
        known = vendor in ("0x15b3", *WITHOUT_VERBS) or driver in MODULES[vendor]
        if known or machine.text(f"{place}/device") in EFA:
            found.append(Card(os.path.basename(place), vendor, driver))
    return found


def why(machine: Machine) -> Fact:
    """Returns a fact that says why a node with GPUs has no RDMA device."""
    found = cards(machine)
    # A container sees the cards of the node on PCI, but not their drivers' work.
    if container(machine):
        return bad("RDMA devices", "number", "0: this container has none", GIVE_DEVICES)
    if not found:
        return bad("RDMA devices", "number", 0, NOTHING_ON_PCI)
    # The card that is made for RDMA is looked at first, and a card without a driver before others.
    card = min(found, key=lambda card: (list(RANK).index(card.vendor), bool(card.driver)))
    if card.vendor in WITHOUT_VERBS:
        return info(
            "RDMA devices", "number", f"0: {WITHOUT_VERBS[card.vendor]}, without this module"
        )
    core, verbs = MODULES[card.vendor]
    for module in dict.fromkeys((core, "ib_core", verbs)):
        reason = refused(machine, module)
        if reason:
            value = f"0: {reason}{because(machine)}"
            return bad("RDMA devices", "number", value, Advice(machine, module)["to_enrol"])
    if card.driver.startswith("vfio"):
        return bad(
            "RDMA devices", "number", f"0: {card.address} is not here", GIVEN.format(card.address)
        )
    if not card.driver:
        value = f"0: the card {card.address} has no driver"
        return bad("RDMA devices", "number", value, no_driver(machine, card))
    return half(machine, card, verbs)


def no_driver(machine: Machine, card: Card) -> str:
    if card.vendor == AMAZON:
        return NO_EFA
    return NO_DRIVER.format(module=MODULES[card.vendor][0], kernel=machine.kernel)


def missing(machine: Machine) -> Facts:
    """Yields the cards made for RDMA that are no RDMA devices, on a node where other RDMA devices
    work."""
    if container(machine):
        return
    for card in cards(machine):
        name = f"card {card.address}"
        if card.vendor in (MELLANOX, AMAZON) and not card.driver:
            value = f"{card.address} has no driver, so it is no RDMA device"
            yield bad("RDMA devices", name, value, no_driver(machine, card))
        elif given_up(machine, card):
            value = f"{card.driver} drives {card.address}, which is no RDMA device"
            yield warn("RDMA devices", name, value, GIVEN_UP)


def given_up(machine: Machine, card: Card) -> bool:
    """Returns whether a card's driver has given up the RDMA device, as mlx5 does if the firmware
    does not answer any more. An Ethernet card can be used without RDMA, and the RDMA device of a
    virtual function may be in a pod, so only the physical functions for InfiniBand count."""
    place = f"{DEVICES}{card.address}"
    return (
        card.driver == "mlx5_core"
        and machine.text(f"{place}/class").startswith(INFINIBAND)
        and not machine.exists(f"{place}/physfn")
        and all(nic.pci is None or nic.pci.address != card.address for nic in nics(machine))
    )


def half(machine: Machine, card: Card, verbs: str) -> Fact:
    loaded = machine.loaded(verbs)
    state = "loaded, and has made none" if loaded else "not loaded"
    value = f"0: the card {card.address} has its driver {card.driver}, and {verbs} is {state}"
    if ofed(machine):
        value += f"; {ofed(machine)} is installed"
    text = TWO_KERNELS
    if ofed(machine):
        text = TWO_STACKS if card.vendor == MELLANOX else BESIDE_OFED
    advice = (HALF + text).format(
        card=card.address, core=card.driver, verbs=verbs, state=state, restart=restart(machine)
    )
    return bad("RDMA devices", "number", value, advice)


def headline(machine: Machine) -> Optional[str]:
    """Returns the reason for the first line of nvpm's output."""
    fact = why(machine)
    return fact.value.partition(": ")[2] or None
