# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about virtual functions (SR-IOV). A virtual function has no identity unless the host gave
an identity. The physical function has the PCI settings and the link of its virtual functions."""

from typing import Optional

from ..read.machine import Machine
from ..read.pci import Nic, Pci
from .fact import Fact, Facts, bad, warn

# The product numbers of the virtual functions of ConnectX-4 to ConnectX-8 and BlueField, from the
# list of devices in Linux' drivers/net/ethernet/mellanox/mlx5/core/main.c.
MLX5 = frozenset({"0x1014", "0x1016", "0x1018", "0x101a", "0x101c", "0x101e", "0xa2d3"})
MELLANOX = "0x15b3"
NO_GUID, NO_MAC = "0000:0000:0000:0000", "00:00:00:00:00:00"

SET_GUID = (
    "On the host: ip link set PF vf N node_guid GUID, and port_guid, then take the virtual "
    "function from its driver and give it back (unbind and bind of mlx5_core), before it goes to a "
    "virtual machine or a pod. With an SR-IOV operator: its policy and the ib-sriov CNI set them."
)
SET_MAC = (
    "On the host: ip link set PF vf N mac MAC, and state auto, before the virtual function goes to "
    "a virtual machine or a pod."
)


def physical(pci: Pci) -> str:
    """Returns the address of the physical function; an empty string if it is not of this system."""
    return pci.machine.target(f"{pci.directory}/physfn").rpartition("/")[2]


def is_one(pci: Pci) -> bool:
    """Returns whether this is a virtual function. In a virtual machine, only its product number
    shows that."""
    known = pci.text("vendor") == MELLANOX and pci.text("device") in MLX5
    return known or pci.machine.exists(f"{pci.directory}/physfn")


def text(pci: Pci) -> str:
    if not is_one(pci):
        return ""
    return ", a virtual function" + (f" of {physical(pci)}" if physical(pci) else "")


def facts(machine: Machine, nic: Nic, section: str) -> Facts:
    """Yields facts about a missing identity, which only a virtual function can miss."""
    if nic.pci:
        yield guid(machine, nic, section)
        yield from port_guids(machine, nic, section)
        yield address(machine, nic, nic.pci, section)


def judged(machine: Machine, nic: Nic, section: str, name: str, value: str, advice: str) -> Fact:
    """Returns a defect if no port of the device is up, because then the missing identity is the
    reason."""
    states = map(machine.text, machine.glob(f"{nic.directory}/ports/*/state"))
    up = any(state.endswith("ACTIVE") for state in states)
    return (warn if up else bad)(section, name, value, advice)


def guid(machine: Machine, nic: Nic, section: str) -> Optional[Fact]:
    found = machine.text(f"{nic.directory}/node_guid")
    if found != NO_GUID:
        return None
    value = f"{found}: the host gave this virtual function none, so its port does not come up"
    return judged(machine, nic, section, "node GUID", value, SET_GUID)


def port_guids(machine: Machine, nic: Nic, section: str) -> Facts:
    """Yields the InfiniBand ports without a GUID, which is the second half of the port's first
    GID."""
    for port in machine.glob(f"{nic.directory}/ports/*"):
        gid, layer = machine.text(f"{port}/gids/0"), machine.text(f"{port}/link_layer")
        if layer == "InfiniBand" and gid.endswith(f":{NO_GUID}"):
            value = f"port {port.rpartition('/')[2]} has none, so it does not come up"
            yield judged(machine, nic, section, "port GUID", value, SET_GUID)


def address(machine: Machine, nic: Nic, pci: Pci, section: str) -> Optional[Fact]:
    """Judges the hardware address of the network interface over an Ethernet device."""
    interfaces = [
        place.rpartition("/")[0]
        for place in machine.glob("/sys/class/net/*/device")
        if machine.target(place).rpartition("/")[2] == pci.address
    ]
    interfaces += machine.glob(f"{pci.directory}/net/*")
    if not any(machine.text(f"{place}/address") == NO_MAC for place in interfaces):
        return None
    value = f"{NO_MAC}: the host gave this virtual function none"
    return judged(machine, nic, section, "MAC", value, SET_MAC)
