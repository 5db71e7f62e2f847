# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Facts about parts of the kernel that do not answer. Programs that use these parts hang too."""

from typing import Dict, Iterator

from ..read.machine import Machine
from ..read.reader import NVIDIA_DRIVER
from .fact import Fact, bad

# The beginning of the name of a part, and advice.
ADVICE: Dict[str, str] = {
    NVIDIA_DRIVER: (
        "Programs that use a GPU hang at the same lock, and kill -9 does not end them. "
        "dmesg | nvpm explain - names the cause if the kernel has said it (Xid, blocked for more "
        "than). Save nvpm report first: only resetting the GPU or a reboot helps if it stays."
    ),
    "suspend": (
        "The driver is suspending or resuming and has not finished: dmesg | grep NVRM. Only a "
        "reboot helps if it stays."
    ),
    "RDMA device": (
        "The device's driver waits for its firmware: dmesg | grep -E 'mlx5|bnxt|irdma|ib_'. "
        "Programs that use the device hang too. If it stays, reset the device or reboot."
    ),
    "process": (
        "The process hangs while it maps or unmaps memory, mostly in a driver: "
        "/proc/PID/stack of the process named here says in which."
    ),
}
OTHERS = "Something in the kernel holds a lock: dmesg says what. If it stays, reboot."


def facts(machine: Machine) -> Iterator[Fact]:
    for area, silence in machine.reader.silences.items():
        advice = next((text for begin, text in ADVICE.items() if area.startswith(begin)), OTHERS)
        yield bad("kernel", area, silence.value(), advice)
