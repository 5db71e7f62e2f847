# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a report for people. What is said of several GPUs or RDMA devices is one line with their names; an advice that
goes for several lines is given at the first; distances are a matrix."""
import re

from .fact import BAD, GOOD, NONE, WARN
from .topology import DISTANCES

MARKS = {GOOD: "ok", WARN: " !", BAD: "!!", NONE: "  "}
MEANINGS = dict(zip(DISTANCES, (
    "under one PCIe switch",
    "under several PCIe switches, without passing the CPU",
    "one root complex: through the CPU",
    "two root complexes of one NUMA node",
    "across NUMA nodes, or nobody says which",
)))
WIDTH = 90


def headline(report):
    return _Text(report).headline()


def text(report):
    found = _Text(report)
    return "\n".join([found.headline(), *found.lines()]) + "\n"


class _Line:
    """A fact, or the same fact about some devices."""

    def __init__(self, section, fact):
        self.section, self.fact, self.devices, self.shown = section, fact, [], False


def _wrapped(indent, items):
    """The items, in lines of a terminal. What has a comma in it may be divided there."""
    line, lines = "", []
    for item in ", ".join(items).split(", "):
        if line and len(line + item) > WIDTH:
            lines.append(indent + line + ",")
            line = ""
        line = line + ", " + item if line else item
    return lines + [indent + line]


class _Text:
    def __init__(self, report):
        self.state, self.sections, self.all_lines, self.advised = report.state, {}, [], set()
        self.distances, self.columns = {}, []
        same = {}
        for fact in report.facts:
            # Sections with the name of a device are parts of one.
            kind, device = re.match("(?:(GPU|RDMA device) )?(.*)", fact.section).groups()
            section = kind + "s" if kind else device
            devices = self.sections.setdefault(section, [])
            if kind and device not in devices:
                devices.append(device)
            if section == "distance" and not fact.name.endswith(" nearest"):
                row, column = fact.name.split()
                self.distances.setdefault(row, {})[column] = fact.value
                self.columns += [column] * (column not in self.columns)
                continue
            # A device says a thing once, so what is the same is another one's.
            line = same.get((section, fact[1:5])) if kind else None
            if line is None:
                line = same[section, fact[1:5]] = _Line(section, fact)
                self.all_lines.append(line)
            if kind:
                line.devices.append(device)

    def headline(self):
        to_do = sum(line.fact.verdict in (WARN, BAD) for line in self.all_lines)
        return "nv_peer_mem: %s; %s" % (self.state, (
            "lines that need attention: %d (!! does not work, ! works but could do better)" % to_do) if to_do else "nothing needs attention")

    def lines(self):
        for section, devices in self.sections.items():
            yield ""
            yield "distance of GPU and RDMA device" if section == "distance" else section
            if devices:
                yield from _wrapped("      ", devices)
            if section == "distance":
                yield from self._matrix()
                continue
            # Lines of one name come together, whatever device was first.
            here = [line for line in self.all_lines if line.section == section]
            for line in here:
                for other in here if line.devices else [line]:
                    if other.fact.name == line.fact.name and not other.shown:
                        yield from self._show(other, len(devices))

    def _show(self, line, number):
        line.shown = True
        some = len(line.devices) < number
        only = " [%s]" % line.devices[0] if some and len(line.devices) == 1 else ""
        yield "  %2s  %-24s %s%s" % (MARKS[line.fact.verdict], line.fact.name, line.fact.value, only)
        if some and len(line.devices) > 1:
            yield from _wrapped("        of ", line.devices)
        yield from self._advise(line)

    def _advise(self, line):
        """What to do, and for which other lines too."""
        advice = line.fact.advice
        if not advice or advice in self.advised:
            return
        self.advised.add(advice)
        yield "        -> " + advice
        others = [other for other in self.all_lines if other is not line and other.fact.advice == advice]
        if others:
            yield from _wrapped("           ", ["the same for: " + ", ".join(
                " ".join([*other.devices[:len(other.devices) == 1], other.fact.name]) for other in others)])

    def _matrix(self):
        width = max(4, *map(len, self.columns)) if self.columns else 4

        def cells(texts):
            return "".join(" %-*s" % (width, cell) for cell in texts)

        yield "      %-14s%s  nearest" % ("", cells(self.columns))
        nearest = {line.fact.name: line for line in self.all_lines if line.section == "distance"}
        for row, distances in self.distances.items():
            line = nearest[row + " nearest"]
            yield "  %2s  %-14s%s  %s" % (
                MARKS[line.fact.verdict], row, cells(distances.get(column, "") for column in self.columns), line.fact.value)
            yield from self._advise(line)
        used = {distance for distances in self.distances.values() for distance in distances.values()}
        for distance in DISTANCES:
            if distance in used:
                yield "      %-4s  %s" % (distance, MEANINGS[distance])
