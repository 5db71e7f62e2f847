# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the networks and the mounted storage that stop when the RDMA stack is restarted."""

import os
import re
from typing import Dict, List, Set

from .machine import Machine, once

MELLANOX = "0x15b3"
INTERFACES = "/sys/class/net/"
OPEN_VSWITCH = "ovs-system"

# Modules of storage that use the RDMA stack, or that an OFED installs for such storage. While one
# of these modules is in use, the RDMA stack cannot be unloaded.
STORAGE = (
    *("nvme", "nvme_core", "nvme_rdma", "nvmet", "nvmet_rdma", "ib_iser", "ib_isert", "ib_srp"),
    *("ib_srpt", "rpcrdma", "svcrdma", "xprtrdma", "ko2iblnd", "beegfs", "smbdirect", "cifs"),
    *("rds_rdma", "lnet", "lustre", "gpfs", "mmfs26"),
)
# Programs of GPFS and Weka use the cards directly, so these file systems hold no module.
BY_CARD = ("beegfs", "gpfs", "wekafs")
NETWORK_FILE_SYSTEMS = (*BY_CARD, "lustre", "ceph")
STACK = ("mlx_compat", "mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "rdma_cm")


@once
def on_devices(machine: Machine) -> Dict[str, str]:
    """Returns the interfaces of cards whose driver belongs to an OFED, and the bonds, bridges and
    VLANs above these interfaces. Each name comes with the interface of the card itself."""
    found: Dict[str, str] = {}
    for place in machine.glob(INTERFACES + "*"):
        card = machine.target(f"{place}/device")
        if card and machine.text(f"{place}/device/vendor") == MELLANOX:
            found[os.path.basename(place)] = os.path.basename(place)
    for _ in range(4):
        for name, card in list(found.items()):
            for upper in uppers(machine, name):
                found.setdefault(upper, card)
    return found


def uppers(machine: Machine, name: str) -> List[str]:
    """Returns the interfaces that use the interface NAME."""
    master = os.path.basename(machine.link(f"{INTERFACES}{name}/master"))
    links = machine.glob(f"{INTERFACES}{name}/upper_*")
    return [*filter(None, [master]), *(os.path.basename(link)[len("upper_") :] for link in links)]


def default_routes(machine: Machine) -> Set[str]:
    """Returns the interfaces that have a default route of IPv4 or IPv6."""
    found = set()
    for line in machine.lines("/proc/net/route")[1:]:
        fields = line.split()
        if len(fields) > 1 and fields[1] == "00000000" and fields[7:8] in ([], ["00000000"]):
            found.add(fields[0])
    for line in machine.lines("/proc/net/ipv6_route"):
        fields = line.split()
        if len(fields) == 10 and fields[0] == "0" * 32 and fields[1] == "00":
            found.add(fields[9])
    return found - {"lo"}


@once
def networks(machine: Machine) -> List[str]:
    """Returns the networks that stop when the cards' drivers are unloaded."""
    cards = dict(on_devices(machine))
    routes = []
    switched = next((card for name, card in cards.items() if name == OPEN_VSWITCH), "")
    for name in sorted(default_routes(machine)):
        # The ports of Open vSwitch, such as br-ex, have no link to the cards of the switch.
        if switched and not machine.exists(f"{INTERFACES}{name}/device"):
            cards.setdefault(name, switched)
        if name not in cards:
            continue
        over = "" if cards[name] == name else f", over {cards[name]}"
        routes.append(f"this node's default route ({name}{over})")
    names = {os.path.basename(place) for place in machine.glob(INTERFACES + "*")} - {"lo"}
    up = {name for name in names if machine.text(f"{INTERFACES}{name}/operstate") == "up"}
    only = up and up <= set(cards)
    return routes or ([f"this node's only network ({', '.join(sorted(up))})"] if only else [])


@once
def carries_traffic(machine: Machine) -> bool:
    """Returns whether some network is reached by an interface of the cards. Storage may then be
    reached by this interface, too."""
    cards = on_devices(machine)
    lines = machine.lines("/proc/net/route")[1:]
    return any(line.split()[:1] and line.split()[0] in cards for line in lines)


@once
def storage(machine: Machine) -> List[str]:
    """Returns the file systems and disks that are reached by the cards, or may be reached by
    them."""
    found = []
    for line in machine.lines("/proc/mounts"):
        source, place, kind, options = (line.split() + [""] * 4)[:4]
        remote = kind in NETWORK_FILE_SYSTEMS or kind.startswith(("nfs", "cifs", "smb3"))
        by_rdma = re.search(r"\brdma\b", options) or kind in BY_CARD or "@o2ib" in source
        if remote and (by_rdma or carries_traffic(machine)):
            found.append(f"{place} ({kind})")
    for place in machine.glob("/sys/class/nvme/nvme*"):
        transport = machine.text(f"{place}/transport")
        if transport == "rdma" or (transport == "tcp" and carries_traffic(machine)):
            found.append(os.path.basename(place))
    return found


@once
def holders(machine: Machine) -> List[str]:
    """Returns the modules of storage that keep the RDMA stack from being unloaded."""
    found = [
        os.path.basename(place)
        for module in STACK
        for place in machine.glob(f"/sys/module/{module}/holders/*")
    ]
    return [name for name in dict.fromkeys(found) if name in STORAGE]


def stopped(machine: Machine) -> str:
    """Returns what a restart of the RDMA stack would stop; an empty string if it would stop
    nothing."""
    parts = networks(machine) + [f"mounted storage: {', '.join(storage(machine))}"] * bool(
        storage(machine)
    )
    return " and ".join(parts)
