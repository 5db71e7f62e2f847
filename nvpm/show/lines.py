# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Folds facts into lines: the same fact about several devices is one line with their names."""

import re
from typing import Dict, Iterable, List, Tuple

from ..facts.fact import Fact

# The sections of single devices are printed as one section, without the devices' names.
MANY = re.compile("(GPU|RDMA device) (.*)")


class Line:
    """A fact, or the same fact about some devices."""

    def __init__(self, section: str, fact: Fact) -> None:
        self.section, self.fact, self.shown = section, fact, False
        self.devices: List[str] = []

    def title(self) -> str:
        """Returns the fact's name, prefixed with the device if the fact concerns exactly one."""
        return " ".join(
            [*self.devices, self.fact.name] if len(self.devices) == 1 else [self.fact.name]
        )


def section_of(fact: Fact) -> Tuple[str, str]:
    """Returns the name of the section as printed, and the device, which is an empty string if the
    fact does not concern a device."""
    many = MANY.match(fact.section)
    return (f"{many[1]}s", many[2]) if many else (fact.section, "")


def lines_of(facts: Iterable[Fact]) -> List[Line]:
    found: List[Line] = []
    same: Dict[Tuple[str, ...], Line] = {}
    for fact in facts:
        section, device = section_of(fact)
        if not device:
            found.append(Line(section, fact))
            continue
        # Each fact occurs once for each device, so the same fact again is about another device.
        key = (section, fact.name, fact.verdict, fact.value, fact.advice)
        if key not in same:
            same[key] = Line(section, fact)
            found.append(same[key])
        same[key].devices.append(device)
    return found
