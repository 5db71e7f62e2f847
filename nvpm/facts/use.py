# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts from the module's statistics: how much memory is registered now, which processes have
registered memory, and how many registrations have failed."""

from time import sleep
from typing import Optional

from ..read import pairs, regions
from ..read.machine import Machine, statistics
from ..read.pci import gpus
from .fact import BAD, GOOD, NONE, Fact, Facts, good, info, judged, unread, warn

FIGURES = ("reachable_regions", "bytes", "registrations", "revocations")

# Causes of failed registrations, and advice.
FAILURES = {
    "failed_no_memory": (
        "Registrations found no room in the GPU's BAR1, or the kernel no memory. "
        "nvidia-smi -q -d MEMORY shows whether BAR1 is used up: then register less, or at fewer "
        "devices{bar1}. {gdrdrv}If it has room, free -h shows the kernel's."
    ),
    "failed_not_supported": (
        "The memory or the device does not support it: dmesg | grep nv_peer_mem says which."
    ),
    "failed_freed": (
        "A program freed GPU memory while it was registering it: correct the program."
    ),
    "failed_driver": "The NVIDIA driver refused: dmesg | grep -E 'NVRM|nv_peer_mem'",
    "failed_orphans": (
        "A user has as many orphans as allowed (16384, or 4 TiB of them): this user "
        "cannot register more until some of that memory is freed. nvpm regions lists "
        "them as orphaned."
    ),
    "orphans": (
        "These registrations ended in another process than the one that made them, for example in "
        "a child that inherited them: their GPU memory stays pinned until the process that made "
        "them frees it, or ends. Deregister where it was registered. They do not keep nv_peer_mem "
        "from being unloaded."
    ),
}

GDRDRV = "gdrdrv is loaded, and gdrcopy uses BAR1, too. "

# The NVIDIA driver's answers about a GPU and an RDMA device. The driver is asked when memory of the
# GPU is first registered with the device.
PAIRS = {
    pairs.OURS: (GOOD, "mapped by nv_peer_mem; the NVIDIA driver agrees", ""),
    pairs.DRIVER: (
        NONE,
        "mapped by the NVIDIA driver, page by page: it alone knows the addresses",
        "",
    ),
    pairs.REFUSED: (
        BAD,
        "the NVIDIA driver does not let this device reach this GPU",
        "Use a device below the same PCI switch as the GPU, or see whether the driver's option "
        "NVreg_GrdmaPciTopoCheckOverride is 2 (grep -r NVreg_Grdma /etc/modprobe.d).",
    ),
}


def facts(machine: Machine) -> Facts:
    counts = {name: machine.text(statistics(machine) + name) for name in (*FIGURES, *FAILURES)}
    for name, count in counts.items():
        yield figure(machine, name, count)
    yield from pair_facts(machine)
    if counts["reachable_regions"] not in ("", "0"):
        yield from process_facts(machine)


# Seconds between two looks at registrations whose memory is being freed. A revocation that works
# takes milliseconds.
PATIENCE = 1.0

NOT_REVOKED = (
    "The device has not answered, and the free of the memory waits for it with the NVIDIA driver's "
    "lock, so other programs that use the GPUs wait, too. See dmesg for lines about {device}. If "
    "the device's firmware fails, its driver ends the wait. Do not stop or unload that driver, "
    "which would wait, too: reboot the node."
)


def stuck_facts(machine: Machine) -> Facts:
    """Yields a warning for each registration whose revocation has waited for PATIENCE."""
    waiting = [one for one in regions.judged(machine) if one.state == "revoking"]
    if not waiting:
        return
    sleep(PATIENCE)
    still = regions.revoking(machine)
    names = regions.names_by_pci(machine)
    for one in waiting:
        if any(one.is_older(later) for later in still):
            device = names.get(one.pci, one.pci)
            value = (
                f"{device} does not end its use of {regions.size(one.length)} of GPU memory, which "
                f"process {one.process} ({one.command}) frees"
            )
            yield warn("use", "revocation", value, NOT_REVOKED.format(device=device))


def process_facts(machine: Machine) -> Facts:
    """Yields a fact for each process that has GPU memory registered. The processes are those in the
    module's own list. The open files of all processes would also show them, but reading these files
    would take seconds, and any user could prolong this."""
    if not machine.exists(regions.LIST):
        return
    try:
        found = regions.largest(machine)
    except regions.Unreadable:
        yield unread("use", "processes", "which processes have GPU memory registered")
        return
    yield from stuck_facts(machine)
    for process in found:
        ended = "" if process.running else ", which has ended,"
        value = f"{process.command}{ended} has {process.what}"
        yield info("use", f"process {process.number}", value)
    more = regions.count_of_processes(machine) - len(found)
    if more:
        yield info("use", "processes", f"{more} more with less memory: nvpm regions --summary")
    left_out = regions.left_out(machine, regions.judged(machine))
    if left_out:
        yield info("use", "registrations read", left_out)


def larger_bar1(machine: Machine) -> str:
    """Returns advice to enlarge BAR1 if the BAR1 of some GPU can be larger. Otherwise returns a
    text if some BAR1 has a fixed size, or an empty string."""
    if any(gpu.largest_bar1() > gpu.bar1() for gpu in gpus(machine)):
        return ", or turn on a large BAR in the firmware (above 4G decoding, resizable BAR)"
    return (
        "" if all(gpu.largest_bar1() for gpu in gpus(machine)) else "; BAR1 is of a fixed size here"
    )


def figure(machine: Machine, name: str, count: str) -> Optional[Fact]:
    if not count:
        return None
    if name in FAILURES and count != "0":
        gdrdrv = GDRDRV if machine.loaded("gdrdrv") else ""
        advice = FAILURES[name].format(bar1=larger_bar1(machine), gdrdrv=gdrdrv)
        return warn("use", name, count, advice)
    return (good if name.startswith("failed_") else info)("use", name, count)


def pair_facts(machine: Machine) -> Facts:
    if machine.exists(pairs.FILE) and not machine.read(pairs.FILE, 1):
        yield unread("use", "pairs", "which GPUs and RDMA devices have met")
    for gpu, device, said in pairs.pairs(machine):
        verdict, value, advice = PAIRS[said]
        yield judged(verdict, "use", f"{gpu} {device}", value, advice)
