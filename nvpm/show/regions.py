# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the GPU memory that each process has registered, as lines or as JSON."""

import json
from typing import Dict, Iterator, List, Sequence

from ..read.machine import Machine
from ..read.regions import (
    TO_LIST,
    Region,
    count,
    left_out,
    names_by_pci,
    processes,
    regions,
    size,
    total,
)

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
    registrations: List[Dict[str, object]] = [
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
    of_processes: List[Dict[str, object]] = [
        {
            "process": one.number,
            "command": one.command,
            "running": one.running,
            "registrations": len(one.regions),
            "bytes": one.bytes,
        }
        for one in processes(machine, found)
    ]
    yield f'{{"schema": 1, "registrations": [{listed(registrations)}'
    yield f'  ], "processes": [{listed(of_processes)}'
    cut = (
        f', "left_out": {json.dumps(left_out(machine, found))}' if left_out(machine, found) else ""
    )
    yield f'  ], "bytes": {total(found)}{cut}}}'


def listed(objects: List[Dict[str, object]]) -> str:
    return ",".join("\n    " + json.dumps(one, ensure_ascii=False) for one in objects)
