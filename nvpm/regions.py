# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Which process has which GPU memory registered. The module writes the list; it has put everything in the names of processes in octal that is not a
plain letter, digit or sign."""

import json
from collections import namedtuple
from itertools import groupby

from .machine import MODULE, open_devices
from .pci import nics

LIST = "/proc/driver/nv_peer_mem/regions"

# A line of the list has these fields.
Region = namedtuple("Region", "process started age address length client state pci command")


class Unreadable(Exception):
    """The exit code, and why there is no list."""


def regions(machine):
    """By process; the oldest of a process first."""
    for there, code, reason in (
        (
            machine.loaded(MODULE),
            3,
            "nv_peer_mem is not loaded: no GPU memory is registered through it. To load it: /etc/init.d/nv_peer_mem start",
        ),
        (
            machine.exists(LIST),
            1,
            "the nv_peer_mem that is loaded is older than this command and keeps no list. When nobody uses it: /etc/init.d/nv_peer_mem restart",
        ),
        (
            machine.readable(LIST),
            1,
            "only root can read who has memory registered. Try: sudo nvpm regions",
        ),
        (
            machine.read(LIST, 1),
            1,
            "%s cannot be read: that takes the capability CAP_SYS_ADMIN, which root has not in most containers. Try it outside, as root: nvpm regions"
            % (machine.root + LIST),
        ),
    ):
        if not there:
            raise Unreadable(code, reason)
    found = []
    for line in machine.lines(LIST):
        if not line.startswith("#") and len(line.split()) >= 9:
            one = Region(*line.split()[:9])
            found.append(
                one._replace(
                    process=int(one.process),
                    started=int(one.started),
                    age=int(one.age),
                    length=int(one.length),
                    command=one.command.replace("\\040", " "),
                )
            )
    return sorted(found, key=lambda one: (one.process, one.started, -one.age, one.address))


class Process:
    """A process and its regions."""

    def __init__(self, machine, found):
        self.number, self.command, self.regions = found[0].process, found[0].command, found
        self.bytes = sum(one.length for one in found)
        # The fields behind its name, which may have blanks. Another process may have that number now.
        fields = machine.text("/proc/%d/stat" % self.number).rpartition(") ")[2].split()
        self.running = fields[19:20] == [str(found[0].started)]
        self.who = "process %d (%s%s)" % (
            self.number,
            self.command,
            "" if self.running else ", which has ended",
        )
        self.what = f"{count(found)} of GPU memory, {size(self.bytes)}"


def processes(machine, found):
    return [Process(machine, list(those)) for _, those in groupby(found, key=lambda one: one[:2])]


def names_by_pci(machine):
    names = {}
    for nic in nics(machine):
        if nic.pci and not nic.software:
            names.setdefault(nic.pci.address, []).append(nic.name)
    return {address: ",".join(those) for address, those in names.items()}


def size(number):
    """In the largest unit that it has a whole one of."""
    unit = min(max(number.bit_length() - 1, 0) // 10, 4)
    return "%.*f %s" % (
        number % (1 << 10 * unit) != 0,
        number / (1 << 10 * unit),
        ("bytes", "KiB", "MiB", "GiB", "TiB")[unit],
    )


def age(seconds):
    length, unit = next(
        known[1:]
        for known in (
            (120, 1, "s"),
            (7200, 60, "min"),
            (172800, 3600, "h"),
            (seconds + 1, 86400, "days"),
        )
        if seconds < known[0]
    )
    return "%d %s" % (seconds // length, unit)


def count(found):
    return "%d registration%s" % (len(found), "" if len(found) == 1 else "s")


def as_text(machine):
    found, names = regions(machine), names_by_pci(machine)
    for process in processes(machine, found):
        yield f"{process.who}: {process.what}"
        for one in process.regions:
            device = f"{names[one.pci]} ({one.pci})" if one.pci in names else one.pci
            yield "  %-18s %10s  %8s  %-16s  %-8s  %s" % (
                one.address,
                size(one.length),
                age(one.age),
                one.client,
                one.state,
                device,
            )
    yield (
        f"all: {count(found)}, {size(sum(one.length for one in found))}"
        if found
        else "no GPU memory is registered"
    )


def as_json(machine):
    """A line for each registration and each process."""
    found, names = regions(machine), names_by_pci(machine)
    registrations = [
        {
            "process": one.process,
            "command": one.command,
            "age": one.age,
            "address": one.address,
            "length": one.length,
            "client": one.client,
            "pci": None if one.pci == "-" else one.pci,
            "device": names.get(one.pci),
            "state": one.state,
        }
        for one in found
    ]
    of_processes = [
        {
            "process": one.number,
            "command": one.command,
            "running": one.running,
            "registrations": len(one.regions),
            "bytes": one.bytes,
        }
        for one in processes(machine, found)
    ]
    listed = [
        ",".join("\n    " + json.dumps(one, ensure_ascii=False) for one in objects)
        for objects in (registrations, of_processes)
    ]
    yield '{"schema": 1, "registrations": [%s\n  ], "processes": [%s\n  ], "bytes": %d}' % (
        *listed,
        sum(one.length for one in found),
    )


def holders(machine):
    """Who keeps the module from being unloaded; what was left behind does not. A module that was
    loaded before an update keeps no list."""
    try:
        live = [one for one in regions(machine) if one.state != "left"]
        found = [f"{process.who} has {process.what}" for process in processes(machine, live)]
    except Unreadable:
        found = []
    return found or [
        "process %d (%s) has an RDMA device open" % process for process in open_devices(machine)
    ]
