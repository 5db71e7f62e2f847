# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Collects all facts about a machine, and the state of the module."""

import traceback
from typing import Callable, Dict, Iterator, List, NamedTuple

from ..read import ways
from ..read.machine import Machine, own_module
from . import core, detection, devices, driver, module, need, security, silence, use
from .fact import NONE, Fact, Facts, bad, identified, warn

PARTS: Dict[str, Callable[[Machine], Facts]] = {
    "module": module.facts,
    "use": use.facts,
    "RDMA core": core.facts,
    "need": need.facts,
    "driver": driver.facts,
    "detection": detection.facts,
    "security": security.facts,
    "devices": devices.facts,
}

DEFECT = "This is a defect of nvpm: nvpm status --debug says where. Please report it."

NO_SYSFS = bad("module", "state", "unknown", "Mount sysfs: mount -t sysfs sysfs /sys")


class Status(NamedTuple):
    machine: Machine
    state: str
    code: int  # the LSB's exit code for a service; 0 also if another way serves
    facts: List[Fact]


def found(machine: Machine) -> Iterator[Fact]:
    """Yields the facts in the order of `status --all`. With --debug, nvpm prints the sources of a
    fact before the fact."""
    for name, part in PARTS.items():
        try:
            for fact in part(machine):
                if fact:
                    machine.tell(f"{fact.verdict}: {fact.section}: {fact.name}", fact.value)
                    yield fact
        except Exception as error:  # an unforeseen failure of one part must not hide the others
            machine.tell(name, traceback.format_exc())
            yield warn("status", name, f"not all was read: {type(error).__name__}: {error}", DEFECT)


def status_of(machine: Machine) -> Status:
    if not machine.exists("/sys/module"):
        return Status(machine, "unknown", 4, list(identified([NO_SYSFS])))
    others = list(found(machine))
    # A file that does not answer shows only when it is read, but it explains the other facts.
    facts = list(identified([*silence.facts(machine), *others]))
    if own_module(machine):
        return Status(machine, "running", 0, facts)
    missed = any(fact.id == "module/state" and fact.verdict != NONE for fact in facts)
    code = 3 if missed or ways.in_the_way(machine) else 0
    return Status(machine, "not running", code, facts)
