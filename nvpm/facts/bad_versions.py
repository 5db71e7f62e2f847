# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Versions of NVIDIA's driver with a known defect that programs with GPU memory can meet. For a new
defect, add a row with the source of the information, and a machine in tests/nvpm/machines."""

import re
from typing import Callable, NamedTuple, Tuple

from ..read import ways
from ..read.machine import Machine
from .fact import BAD, WARN

Version = Tuple[int, ...]


class Defect(NamedTuple):
    """A defect of the driver's versions from FIRST on. The version REPAIRED, and later versions, do
    not have the defect."""

    name: str
    first: Version
    repaired: Version
    # Returns the verdict on this machine; an empty string if this machine cannot meet the defect.
    meets: Callable[[Machine], str]
    effect: str
    advice: str
    source: str


def numbers(version: str) -> Version:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def loses_revocable(machine: Machine) -> str:
    """Judges the double free, which only a registration that can be revoked can cause. With
    persistent_api_support=0, all registrations can be revoked. Otherwise only the registrations of
    MIG and vGPU can be revoked."""
    return BAD if ways.revokes(machine) else WARN


def has_hmm(machine: Machine) -> str:
    """Returns BAD if HMM is on. With the open driver, HMM is on unless a parameter of nvidia_uvm
    turns it off."""
    is_off = machine.text("/sys/module/nvidia_uvm/parameters/uvm_disable_hmm") == "Y"
    is_open = "P" not in machine.text("/sys/module/nvidia/taint")
    return BAD if is_open and not is_off else ""


def is_open(machine: Machine) -> str:
    return "" if "P" in machine.text("/sys/module/nvidia/taint") else WARN


UPDATE = (
    "Install driver 535.129.03 or later (of 545: 545.29.02); "
    "until then keep persistent_api_support=1."
)
TWICE = (
    "frees memory of the kernel twice if a program frees GPU memory during a revocable "
    "registration (of MIG and vGPU; with persistent_api_support=0 of all)"
)

DEFECTS = (
    # The version 535.43.24 is a beta for developers. It got the repair before 535.129 did
    # (docs/support.md), so the versions 535 have two rows.
    Defect("double_free", (535,), (535, 43, 24), loses_revocable, TWICE, UPDATE, "docs/support.md"),
    Defect("double_free", (535, 44), (535, 129), loses_revocable, TWICE, UPDATE, "docs/support.md"),
    Defect("double_free", (545,), (545, 29), loses_revocable, TWICE, UPDATE, "docs/support.md"),
    Defect(
        "crash_at_exit",
        (595,),
        (596,),
        has_hmm,
        "crashes the kernel when a process that used the GPU ends (uvm_hmm_unregister_gpu), or "
        "hangs "
        "every later call of nvidia-smi",
        "Install driver 610 or later, or one of 590 and older; until then: echo 'options "
        "nvidia_uvm "
        "uvm_disable_hmm=1' >/etc/modprobe.d/nvidia-uvm-hmm.conf, and reboot.",
        "NVIDIA/open-gpu-kernel-modules#1082, #1333",
    ),
    Defect(
        "crash_on_proc_mem",
        (595, 58),
        (595, 58, 4),
        is_open,
        "crashes the kernel when a debugger reads GPU mappings by /proc/PID/mem "
        "(nvidia_vma_access)",
        "Use no debugger on processes with GPU memory, or install another version of the driver.",
        "NVIDIA/open-gpu-kernel-modules#1107",
    ),
)
