# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Folds facts into lines. If several devices have the same fact, one line has the fact and the
names of the devices."""

import re
from typing import Dict, Iterable, List, Tuple

from ..facts.fact import Fact

# Each device has a section of its own, such as "RDMA device mlx5_0". The sections of all devices of
# a kind are printed as one section.
MANY = re.compile("(GPU|RDMA device) (.*)")


class Line:
    """A fact. If several devices have the same fact, the line has all of these devices."""

    def __init__(self, section: str, fact: Fact) -> None:
        self.section, self.fact, self.shown = section, fact, False
        self.devices: List[str] = []

    def title(self) -> str:
        """Returns the fact's name. If the fact concerns exactly one device, the name of the device
        stands before it."""
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
        # Each device has each fact only once, so an equal fact is about another device.
        key = (section, fact.name, fact.verdict, fact.value, fact.advice)
        if key not in same:
            same[key] = Line(section, fact)
            found.append(same[key])
        same[key].devices.append(device)
    return found
