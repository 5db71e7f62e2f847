# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges whether users other than root may use RDMA: the modes of the device files, and how much
memory the jobs of a service may lock, because GPU memory counts as locked."""

import os
import re
from typing import Dict, Optional

from ..read.machine import Machine, once
from .fact import Fact, Facts, bad, good, info, warn

DAEMONS = ("slurmd", "kubelet", "containerd")
UNITS = [
    f"{directory}/systemd/system/%s.service{more}"
    for directory in ("/lib", "/usr/lib", "/etc")
    for more in ("", ".d/*.conf")
]
OPEN = 0o666

LOAD_UVERBS = "modprobe ib_uverbs; in a container, give it the devices (--device /dev/infiniband)."
OPEN_FILES = (
    "Install the udev rules of rdma-core, which give 0666; until the next boot: "
    "chmod 0666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm"
)
RAISE_LIMIT = (
    "systemctl edit {0}, write [Service] and LimitMEMLOCK=infinity, then systemctl restart {0}."
)


def facts(machine: Machine) -> Facts:
    if machine.glob("/sys/class/infiniband/*"):
        yield device_files(machine)
    for daemon in DAEMONS:
        yield memory_lock(machine, daemon)


def device_files(machine: Machine) -> Fact:
    uverbs = machine.glob("/dev/infiniband/uverbs*")
    if not uverbs:
        return bad("access", "/dev/infiniband", "there is no uverbs device", LOAD_UVERBS)
    closed = []
    for file in uverbs + machine.glob("/dev/infiniband/rdma_cm"):
        mode = machine.mode(file)
        if mode is not None and mode & OPEN != OPEN:
            closed.append(f"{os.path.basename(file)} has mode 0{mode:o}")
    if closed:
        value = "not open to all users: " + ", ".join(closed)
        return warn("access", "/dev/infiniband", value, OPEN_FILES)
    return good("access", "/dev/infiniband", "open to all users")


def memory_lock(machine: Machine, daemon: str) -> Optional[Fact]:
    name, limit = f"memory lock {daemon}", memory_limit(machine, daemon)
    if not limit:
        return None
    if daemon == "kubelet":
        return info("access", name, f"{limit}; containers have that of their runtime")
    if limit.startswith(("unlimited", "infinity")):
        return good("access", name, limit)
    amount = f"{limit} bytes" if limit.isdigit() else limit
    value = f"{amount}: its jobs cannot register more"
    return warn("access", name, value, RAISE_LIMIT.format(daemon))


@once
def daemons(machine: Machine) -> Dict[str, str]:
    """Returns the process of each daemon: of several processes the one with the lowest number,
    which is usually the oldest. Only root's processes count, because every user can name a process
    slurmd. A program with the set-user-ID bit has the effective user root and keeps the real
    one."""
    found: Dict[str, str] = {}
    for process in sorted(machine.glob("/proc/[0-9]*"), key=number_of):
        name = machine.text(f"{process}/comm")
        if name in DAEMONS and name not in found and is_of_root(machine, process):
            found[name] = process
    return found


def number_of(process: str) -> int:
    digits = os.path.basename(process)
    return int(digits) if digits.isdigit() else 0


def is_of_root(machine: Machine, process: str) -> bool:
    status = machine.all_text(f"{process}/status")
    return bool(re.search(r"^Uid:\s+0\s+0\s", status, re.MULTILINE))


def memory_limit(machine: Machine, daemon: str) -> str:
    """Returns how much memory the daemon may lock, by its unit if the daemon does not run; an empty
    string without such a daemon."""
    process = daemons(machine).get(daemon)
    if process:
        limits = machine.all_text(f"{process}/limits")
        return "".join(re.findall(r"^Max locked memory\s+(\S+)", limits, re.MULTILINE))
    files = machine.glob(*(file % daemon for file in UNITS))
    if not files:
        return ""
    setting = r"^\s*LimitMEMLOCK\s*=\s*(?:.*:)?(.*)"
    said = re.findall(setting, machine.all_text(*files), re.MULTILINE) or [""]
    return (said[-1] or "the default of systemd (DefaultLimitMEMLOCK)") + ", by its unit"
