# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the module's list of the GPU memory that each process has registered. The list has the
names of processes. In these names, the module writes each character as an octal number, except
plain letters, digits and signs."""

import os
import re
from itertools import groupby
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .machine import Machine, clean, decoded, once, own_module, statistics
from .pci import nics

LIST = "/proc/driver/nv_peer_mem/regions"

# Matches a line of the list. A later version of the module may append fields to the line. The last
# field that is matched, the name of the process, may be empty, because processes choose their
# names.
LINE = re.compile(
    r"(\d{1,10}) (\d{1,20}) (\d{1,10}) (\S+) (\d{1,20}) (\S+) (\S+) (\S+) (\S*)(?: .*)?",
    re.ASCII,
)

NOT_LOADED = (
    "nv_peer_mem is not loaded: no GPU memory is registered through it. "
    "nvpm says whether this machine needs it, and how to load it."
)
TOO_OLD = (
    "the nv_peer_mem that is loaded is older than this command and keeps no list. "
    "When nobody uses it: modprobe -r nv_peer_mem && modprobe nv_peer_mem"
)
NOT_ROOT = "only root can read who has memory registered. Try: sudo nvpm regions"
NO_CAPABILITY = (
    "{} cannot be read: that takes the capability CAP_SYS_ADMIN, which root has not in most "
    "containers. Try it outside, as root: nvpm regions"
)
# The greatest number of bytes of the list that are read: to list registrations, and to judge the
# machine. A user may have millions of registrations, and must not decide how long root's monitor
# takes. A line has about 70 bytes.
TO_LIST, TO_JUDGE = 6 << 20, 1 << 20
# A list with fewer registrations is never too long.
MANY = 1000
# The greatest number of processes about which the status has a fact.
MOST_PROCESSES = 64
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


class Region(NamedTuple):
    """A line of the list."""

    process: int
    started: int
    age: int
    address: str
    length: int
    client: str
    state: str
    pci: str
    command: str

    def is_older(self, later: "Region") -> bool:
        """Tells whether LATER is the same registration at a later time. A program may register the
        same memory again."""
        mine = (self.process, self.started, self.address, self.length)
        theirs = (later.process, later.started, later.address, later.length)
        return mine == theirs and later.age >= self.age


class Unreadable(Exception):
    """The list cannot be read. `code` is the exit code, and the message is the reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def need_list(machine: Machine) -> None:
    if not own_module(machine):
        raise Unreadable(3, NOT_LOADED)
    if not machine.exists(LIST):
        raise Unreadable(1, TOO_OLD)
    if not machine.readable(LIST):
        raise Unreadable(1, NOT_ROOT)
    if not machine.read(LIST, 1):
        raise Unreadable(1, NO_CAPABILITY.format(machine.root + LIST))


def parsed(line: str) -> Optional[Region]:
    """Returns the registration in a line of the list, or None for any other text."""
    found = LINE.fullmatch(line)
    if not found:
        return None
    process, started, age, address, length, client, state, pci, command = found.groups()
    return Region(
        int(process),
        int(started),
        int(age),
        address,
        int(length),
        client,
        state,
        pci,
        clean(command).replace("\\040", " ") or "?",
    )


def regions(machine: Machine, most: int = TO_LIST) -> List[Region]:
    """Returns the registrations in the first MOST bytes of the list, sorted by process. The
    registrations of each process begin with the oldest. Raises Unreadable if the list cannot be
    read."""
    need_list(machine)
    data = machine.read(LIST, most)
    # If the list is longer, its last line may be cut.
    data = data[: data.rfind(b"\n") + 1] if len(data) == most else data
    found = [one for one in map(parsed, decoded(data).split("\n")) if one]
    return sorted(found, key=lambda one: (one.process, one.started, -one.age, one.address))


@once
def judged(machine: Machine) -> List[Region]:
    """Returns the registrations by which the machine is judged. The list is read only once, because
    the kernel holds the module's lock while it writes the list. Raises Unreadable if the list
    cannot be read."""
    return regions(machine, TO_JUDGE)


def revoking(machine: Machine) -> List[Region]:
    """Returns the registrations whose memory is being freed at this moment. The list is read
    again. Returns no registration if the list cannot be read any more."""
    try:
        return [one for one in regions(machine, TO_JUDGE) if one.state == "revoking"]
    except Unreadable:
        return []


def left_out(machine: Machine, found: Sequence[Region]) -> str:
    """Returns a text with the number of all registrations if the list is too long, so that FOUND
    has only a part of them; otherwise an empty string."""
    live = sum(one.state != "orphaned" for one in found)
    said = machine.text(statistics(machine) + "reachable_regions")
    # Registrations begin and end between two reads, so a small difference means nothing.
    if not re.fullmatch("[0-9]{1,18}", said) or int(said) <= live or len(found) < MANY:
        return ""
    return f"only the first {len(found)} registrations of {said} were read"


class Process:
    """A process and its regions."""

    def __init__(self, machine: Machine, found: List[Region]) -> None:
        first = found[0]
        self.machine = machine
        self.number, self.command, self.regions = first.process, first.command, found
        self.bytes = total(found)
        # The name of the process in this file may contain blanks, so the fields are counted after
        # the parenthesis that ends the name. Field 19 is the start time. If the start time is not
        # that of the registration, the process has ended, and another process has its number now.
        fields = machine.text(f"/proc/{self.number}/stat").rpartition(") ")[2].split()
        self.running = fields[19:20] == [str(first.started)]
        self.what = f"{count(found)} of GPU memory, {size(self.bytes)}"

    @property
    def who(self) -> str:
        """A text with the name of the user, for which the name service is asked. Monitoring needs
        no such name, and must not wait for the service."""
        by = user(self.machine, self.number) if self.running else ""
        ended = "" if self.running else ", which has ended"
        return f"process {self.number} ({self.command}{by and f', user {by}'}{ended})"


def user(machine: Machine, process: int) -> str:
    """Returns the name of the user who owns the process, or the user's number. If the owner is
    unknown, returns an empty string."""
    status = machine.all_text(f"/proc/{process}/status")
    found = re.search(r"^Uid:\s+(\d+)", status, re.MULTILINE)
    return machine.user(found[1]) if found else ""


def of_one(region: Region) -> Tuple[int, int]:
    return region.process, region.started


def processes(machine: Machine, found: List[Region]) -> Iterator[Process]:
    return (Process(machine, list(those)) for _, those in groupby(found, key=of_one))


def largest(machine: Machine) -> List[Process]:
    """Returns the MOST_PROCESSES processes that have registered the most memory, sorted by number.
    If several processes have the same amount, the processes with the smallest numbers are returned.
    Raises Unreadable if the list cannot be read."""
    groups = [list(those) for _, those in groupby(judged(machine), key=of_one)]
    chosen = sorted(groups, key=total, reverse=True)[:MOST_PROCESSES]
    return [Process(machine, group) for group in sorted(chosen, key=lambda group: of_one(group[0]))]


def count_of_processes(machine: Machine) -> int:
    return len(set(map(of_one, judged(machine))))


def names_by_pci(machine: Machine) -> Dict[str, str]:
    names: Dict[str, List[str]] = {}
    for nic in nics(machine):
        if nic.pci and not nic.software:
            names.setdefault(nic.pci.address, []).append(nic.name)
    return {address: ",".join(those) for address, those in names.items()}


def total(found: Sequence[Region]) -> int:
    return sum(one.length for one in found)


def size(number: int) -> str:
    """Returns a number of bytes as text, in the largest unit that is not larger than the number."""
    power = min(max(number.bit_length() - 1, 0) // 10, len(UNITS) - 1)
    unit = 1 << 10 * power
    digits = 1 if number % unit else 0
    return f"{number / unit:.{digits}f} {UNITS[power]}"


def count(found: Sequence[Region]) -> str:
    return f"{len(found)} registration{'' if len(found) == 1 else 's'}"


def open_devices(machine: Machine) -> List[Tuple[int, str]]:
    """Returns numbers and names of the processes that have an RDMA device open, because only these
    processes can hold registrations. The search reads every descriptor of every process, which
    takes seconds on a busy node. So holders() searches only if the list names no process."""
    found = []
    for process in machine.glob("/proc/[0-9]*"):
        files = (machine.link(file) for file in machine.glob(f"{process}/fd/*"))
        if any(file.startswith("/dev/infiniband/uverbs") for file in files):
            # If the process has ended, `comm` is empty. A name may consist of blanks only, and
            # becomes "?" then.
            comm = decoded(machine.read(f"{process}/comm"))
            name = clean(comm.rstrip("\n")).strip() or "?"
            if comm:
                found.append((int(os.path.basename(process)), name))
    return sorted(found)


def holders(machine: Machine) -> List[str]:
    """Returns a text about each process that keeps the module from being unloaded. Orphans do not
    keep the module, so they are left out. If the list names no process, or cannot be read, returns
    texts about the processes that have an RDMA device open. An older module has no list that can be
    read."""
    try:
        there = judged(machine)
        live = [one for one in there if one.state != "orphaned"]
        found = [f"{process.who} has {process.what}" for process in processes(machine, live)]
        found += filter(None, [left_out(machine, there)])
    except Unreadable:
        found = []
    if found:
        return found
    devices = open_devices(machine)
    return [f"process {number} ({name}) has an RDMA device open" for number, name in devices]
