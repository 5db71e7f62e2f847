# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Judges whether users other than root may use RDMA. These users need rights to the device files.
They also need a large limit of locked memory, because registered GPU memory counts as locked."""

import os
import re
from typing import Dict, Optional

from ..read import dma_buf, regions
from ..read.machine import Machine, once, statistics
from ..read.pci import nics
from ..read.regions import size
from .fact import Fact, Facts, bad, good, info, warn

DAEMONS = ("slurmd", "pbs_mom", "kubelet", "containerd", "crio", "dockerd", "sshd")
UNITS = [
    f"{directory}/systemd/system/%s.service{more}"
    for directory in ("/lib", "/usr/lib", "/etc")
    for more in ("", ".d/*.conf")
]
OPEN = 0o666
# Match the settings that let all users, or all containers, lock as much memory as they want.
LIMITS = r"^\s*\*\s+(-|hard)\s+memlock\s+(unlimited|infinity|-1)\s*$"
ULIMITS = r'"memlock"\s*:\s*\{[^}]*"Hard"\s*:\s*-1'
DOCKER = "/etc/docker/daemon.json"

LOAD_UVERBS = "modprobe ib_uverbs; in a container, give it the devices (--device /dev/infiniband)."
OPEN_FILES = (
    "Install the udev rules of rdma-core, which give 0666; until the next boot: "
    "chmod 0666 /dev/infiniband/uverbs* /dev/infiniband/rdma_cm"
)
# The processes that inherit a daemon's limit. The processes of a daemon that is not listed here are
# its jobs.
JOBS = {
    "dockerd": "containers without --ulimit memlock=-1",
    "containerd": "its containers",
    "crio": "its containers",
    "sshd": "programs of its logins",
}
RAISE = {
    "dockerd": (
        'docker run --ulimit memlock=-1, or "default-ulimits": {{"memlock": {{"Name": '
        '"memlock", '
        '"Soft": -1, "Hard": -1}}}} in /etc/docker/daemon.json, then systemctl restart docker.'
    ),
    "sshd": (
        "Write '* - memlock unlimited' into /etc/security/limits.d/rdma.conf, and log in again; "
        "for ssh without pam_limits: systemctl edit ssh, [Service], LimitMEMLOCK=infinity."
    ),
}
RAISE_OWN = (
    "Write '* - memlock unlimited' into /etc/security/limits.d/rdma.conf and log in again; in a "
    "service LimitMEMLOCK=infinity, in docker --ulimit memlock=-1."
)
MORE_MAPPINGS = (
    "At that number ibv_reg_mr and ibv_create_qp fail with ENOMEM. A program with ibv_fork_init() "
    "splits a mapping with each registration: sysctl vm.max_map_count=1048576, or run it without "
    "fork support (RDMAV_FORK_SAFE and IBV_FORK_SAFE unset)."
)
# Programs with many connections and dma-bufs have some thousands of open files.
ENOUGH_FILES = 4096
MORE_FILES = (
    "At that number an export fails with CUDA_ERROR_OPERATING_SYSTEM or Too many open files. "
    "ulimit -n 1048576, or '* - nofile 1048576' in /etc/security/limits.d/rdma.conf; in a service "
    "LimitNOFILE=1048576, in docker --ulimit nofile=1048576."
)
# The number of processes that are judged. A node may have thousands of processes with
# registrations, but the first of them show what kind of process they are.
MOST_PROCESSES = 16
RAISE_LIMIT = (
    "systemctl edit {0}, write [Service] and LimitMEMLOCK=infinity, then systemctl restart {0}."
)


def facts(machine: Machine) -> Facts:
    if machine.glob("/sys/class/infiniband/*"):
        yield device_files(machine)
    for daemon in DAEMONS:
        yield memory_lock(machine, daemon)
    yield own_memory_lock(machine)
    yield open_files(machine)
    yield from holders(machine)


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


def each_device(machine: Machine, limit: str) -> str:
    """Returns a text with the amount of memory that a program can register with all devices, if
    LIMIT is the program's limit. Each registration counts, even if two registrations have the same
    memory, so this amount is LIMIT divided by the number of devices."""
    count = len(nics(machine))
    if count < 2 or not limit.isdigit():
        return ""
    return f", which is {size(int(limit) // count)} with each of {count} RDMA devices"


def own_memory_lock(machine: Machine) -> Optional[Fact]:
    """Judges the limit of locked memory of this session, because programs that are started in this
    session inherit the limit."""
    limit = locked_limit(machine, "/proc/self")
    if not limit:
        return None
    if limit == "unlimited":
        return good("access", "memory lock here", "unlimited, for programs of this session")
    value = f"{size(int(limit))} for each process of this session{each_device(machine, limit)}"
    return warn("access", "memory lock here", value, RAISE_OWN)


def open_files(machine: Machine) -> Optional[Fact]:
    """Returns the limit on open files of this session if dma-buf is a way here. Each exported
    dma-buf is an open file, which some programs keep open."""
    limit = limit_of(machine, "/proc/self", "open files")
    if not limit.isdigit() or int(limit) >= ENOUGH_FILES or not dma_buf.taken_by(machine):
        return None
    value = f"{limit} for each process of this session, and each exported dma-buf is one"
    return info("access", "open files", value, MORE_FILES)


def locked_limit(machine: Machine, process: str) -> str:
    return limit_of(machine, process, "locked memory")


def limit_of(machine: Machine, process: str, what: str) -> str:
    limits = machine.all_text(f"{process}/limits")
    found = re.search(rf"^Max {what}\s+(\d+|unlimited)", limits, re.MULTILINE)
    return found[1] if found else ""


def holders(machine: Machine) -> Facts:
    """Judges whether the processes that have GPU memory registered are near a limit at which the
    kernel answers ENOMEM. The limits concern locked memory and the number of mappings."""
    if machine.text(statistics(machine) + "reachable_regions") in ("", "0"):
        return
    try:
        found = regions.largest(machine)
    except regions.Unreadable:
        return
    most = machine.text("/proc/sys/vm/max_map_count")
    for process in found[:MOST_PROCESSES]:
        place = f"/proc/{process.number}"
        limit = locked_limit(machine, place)
        if limit.isdigit() and process.bytes * 10 > int(limit) * 9:
            value = f"has registered {size(process.bytes)}, and may lock {size(int(limit))}"
            yield warn("access", f"process {process.number}", value, RAISE_OWN)
        files, open_now = limit_of(machine, place, "open files"), len(machine.glob(f"{place}/fd/*"))
        if files.isdigit() and open_now * 10 > int(files) * 9:
            value = f"has {open_now} open files, and may have {files}"
            yield warn("access", f"open files of process {process.number}", value, MORE_FILES)
        mappings = machine.read(f"{place}/maps").count(b"\n") if most.isdigit() else 0
        if most.isdigit() and mappings * 10 > int(most) * 9:
            value = f"has {mappings} mappings, and may have {most} (vm.max_map_count)"
            yield warn("access", f"mappings of process {process.number}", value, MORE_MAPPINGS)


def memory_lock(machine: Machine, daemon: str) -> Optional[Fact]:
    name, limit = f"memory lock {daemon}", memory_limit(machine, daemon)
    if not limit:
        return None
    if daemon == "kubelet":
        return info("access", name, f"{limit}; containers have that of their runtime")
    if limit.startswith(("unlimited", "infinity")):
        return good("access", name, limit)
    amount = size(int(limit)) if limit.isdigit() else limit
    raised = raised_by(machine, daemon)
    if raised:
        return good("access", name, f"{amount}, raised by {raised}")
    who = JOBS.get(daemon, "its jobs")
    value = f"{amount}: {who} cannot register more{each_device(machine, limit)}"
    return warn("access", name, value, RAISE.get(daemon, RAISE_LIMIT).format(daemon))


def raised_by(machine: Machine, daemon: str) -> str:
    """Returns the file that raises the limit for the programs that this daemon starts; an empty
    string if there is none. pam_limits raises the limit of each login, and Docker that of each
    container."""
    if daemon == "sshd":
        for file in machine.glob("/etc/security/limits.conf", "/etc/security/limits.d/*.conf"):
            if re.search(LIMITS, machine.all_text(file), re.MULTILINE):
                return file
    if daemon == "dockerd" and re.search(ULIMITS, machine.all_text(DOCKER)):
        return DOCKER
    return ""


@once
def daemons(machine: Machine) -> Dict[str, str]:
    """Returns one process for each daemon. If a daemon has several processes, the process with the
    lowest number is returned, because it is usually the oldest. Only root's processes count,
    because every user can give a process the name slurmd. Both the real and the effective user must
    be root, because a program with the set-user-ID bit changes only its effective user."""
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
    """Returns how much memory the daemon may lock. If the daemon does not run, its unit has the
    limit. Returns an empty string if this machine has no such daemon."""
    process = daemons(machine).get(daemon)
    if process:
        return locked_limit(machine, process)
    files = machine.glob(*(file % daemon for file in UNITS))
    if not files:
        return ""
    setting = r"^\s*LimitMEMLOCK\s*=\s*(?:.*:)?(.*)"
    said = re.findall(setting, machine.all_text(*files), re.MULTILINE) or [""]
    return (said[-1] or "the default of systemd (DefaultLimitMEMLOCK)") + ", by its unit"
