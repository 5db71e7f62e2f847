# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a report for people. What is said of several devices is one line with their names; advice that goes for several lines is given
at the first; distances are a matrix."""

import re
from typing import List

from .fact import BAD, GOOD, NONE, WARN, Fact
from .report import Report
from .topology import DISTANCES

MARKS = {GOOD: "ok", WARN: " !", BAD: "!!", NONE: "  "}
MEANINGS = (
    "under one PCIe switch",
    "under several PCIe switches, without passing the CPU",
    "one root complex: through the CPU",
    "two root complexes of one NUMA node",
    "across NUMA nodes, or nobody says which",
)
TITLES = {"distance": "distance of GPU and RDMA device"}
TO_DO = "lines that need attention: %d (!! does not work, ! works but could do better)"
WIDTH = 90


class Line:
    """A fact, or the same fact about some devices."""

    def __init__(self, section: str, fact: Fact):
        self.section, self.fact, self.devices, self.shown = section, fact, [], False


def wrapped(indent: str, text: str) -> List[str]:
    """A list with commas, in lines for a terminal."""
    lines = [""]
    for item in text.split(", "):
        if lines[-1] and len(lines[-1] + item) > WIDTH:
            lines[-1] += ","
            lines.append("")
        lines[-1] += ", " + item if lines[-1] else item
    return [indent + line for line in lines]


class Text:
    def __init__(self, report: Report):
        self.state, self.sections, self.all, self.advised, self.distances = (
            report.state,
            {},
            [],
            set(),
            {},
        )
        same = {}
        for fact in report.facts:
            # Sections that have the name of a device are parts of one section.
            kind, device = re.match("(?:(GPU|RDMA device) )?(.*)", fact.section).groups()
            section = kind + "s" if kind else device
            devices = self.sections.setdefault(section, [])
            if kind and device not in devices:
                devices.append(device)
            if section == "distance" and not fact.name.endswith(" nearest"):
                row, column = fact.name.split()
                self.distances.setdefault(row, {})[column] = fact.value
                continue
            # A device says a thing once: the same fact again is another device's.
            line = same.get((section, fact[1:5])) if kind else None
            if not line:
                line = same[section, fact[1:5]] = Line(section, fact)
                self.all.append(line)
            if kind:
                line.devices.append(device)

    def headline(self):
        to_do = sum(line.fact.verdict in (WARN, BAD) for line in self.all)
        return "nv_peer_mem: {}; {}".format(
            self.state, TO_DO % to_do if to_do else "nothing needs attention"
        )

    def lines(self):
        yield self.headline()
        for section, devices in self.sections.items():
            yield from ("", TITLES.get(section, section))
            if devices:
                yield from wrapped("      ", ", ".join(devices))
            if section == "distance":
                yield from self.matrix()
                continue
            # Lines of one name come together, whichever device was first.
            here = [line for line in self.all if line.section == section]
            for first in here:
                for line in here if first.devices else [first]:
                    if line.fact.name == first.fact.name and not line.shown:
                        yield from self.line(line, len(line.devices) < len(devices))

    def line(self, line, some):
        """SOME: it does not go for all devices of its section."""
        line.shown = True
        only = f" [{line.devices[0]}]" if some and len(line.devices) == 1 else ""
        yield "  %2s  %-24s %s%s" % (
            MARKS[line.fact.verdict],
            line.fact.name,
            line.fact.value,
            only,
        )
        if some and not only:
            yield from wrapped("        of ", ", ".join(line.devices))
        yield from self.advice(line)

    def advice(self, line):
        """What to do, and for which other lines too; once."""
        advice = line.fact.advice
        if not advice or advice in self.advised:
            return
        self.advised.add(advice)
        yield "        -> " + advice
        others = [
            " ".join(
                other.devices + [other.fact.name] if len(other.devices) == 1 else [other.fact.name]
            )
            for other in self.all
            if other is not line and other.fact.advice == advice
        ]
        if others:
            yield from wrapped("           ", "the same for: " + ", ".join(others))

    def matrix(self):
        columns = list(dict.fromkeys(column for row in self.distances.values() for column in row))
        cells = "".join(" %%-%ds" % max([4, *map(len, columns)]) for _ in columns)
        yield "      %-14s%s  nearest" % ("", cells % tuple(columns))
        nearest = {line.fact.name: line for line in self.all if line.section == "distance"}
        for row, distances in self.distances.items():
            line = nearest[row + " nearest"]
            there = cells % tuple(distances.get(column, "") for column in columns)
            yield "  %2s  %-14s%s  %s" % (MARKS[line.fact.verdict], row, there, line.fact.value)
            yield from self.advice(line)
        for distance, meaning in zip(DISTANCES, MEANINGS):
            if any(distance in row.values() for row in self.distances.values()):
                yield "      %-4s  %s" % (distance, meaning)
