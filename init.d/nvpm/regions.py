# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Who has which GPU memory registered. The module writes the list (src/regions.c). In names of processes, which are the
processes' own words, it has put all in octal that is not a plain letter, digit or sign."""
import json
import os
from itertools import groupby
from typing import NamedTuple

from .machine import MODULE, open_devices
from .pci import nics

LIST = "/proc/driver/nv_peer_mem/regions"


class Unreadable(Exception):
    """Why there is no list, and the exit code that says it."""

    def __init__(self, code, reason):
        super().__init__(reason)
        self.code = code


class Region(NamedTuple):
    process: int
    started: int
    age: int
    address: str
    length: int
    client: str
    state: str
    pci: str
    command: str


def _region(line):
    process, started, age, address, length, client, state, pci, name = line.split()[:9]
    return Region(int(process), int(started), int(age), address, int(length), client, state, pci, name.replace("\\040", " "))


def regions(machine):
    """By process, and of one the oldest first."""
    if not machine.loaded(MODULE):
        raise Unreadable(3, "nv_peer_mem is not loaded: no GPU memory is registered through it. To load it: "
                         "/etc/init.d/nv_peer_mem start")
    if not machine.exists(LIST):
        raise Unreadable(1, "the nv_peer_mem that is loaded is older than this command and keeps no list. When nobody uses it: "
                         "/etc/init.d/nv_peer_mem restart")
    if not os.access(machine.path(LIST), os.R_OK):
        raise Unreadable(1, "only root can read who has memory registered. Try: sudo nvpm regions")
    try:
        with open(machine.path(LIST), encoding="utf-8", errors="backslashreplace") as file:
            lines = [line for line in file if not line.startswith("#") and len(line.split()) >= 9]
    except OSError:
        raise Unreadable(1, machine.path(LIST) + " cannot be read: that takes the capability CAP_SYS_ADMIN, which root has not in most "
                         "containers. Try it outside, as root: nvpm regions")
    return sorted(map(_region, lines), key=lambda one: (one.process, one.started, -one.age, one.address))


class Process:
    """The regions of one process."""

    def __init__(self, machine, found):
        self.number, self.started, self.command, self.regions = found[0].process, found[0].started, found[0].command, found
        self.bytes = sum(one.length for one in found)
        # What comes behind its name, which may have blanks: the third field first.
        fields = machine.text("/proc/%d/stat" % self.number).rpartition(") ")[2].split()
        # Another process may have that number now.
        self.running = len(fields) > 19 and fields[19] == str(self.started)

    def who(self):
        return "process %d (%s%s)" % (self.number, self.command, "" if self.running else ", which has ended")

    def what(self):
        return "%s of GPU memory, %s" % (_count(self.regions), _size(self.bytes))


def processes(machine, found):
    return [Process(machine, list(those)) for _, those in groupby(found, key=lambda one: one[:2])]


def _devices(machine):
    """The names of RDMA devices, by their PCI addresses."""
    names = {}
    for nic in nics(machine):
        if nic.pci and not nic.software:
            names[nic.pci.address] = ",".join([*names.get(nic.pci.address, "").split(",")[:-1], nic.name])
    return names


def _size(count):
    """In the largest unit that it has a whole of."""
    unit = min((count.bit_length() - 1) // 10, 4) if count else 0
    whole = count % (1 << 10 * unit) == 0
    return "%.*f %s" % (0 if whole else 1, count / (1 << 10 * unit), ("bytes", "KiB", "MiB", "GiB", "TiB")[unit])


def _age(seconds):
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172800, 3600, "h")):
        if seconds < limit:
            return "%d %s" % (seconds // size, unit)
    return "%d days" % (seconds // 86400)


def _count(found):
    return "%d registration%s" % (len(found), "" if len(found) == 1 else "s")


def text(machine):
    found, names, lines = regions(machine), _devices(machine), []
    for process in processes(machine, found):
        lines.append("%s: %s" % (process.who(), process.what()))
        for one in process.regions:
            name = names.get(one.pci)
            lines.append("  %-18s %10s  %8s  %-16s  %-8s  %s" % (
                one.address, _size(one.length), _age(one.age), one.client, one.state, "%s (%s)" % (name, one.pci) if name else one.pci))
    total = "all: %s, %s" % (_count(found), _size(sum(one.length for one in found))) if found else "no GPU memory is registered"
    return "\n".join(lines + [total]) + "\n"


def as_json(machine):
    """A line for each registration and each process."""
    found, names = regions(machine), _devices(machine)

    def listed(objects):
        return ",".join("\n    " + json.dumps(one, ensure_ascii=False) for one in objects)

    return '{"schema": 1, "registrations": [%s\n  ], "processes": [%s\n  ], "bytes": %d}\n' % (
        listed({"process": one.process, "command": one.command, "age": one.age, "address": one.address, "length": one.length,
                "client": one.client, "pci": None if one.pci == "-" else one.pci, "device": names.get(one.pci), "state": one.state}
               for one in found),
        listed({"process": one.number, "command": one.command, "running": one.running, "registrations": len(one.regions),
                "bytes": one.bytes} for one in processes(machine, found)),
        sum(one.length for one in found))


def holders(machine):
    """Who is in the way of unloading the module, a line each. A module that was loaded before an update keeps no list."""
    try:
        found = ["%s has %s" % (process.who(), process.what()) for process in processes(machine, regions(machine))]
    except Unreadable:
        found = []
    return found or ["process %d (%s) has an RDMA device open" % process for process in open_devices(machine)]
