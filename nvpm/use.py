# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What is registered now, by whom, and what has gone wrong: the module's statistics."""

import os

from .fact import bad, first, good, none, unread, warn
from .machine import STATISTICS, open_devices

FIGURES = ("regions", "bytes", "registrations", "revocations")

# Why registrations have failed, and what to do.
FAILURES = {
    "failed_no_memory": "Registrations found no room in the GPU's BAR1, or the kernel no memory. nvidia-smi -q -d MEMORY shows BAR1: register less, or turn on a large BAR in the firmware (above 4G decoding, resizable BAR).",
    "failed_not_supported": "The memory or the device does not support it: dmesg | grep nv_peer_mem says which.",
    "failed_freed": "A program freed GPU memory while it was registering it: correct the program.",
    "failed_driver": "The NVIDIA driver refused: dmesg | grep -E 'NVRM|nv_peer_mem'",
    "failed_left_behind": "A user has as many registrations as allowed in left_behind (16384, or 4 TiB of them): "
    "this user cannot register more until some of that memory is freed. nvpm regions lists "
    "them as left.",
    "left_behind": "These registrations ended in another process than the one that made them, for example in "
    "a child that inherited them: their GPU memory stays pinned until the process that made "
    "them frees it, or ends. Deregister where it was registered. They do not keep nv_peer_mem from "
    "being unloaded.",
}

# What the driver says of a GPU and a device that have met.
PAIRS = {
    "ours": (good, "mapped by nv_peer_mem; the NVIDIA driver agrees"),
    "driver": (none, "mapped by the NVIDIA driver, page by page: it alone knows the addresses"),
    "unasked": (none, "mapped by nv_peer_mem; the NVIDIA driver cannot be asked"),
}
REFUSED = (
    bad,
    "the NVIDIA driver does not let this device reach this GPU",
    "Use a device below the same PCI switch as the GPU, or see whether the driver's option NVreg_GrdmaPciTopoCheckOverride is 2 (grep -r NVreg_Grdma /etc/modprobe.d).",
)


def facts(machine):
    figures = {name: machine.text(STATISTICS + name) for name in (*FIGURES, *FAILURES)}
    for name, count in figures.items():
        yield from first(
            "use",
            name,
            [
                (name in FAILURES and count not in ("", "0"), warn, count, FAILURES.get(name)),
                (count, good if name.startswith("failed_") else none, count),
            ],
        )
    pairs = machine.lines(STATISTICS + "pairs")
    yield from first(
        "use",
        "pairs",
        [
            (
                os.geteuid() and machine.exists(STATISTICS + "pairs") and not pairs,
                unread,
                "which GPUs and RDMA devices have met",
            )
        ],
    )
    for gpu, device, said in (line.split()[:3] for line in pairs):
        yield from first("use", f"{gpu} {device}", [(True, *PAIRS.get(said, REFUSED))])
    if figures["regions"] not in ("", "0"):
        yield from first(
            "use", "processes", [(os.geteuid(), unread, "which processes have an RDMA device open")]
        )
        for process, name in open_devices(machine):
            yield none("use", "process %d" % process, name + " has an RDMA device open")
