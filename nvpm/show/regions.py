# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the GPU memory that each process has registered, as lines or as JSON."""

import json
from typing import Dict, Iterable, Iterator, Sequence

from ..read.machine import Machine
from ..read.regions import (
    TO_LIST,
    Process,
    Region,
    count,
    left_out,
    names_by_pci,
    processes,
    regions,
    size,
    total,
)

Json = Dict[str, object]

HEADING = f"  {'address':<18} {'length':>10}  {'age':>8}  {'client':<16}  {'state':<8}  RDMA device"


def age(seconds: int) -> str:
    if seconds < 120:
        return f"{seconds} s"
    if seconds < 7200:
        return f"{seconds // 60} min"
    if seconds < 172800:
        return f"{seconds // 3600} h"
    return f"{seconds // 86400} days"


def as_summary(machine: Machine) -> Iterator[str]:
    """Yields a line for each process, with the number and size of its registrations. The last line
    has the sum."""
    found = regions(machine)
    for process in processes(machine, found):
        yield f"{process.who}: {process.what}"
    yield in_all(machine, found)


def in_all(machine: Machine, found: Sequence[Region]) -> str:
    if not found:
        return "no GPU memory is registered"
    return left_out(machine, found) or f"all: {count(found)}, {size(total(found))}"


def as_text(machine: Machine) -> Iterator[str]:
    found, names = regions(machine), names_by_pci(machine)
    if found:
        yield HEADING
    for process in processes(machine, found):
        yield f"{process.who}: {process.what}"
        for one in process.regions:
            device = f"{names[one.pci]} ({one.pci})" if one.pci in names else one.pci
            yield (
                f"  {one.address:<18} {size(one.length):>10}  {age(one.age):>8}  "
                f"{one.client:<16}  {one.state:<8}  {device}"
            )
    yield in_all(machine, found)


def as_json(machine: Machine, most: int = TO_LIST) -> Iterator[str]:
    """Yields the lines of one JSON object. Each registration and each process has one line. MOST is
    the greatest number of bytes of the list that are read."""
    found, names = regions(machine, most), names_by_pci(machine)
    cut = left_out(machine, found)
    yield '{"schema": 1, "registrations": ['
    yield from listed(registration(one, names) for one in found)
    yield '  ], "processes": ['
    yield from listed(map(of_process, processes(machine, found)))
    more = f', "left_out": {json.dumps(cut)}' if cut else ""
    yield f'  ], "bytes": {total(found)}{more}}}'


def registration(one: Region, names: Dict[str, str]) -> Json:
    return {
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


def of_process(one: Process) -> Json:
    return {
        "process": one.number,
        "command": one.command,
        "running": one.running,
        "registrations": len(one.regions),
        "bytes": one.bytes,
    }


def listed(objects: Iterable[Json]) -> Iterator[str]:
    """Yields the members of a JSON list, one line each, one object in memory at a time."""
    last = ""
    for one in objects:
        if last:
            yield f"    {last},"
        last = json.dumps(one, ensure_ascii=False)
    if last:
        yield f"    {last}"
