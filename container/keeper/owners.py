# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Names the processes and pods that have GPU memory registered, and so keep the module loaded.

This takes more rights than loading a module does: the node's process numbers (hostPID), the
capability CAP_SYS_ADMIN for the module's list, and for the pods' names /var/log/pods, whose
directories kubelet names NAMESPACE_NAME_UID."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from nvpm.read import regions
from nvpm.read.machine import Machine

# The path of a pod's control group has its UID; systemd's driver writes `_` for `-`.
POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")
LOGS = "/var/log/pods"


class Owner(NamedTuple):
    """A process with registrations. `pod` is NAMESPACE/NAME, or the pod's UID, or empty."""

    process: int
    command: str
    pod: str
    registrations: int
    bytes: int

    def __str__(self) -> str:
        of = f" of pod {self.pod}" if self.pod else ""
        count = f"{self.registrations} registration{'' if self.registrations == 1 else 's'}"
        return f"process {self.process} ({self.command}){of} has {count}"


def owners(root: str = "") -> list[Owner]:
    """Returns the processes with registrations, or nothing if this pod may not know them."""
    machine = Machine(root)
    try:
        found = regions.regions(machine)
    except regions.Unreadable:
        return []
    live = [one for one in found if one.state != "orphaned"]
    return [
        Owner(
            process.number,
            process.command,
            pod_of(root, process.number),
            len(process.regions),
            process.bytes,
        )
        for process in regions.processes(machine, live)
    ]


def pod_of(root: str, process: int) -> str:
    """Returns the pod of a process, or an empty string if the process belongs to none."""
    try:
        groups = Path(f"{root}/proc/{process}/cgroup").read_text(encoding="utf-8")
    except OSError:
        return ""
    found = POD.search(groups)
    if not found:
        return ""
    uid = found[1].replace("_", "-")
    for log in Path(root + LOGS).glob(f"?*_?*_{uid}"):
        namespace, name, _ = log.name.rsplit("_", 2)
        return f"{namespace}/{name}"
    return uid


def who(references: int, found: list[Owner]) -> str:
    """Returns a text about the owners; their number if their names are unknown."""
    if found:
        return "; ".join(map(str, found[:8])) + ("; and others" if len(found) > 8 else "")
    return (
        f"{references} references to the module are held; with the rights of owners.yaml, this pod "
        "names the processes and their pods"
    )
