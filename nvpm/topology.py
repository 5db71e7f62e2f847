# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""How GPUs and RDMA devices are connected: distances, which have the names that nvidia-smi topo -m gives them, bridges that redirect, and links
that are slower than they could be."""

from .fact import first, good, none, unread, warn
from .pci import device, gpus, nics, number
from .place import virtual

DISTANCES = PIX, PXB, PHB, NODE, SYS = "PIX", "PXB", "PHB", "NODE", "SYS"

ACS_CAPABILITY, REQUEST_REDIRECT, COMPLETION_REDIRECT = 13, 1 << 2, 1 << 3


def facts(machine):
    # A virtual machine does not show how the real one is made: there nothing is judged.
    doubt, between = none if virtual(machine) else warn, []
    for gpu in gpus(machine):
        if not gpu.driver.startswith("vfio"):
            yield from distance_facts(machine, gpu, between)
    yield from acs_facts(machine, between, doubt)
    for gpu in gpus(machine):
        yield from link_facts("GPU " + gpu.name, gpu.pci, doubt, idles=True)
    for nic in nics(machine):
        if nic.pci and not nic.software:
            yield from link_facts("RDMA device " + nic.name, nic.pci, doubt)
    yield from bridge_facts(machine, doubt)


def several_nodes(machine):
    return any(sign in machine.text("/sys/devices/system/node/online") for sign in ",-")


def relation(machine, one, other):
    """The distance of two devices, and the bridges between them below the last one that both have above them."""
    if one.path[0] != other.path[0]:
        # A machine with one node need not say which.
        unsaid = one.node == other.node == -1 and not several_nodes(machine)
        return (NODE if one.node == other.node >= 0 or unsaid else SYS), []
    common = next(
        at for at, (mine, its) in enumerate(zip(one.path + [""], other.path + [""])) if mine != its
    )
    if common == 1:
        return PHB, []
    farther = max(len(one.path), len(other.path)) - common
    return (PXB if farther > 2 else PIX), one.path[common:-1] + other.path[common:-1]


def distance_facts(machine, gpu, between):
    """The distance to each RDMA device, and the nearest. Machines are built so that some of many are far away; but a GPU needs a near one."""
    found = {}
    for nic in nics(machine):
        if nic.pci and nic.pci.path:
            distance, bridges = relation(machine, gpu.pci, nic.pci)
            found.setdefault(distance, []).append(nic.name)
            between += [bridge for bridge in bridges if bridge not in between]
            yield none("distance", f"{gpu.name} {nic.name}", distance)
    if not found:
        return
    least = min(found, key=DISTANCES.index)
    nearest = ", ".join(found[least])
    yield from first(
        "distance",
        gpu.name + " nearest",
        [
            (virtual(machine), none, nearest),
            (least in (PIX, PXB), good, nearest),
            # The data goes through the processor in any case, because the memory is the processor's.
            (
                gpu.coherent and least != SYS,
                good,
                nearest,
                "Only NCCL before 2.27 needs a setting: NCCL_NET_GDR_C2C=1, which 2.26 knows.",
            ),
            (least == PHB, good, nearest, "Only NCCL needs a setting: NCCL_NET_GDR_LEVEL=PHB."),
            (
                True,
                warn,
                nearest,
                "No RDMA device is near. Put one into a slot of this GPU's %s. Until then, NCCL uses GPUDirect only with NCCL_NET_GDR_LEVEL=SYS, and may be slower with it."
                % ("processor" if gpu.coherent else "root complex"),
            ),
        ],
    )


def acs_control(config):
    """The control register of access control services, from the list of extended capabilities; 0 without one."""
    at = 64
    for _ in range(960):
        if not 64 <= at < len(config) - 1:
            break
        if config[at] & 0xFFFF == ACS_CAPABILITY:
            return config[at + 1] >> 16
        at = config[at] >> 22
    return 0


def acs_facts(machine, bridges, doubt):
    """Bridges that send packets between their ports up to the root complex."""
    configs = {bridge: device(machine, bridge).config(4096) for bridge in bridges}
    redirect = [
        bridge
        for bridge in bridges
        if acs_control(configs[bridge]) & (REQUEST_REDIRECT | COMPLETION_REDIRECT)
    ]
    where = " ".join(redirect)
    yield from first(
        "PCI",
        "ACS",
        [
            (
                redirect,
                doubt,
                f"redirect is on at {where}: data between GPUs and RDMA devices is routed through the CPU",
                lambda: (
                    "For each of them, until the next reboot: setpci -s {0} ECAP_ACS+6.w=0:c. For good: ACS off in the firmware, or pci=disable_acs_redir={0} on the kernel's command line. Not on a machine that gives these devices to virtual machines: ACS keeps them apart.".format(
                        redirect[0]
                    )
                ),
            ),
            (any(len(config) <= 16 for config in configs.values()), unread, "ACS of the bridges"),
            (bridges, good, "redirect is off"),
        ],
    )


def judge(pci, upper, idles=False):
    """A link's speed and width; why it is slower than both ends can, empty if it is not; and what to do."""
    now, own, fastest = f"{pci.speed} x{pci.width}", number(pci.max_width), number(pci.max_speed)
    full, best = (
        min(own, number(upper.max_width) or own),
        min(fastest, number(upper.max_speed) or fastest),
    )
    if number(pci.width) < full:
        return (
            now,
            f"both ends can x{full:g}",
            "Take the card out and put it in again, clean its contacts, look at riser, cable and the firmware's setting of the slot.",
        )
    if full < own:
        return (
            now,
            f"the slot has x{full:g}, the device can x{pci.max_width}",
            "Put the card into a wider slot, or see whether the firmware divides this one (bifurcation).",
        )
    if number(pci.speed) < best and not idles:
        return (
            now,
            f"both ends can {best:g} GT/s",
            "See the firmware's setting of the slot's speed; a riser or a cable that is not made for it, or a bad contact, lowers it too.",
        )
    return (
        now
        + (f", can {best:g} GT/s: GPUs are slower when idle" if number(pci.speed) < best else ""),
        "",
        "",
    )


def link_facts(section, pci, doubt, idles=False):
    """The link between a device and what it is plugged into."""
    if number(pci.width):
        now, reason, todo = judge(
            pci, device(pci.machine, pci.path[-2] if len(pci.path) > 2 else ""), idles
        )
        yield from first(
            section, "link", [(reason, doubt, f"{now}: {reason}", todo), (True, good, now)]
        )


def bridge_facts(machine, doubt):
    """Each link between two bridges, once. On a path, root port and upstream port of a switch are the ends of one, then the next two."""
    paths = [one.pci.path for one in gpus(machine) + nics(machine) if one.pci]
    uppers = {path[at]: path[at - 1] for path in paths for at in range(2, len(path) - 1, 2)}
    links = {
        name: judge(device(machine, name), device(machine, upper))
        for name, upper in uppers.items()
        if number(device(machine, name).width)
    }
    for name, (now, reason, todo) in links.items():
        yield from first("PCI", "link " + name, [(reason, doubt, f"{now}: {reason}", todo)])
    fast = sum(not reason for _, reason, _ in links.values())
    yield from first(
        "PCI", "links of bridges", [(fast, good, "as fast as both ends can: %d" % fast)]
    )
