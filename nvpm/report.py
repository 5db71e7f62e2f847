# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""All facts about a machine, and whether the module is loaded."""

from typing import Iterator, List, NamedTuple

from . import core, detection, devices, driver, module, need, security, use, ways
from .fact import NONE, Fact, bad, identified
from .machine import MODULE, Machine

PARTS = (
    module.facts,
    use.facts,
    core.facts,
    need.facts,
    driver.facts,
    detection.facts,
    security.facts,
    devices.facts,
)

NO_SYSFS = bad("module", "state", "unknown", "Mount sysfs: mount -t sysfs sysfs /sys")


class Report(NamedTuple):
    machine: Machine
    state: str
    code: int  # the LSB's exit code for a service in that state; 0 also where something else serves
    facts: List[Fact]


def found(machine: Machine) -> Iterator[Fact]:
    """The facts in the order of the report. With --debug each follows what it was made of."""
    for part in PARTS:
        for fact in part(machine):
            if fact:
                machine.tell(f"{fact.verdict}: {fact.section}: {fact.name}", fact.value)
                yield fact


def report(machine: Machine) -> Report:
    if not machine.exists("/sys/module"):
        return Report(machine, "unknown", 4, list(identified([NO_SYSFS])))
    facts = list(identified(found(machine)))
    if machine.loaded(MODULE):
        return Report(machine, "running", 0, facts)
    missed = any(fact.id == "module/state" and fact.verdict != NONE for fact in facts)
    code = 3 if missed or ways.in_the_way(machine) else 0
    return Report(machine, "not running", code, facts)
