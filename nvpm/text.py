# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints a report for people: the answer first, then what needs attention, and all facts for those
who ask. What is said of several devices is one line with their names; advice that goes for several
lines is given at the first; distances are a matrix."""

import re
import textwrap
from typing import Dict, Iterator, List, Optional, Set, Tuple

from . import answer
from .fact import BAD, GOOD, NONE, WARN, Fact, to_do
from .report import Report
from .screen import Screen
from .topology import NODE, PHB, PIX, PXB, SYS

MARKS = {GOOD: "ok", WARN: " !", BAD: "!!", NONE: "  "}
MEANINGS = {
    PIX: "under one PCIe switch",
    PXB: "under several PCIe switches, without passing the CPU",
    PHB: "one root complex: through the CPU",
    NODE: "two root complexes of one NUMA node",
    SYS: "across NUMA nodes, or nobody says which",
}
TITLES = {"distance": "distance of GPU and RDMA device"}
MANY = re.compile("(GPU|RDMA device) (.*)")
# Of a list of devices, and of what has no terminal.
WIDTH = 90
# Where the value of a fact begins.
VALUE = 31
# Sections are of everything, or of the devices that somebody has named.
NOT_FOUND = "there is no GPU and no RDMA device {}. There are: {}"


class Line:
    """A fact, or the same fact about some devices."""

    def __init__(self, section: str, fact: Fact) -> None:
        self.section, self.fact, self.shown = section, fact, False
        self.devices: List[str] = []

    def title(self) -> str:
        """The name; before it that of its device, if it goes for one alone."""
        return " ".join(
            [*self.devices, self.fact.name] if len(self.devices) == 1 else [self.fact.name]
        )


def wrapped(indent: str, text: str) -> List[str]:
    """A list with commas, in lines for a terminal."""
    lines = [""]
    for item in text.split(", "):
        if lines[-1] and len(lines[-1] + item) > WIDTH:
            lines[-1] += ","
            lines.append("")
        lines[-1] += f", {item}" if lines[-1] else item
    return [indent + line for line in lines]


def status(report: Report, screen: Screen) -> Iterator[str]:
    """The answer, and what needs attention."""
    text = Text(report, screen)
    yield from brief(report, screen)
    yield ""
    yield from text.wrapped("", text.headline(), 0)
    yield from text.attention()
    yield from text.wrapped("", f"nvpm status --all shows all {len(report.facts)} facts.", 0)


def everything(report: Report, screen: Screen) -> Iterator[str]:
    yield from brief(report, screen)
    yield ""
    yield from Text(report, screen).lines()


def brief(report: Report, screen: Screen) -> Iterator[str]:
    """On one screen, whatever is on the node."""
    width = max(20, min(screen.width or answer.WIDTH, answer.WIDTH))
    first, *rest = answer.lines(report, width)
    yield screen.bold(first)
    yield from rest


class Unknown(Exception):
    """A device that is not there."""


def of_devices(report: Report, screen: Screen, wanted: List[str]) -> Iterator[str]:
    """What is said of these, which are named as this machine names them, or by a GPU's number."""
    numbers = {str(number): name for name, number in answer.gpu_numbers(report.machine).items()}
    there = {many[2] for many in map(MANY.match, (fact.section for fact in report.facts)) if many}
    names = {numbers.get(name, name.lower() if ":" in name else name) for name in wanted}
    if names - there:
        known = ", ".join(sorted(there)) or "none"
        raise Unknown(NOT_FOUND.format(" and no ".join(sorted(names - there)), known))
    chosen = [fact for fact in report.facts if is_about(fact, names)]
    return Text(report._replace(facts=chosen), screen).sections_of()


def is_about(fact: Fact, names: Set[str]) -> bool:
    many = MANY.match(fact.section)
    if many:
        return many[2] in names
    gpu, _, other = fact.name.partition(" ")
    return fact.section == "distance" and (gpu in names or other in names or other == "nearest")


class Text:
    def __init__(self, report: Report, screen: Optional[Screen] = None) -> None:
        self.state = report.state
        self.screen = screen or Screen()
        # Sections in their order, with the devices of those that are about devices.
        self.sections: Dict[str, List[str]] = {}
        self.all: List[Line] = []
        # Rows and columns of the matrix.
        self.distances: Dict[str, Dict[str, str]] = {}
        self.advised: Set[str] = set()
        same: Dict[Tuple[str, ...], Line] = {}
        for fact in report.facts:
            self.add(fact, same)

    def add(self, fact: Fact, same: Dict[Tuple[str, ...], Line]) -> None:
        # Sections that have the name of a device are parts of one section.
        many = MANY.match(fact.section)
        section = f"{many[1]}s" if many else fact.section
        devices = self.sections.setdefault(section, [])
        if section == "distance" and not fact.name.endswith(" nearest"):
            row, _, column = fact.name.partition(" ")
            self.distances.setdefault(row, {})[column] = fact.value
            return
        if not many:
            self.all.append(Line(section, fact))
            return
        # A device says a thing once: the same fact again is another device's.
        key = (section, fact.name, fact.verdict, fact.value, fact.advice)
        if key not in same:
            same[key] = Line(section, fact)
            self.all.append(same[key])
        same[key].devices.append(many[2])
        if many[2] not in devices:
            devices.append(many[2])

    def headline(self) -> str:
        count = len(to_do(line.fact for line in self.all))
        if not count:
            return f"nv_peer_mem: {self.state}; nothing needs attention"
        return (
            f"nv_peer_mem: {self.state}; lines that need attention: {count} "
            "(!! does not work, ! works but could do better)"
        )

    def mark(self, verdict: str) -> str:
        return self.screen.marked(verdict, f"{MARKS[verdict]:>2}")

    def attention(self) -> Iterator[str]:
        """What does not work, then what could do better, with the sections that they are in."""
        for verdict in (BAD, WARN):
            for line in self.all:
                if line.fact.verdict == verdict:
                    section, only = line.section, f" [{line.devices[0]}]" if line.devices else ""
                    if len(line.devices) > 1:
                        only = f" [{', '.join(answer.folded(line.devices))}]"
                    mark = self.mark(verdict)
                    value = f"{section}, {line.fact.name}: {line.fact.value}{only}"
                    yield from self.wrapped(f"  {mark}  ", value, 6)
                    yield from self.advice(line)

    def wrapped(self, before: str, value: str, indent: int) -> Iterator[str]:
        """VALUE behind BEFORE, which may have colours: on a terminal in lines as wide as that."""
        if not self.screen.width:
            yield before + value
            return
        width = max(self.screen.width - indent, 20)
        lines = textwrap.wrap(value, width, break_long_words=False, break_on_hyphens=False) or [""]
        yield before + lines[0]
        for line in lines[1:]:
            yield " " * indent + line

    def lines(self) -> Iterator[str]:
        yield from self.wrapped("", self.headline(), 0)
        yield from self.sections_of()

    def sections_of(self) -> Iterator[str]:
        for section, devices in self.sections.items():
            yield ""
            yield self.screen.bold(TITLES.get(section, section))
            if devices:
                yield from wrapped("      ", ", ".join(devices))
            if section == "distance":
                yield from self.matrix()
            else:
                yield from self.section(section, len(devices))

    def section(self, name: str, devices: int) -> Iterator[str]:
        """Lines of one name come together, whichever device was first."""
        here = [line for line in self.all if line.section == name]
        for first in here:
            for line in here if first.devices else [first]:
                if line.fact.name == first.fact.name and not line.shown:
                    yield from self.line(line, len(line.devices) < devices)

    def line(self, line: Line, some: bool) -> Iterator[str]:
        """SOME: it does not go for all devices of its section."""
        line.shown = True
        fact = line.fact
        only = f" [{line.devices[0]}]" if some and len(line.devices) == 1 else ""
        mark = self.mark(fact.verdict)
        yield from self.wrapped(f"  {mark}  {fact.name:<24} ", f"{fact.value}{only}", VALUE)
        if some and not only:
            yield from wrapped("        of ", ", ".join(line.devices))
        yield from self.advice(line)

    def advice(self, line: Line) -> Iterator[str]:
        """What to do, and for which other lines too; once."""
        advice = line.fact.advice
        if not advice or advice in self.advised:
            return
        self.advised.add(advice)
        yield from self.wrapped("        -> ", advice, 11)
        others = [one for one in self.all if one is not line and one.fact.advice == advice]
        if others:
            names = ", ".join(one.title() for one in others)
            yield from wrapped("           ", f"the same for: {names}")

    def matrix(self) -> Iterator[str]:
        columns = list(dict.fromkeys(column for row in self.distances.values() for column in row))
        width = max([4, *map(len, columns)])

        def cells(texts: List[str]) -> str:
            return "".join(f" {text:<{width}}" for text in texts)

        yield f"      {'':<14}{cells(columns)}  nearest"
        nearest = {line.fact.name: line for line in self.all if line.section == "distance"}
        for row, distances in self.distances.items():
            line = nearest[f"{row} nearest"]
            there = cells([distances.get(column, "") for column in columns])
            mark = self.mark(line.fact.verdict)
            yield f"  {mark}  {row:<14}{there}  {line.fact.value}"
            yield from self.advice(line)
        said = {distance for row in self.distances.values() for distance in row.values()}
        for distance, meaning in MEANINGS.items():
            if distance in said:
                yield f"      {distance:<4}  {meaning}"
