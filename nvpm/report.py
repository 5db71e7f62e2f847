# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""All facts about a machine, and whether the module is loaded."""

from typing import List, NamedTuple

from . import core, detection, devices, driver, module, security, use
from .fact import Fact, bad, identified
from .machine import MODULE, Machine

PARTS = (
    module.facts,
    use.facts,
    core.facts,
    core.need,
    driver.facts,
    detection.facts,
    security.facts,
    devices.facts,
)


class Report(NamedTuple):
    machine: Machine
    state: str
    code: int  # the LSB's exit code for a service in that state
    facts: List[Fact]


def report(machine: Machine) -> Report:
    if not machine.exists("/sys/module"):
        unknown = bad("module", "state", "unknown", "Mount sysfs: mount -t sysfs sysfs /sys")
        return Report(machine, "unknown", 4, list(identified([unknown])))
    facts = list(identified(fact for part in PARTS for fact in part(machine)))
    return (
        Report(machine, "running", 0, facts)
        if machine.loaded(MODULE)
        else Report(machine, "not running", 3, facts)
    )
