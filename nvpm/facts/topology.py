# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about the connections of GPUs and RDMA devices. The distances have the same names as in
nvidia-smi topo -m. Other facts are about bridges that redirect data, and about links that are
slower than possible."""

from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from ..read.machine import Machine
from ..read.pci import Gpu, Pci, gpus, nics, number, pci_at
from ..read.place import container, virtual
from ..read.root_complex import forwards
from . import vf
from .fact import Fact, Facts, good, info, unread, warn

DISTANCES = PIX, PXB, PHB, NODE, SYS = "PIX", "PXB", "PHB", "NODE", "SYS"

ACS_CAPABILITY, REQUEST_REDIRECT, COMPLETION_REDIRECT = 13, 1 << 2, 1 << 3

NCCL_COHERENT = "Only NCCL before 2.27 needs a setting: NCCL_NET_GDR_C2C=1, which 2.26 knows."
NCCL_PHB = "Only NCCL needs a setting: NCCL_NET_GDR_LEVEL=PHB."
# If two devices are below different root ports, their distance does not prove that data gets
# through.
NOT_PROVEN = (
    "Some root complexes drop requests between their root ports, or only those that read: nvpm "
    "selftest shows it, in both directions. If it passes, NCCL needs NCCL_NET_GDR_LEVEL=PHB."
)
NONE_NEAR = (
    "No RDMA device is near. Put one into a slot of this GPU's {}. Until then, NCCL uses GPUDirect "
    "only with NCCL_NET_GDR_LEVEL=SYS, and may be slower with it."
)
REDIRECTS = "redirect is on at {}: data between GPUs and RDMA devices is routed through the CPU"
NO_REDIRECT = (
    "For each of them, until the next reboot: setpci -s {0} ECAP_ACS+6.w=0:c. "
    "For good: ACS off in the firmware, or pci=disable_acs_redir={0} on the kernel's command line. "
    "Not on a machine that gives these devices to virtual machines: ACS keeps them apart."
)
RESEAT = (
    "Take the card out and put it in again, clean its contacts, look at riser, cable and the "
    "firmware's setting of the slot."
)
WIDER_SLOT = (
    "Put the card into a wider slot, or see whether the firmware divides this one (bifurcation)."
)
FASTER_SLOT = (
    "See the firmware's setting of the slot's speed; a riser or a cable that is not made for it, "
    "or a bad contact, lowers it too."
)

# `info` on a virtual machine, and `warn` on a physical machine. A virtual machine does not show the
# real connections, so nvpm does not judge them there.
Doubt = Callable[..., Fact]


def facts(machine: Machine) -> Facts:
    doubt = info if virtual(machine) else warn
    between: List[str] = []
    for gpu in gpus(machine):
        if not gpu.driver.startswith("vfio"):
            yield from distance_facts(machine, gpu, between)
    yield acs(machine, between, doubt)
    for gpu in gpus(machine):
        yield link_fact(f"GPU {gpu.name}", gpu.pci, doubt, idles=True)
    for nic in nics(machine):
        # A virtual function shows no link of its own.
        if nic.pci and not nic.software and not vf.is_one(nic.pci):
            yield link_fact(f"RDMA device {nic.name}", nic.pci, doubt)
    yield from bridge_facts(machine, doubt)


def several_nodes(machine: Machine) -> bool:
    online = machine.text("/sys/devices/system/node/online")
    return "," in online or "-" in online


# ---- distances ----


def relation(machine: Machine, one: Pci, other: Pci) -> Tuple[str, List[str]]:
    """Returns the distance of two devices, and the bridges on the path between them. Bridges that
    are above both devices are left out."""
    if one.path[0] != other.path[0]:
        # If the machine has only one NUMA node, both devices are at this node, even if no file says
        # so.
        unsaid = one.node == other.node == -1 and not several_nodes(machine)
        return (NODE if one.node == other.node >= 0 or unsaid else SYS), []
    pairs = zip(one.path + [""], other.path + [""])
    common = next(at for at, (mine, its) in enumerate(pairs) if mine != its)
    if common == 1:
        return PHB, []
    farther = max(len(one.path), len(other.path)) - common
    return (PXB if farther > 2 else PIX), one.path[common:-1] + other.path[common:-1]


def distance_facts(machine: Machine, gpu: Gpu, between: List[str]) -> Facts:
    """Yields the distance from the GPU to each RDMA device, and a fact about the nearest device.
    Appends the bridges between the GPU and the devices to BETWEEN."""
    found: Dict[str, List[str]] = {}
    for nic in nics(machine):
        if nic.pci and nic.pci.path:
            distance, bridges = relation(machine, gpu.pci, nic.pci)
            found.setdefault(distance, []).append(nic.name)
            between += [bridge for bridge in bridges if bridge not in between]
            yield info("distance", f"{gpu.name} {nic.name}", distance)
    if found:
        yield nearest(machine, gpu, found)


def unproven(machine: Machine) -> str:
    """Returns why no distance proves that data gets from device to device on this machine. Returns
    an empty string if some GPU and some RDMA device are below one switch, or at a root complex that
    is known to forward data."""
    if container(machine):
        return ""
    if virtual(machine):
        return "in a virtual machine"
    found = [
        relation(machine, gpu.pci, nic.pci)[0]
        for gpu in gpus(machine)
        for nic in nics(machine)
        if nic.pci and nic.pci.path and gpu.pci.path
    ]
    coherent = any(gpu.coherent for gpu in gpus(machine))
    if not found or coherent or PIX in found or PXB in found:
        return ""
    if forwards(machine, across=PHB not in found):
        return ""
    return "through this root complex" if PHB in found else "between two root complexes"


def nearest(machine: Machine, gpu: Gpu, found: Dict[str, List[str]]) -> Fact:
    """Judges only the RDMA device that is nearest to the GPU. Each GPU needs one near device; that
    other devices are far away is normal."""
    name, least = f"{gpu.name} nearest", min(found, key=DISTANCES.index)
    value = ", ".join(found[least])
    if virtual(machine):
        return info("distance", name, value)
    if least in (PIX, PXB):
        return good("distance", name, value)
    # The memory of a coherent GPU is reached through the processor, so the data passes the
    # processor at any distance.
    if gpu.coherent and least != SYS:
        return good("distance", name, value, NCCL_COHERENT)
    if least == PHB and forwards(machine, across=False):
        return good("distance", name, value, NCCL_PHB)
    if least == PHB:
        value = f"{value}, at another root port: nothing shows that data gets through"
        return info("distance", name, value, NOT_PROVEN)
    advice = NONE_NEAR.format("processor" if gpu.coherent else "root complex")
    return warn("distance", name, value, advice)


# ---- bridges that redirect ----


def extended(config: List[int], capability: int) -> int:
    """Returns the first register after the header of an extended capability; 0 if the device does
    not have the capability."""
    at = 64
    for _ in range(960):
        if not 64 <= at < len(config) - 1:
            break
        if config[at] & 0xFFFF == capability:
            return config[at + 1]
        at = config[at] >> 22
    return 0


def acs_control(config: List[int]) -> int:
    """Returns the control register of access control services (ACS)."""
    return extended(config, ACS_CAPABILITY) >> 16


def acs(machine: Machine, bridges: List[str], doubt: Doubt) -> Optional[Fact]:
    """Judges whether bridges send packets between their ports up to the root complex, which is a
    detour."""
    configs = {bridge: pci_at(machine, bridge).config(4096) for bridge in bridges}
    redirect = [
        bridge
        for bridge, config in configs.items()
        if acs_control(config) & (REQUEST_REDIRECT | COMPLETION_REDIRECT)
    ]
    if redirect:
        value = REDIRECTS.format(" ".join(redirect))
        return doubt("PCI", "ACS", value, NO_REDIRECT.format(redirect[0]))
    if any(len(config) <= 16 for config in configs.values()):
        return unread("PCI", "ACS", "ACS of the bridges")
    return good("PCI", "ACS", "redirect is off") if bridges else None


# ---- links ----


class Link(NamedTuple):
    now: str
    # Why the link is slower than both ends allow, and advice. Both texts are empty for a good link.
    reason: str = ""
    advice: str = ""


def judge(pci: Pci, upper: Pci, idles: bool = False) -> Link:
    """Judges the link between PCI and UPPER, the bridge above it. IDLES says that PCI slows its
    link down while it is idle."""
    now = f"{pci.speed} x{pci.width}"
    own, fastest = number(pci.max_width), number(pci.max_speed)
    full = min(own, number(upper.max_width) or own)
    best = min(fastest, number(upper.max_speed) or fastest)
    if number(pci.width) < full:
        return Link(now, f"both ends can x{full:g}", RESEAT)
    if full < own:
        return Link(now, f"the slot has x{full:g}, the device can x{pci.max_width}", WIDER_SLOT)
    if number(pci.speed) >= best:
        return Link(now)
    if idles:
        return Link(f"{now}, can {best:g} GT/s: GPUs are slower when idle")
    return Link(now, f"both ends can {best:g} GT/s", FASTER_SLOT)


def link_fact(section: str, pci: Pci, doubt: Doubt, idles: bool = False) -> Optional[Fact]:
    """Judges the link between a device and its slot."""
    if not number(pci.width):
        return None
    upper = pci_at(pci.machine, pci.path[-2] if len(pci.path) > 2 else "")
    link = judge(pci, upper, idles)
    if link.reason:
        return doubt(section, "link", f"{link.now}: {link.reason}", link.advice)
    return good(section, "link", link.now)


def bridge_facts(machine: Machine, doubt: Doubt) -> Facts:
    """Yields a fact about each link between two bridges, and no link twice. A path begins with the
    root complex. Then come pairs of bridges that are the two ends of a link: the root port and the
    upstream port of a switch, then the downstream port of that switch and the next upstream
    port."""
    pcis = [gpu.pci for gpu in gpus(machine)] + [nic.pci for nic in nics(machine) if nic.pci]
    uppers = {
        pci.path[at]: pci.path[at - 1] for pci in pcis for at in range(2, len(pci.path) - 1, 2)
    }
    fast = 0
    for name, upper in uppers.items():
        pci = pci_at(machine, name)
        if number(pci.width):
            link = judge(pci, pci_at(machine, upper))
            if link.reason:
                yield doubt("PCI", f"link {name}", f"{link.now}: {link.reason}", link.advice)
            else:
                fast += 1
    if fast:
        yield good("PCI", "links of bridges", f"as fast as both ends can: {fast}")
