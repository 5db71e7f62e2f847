# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Prints the status for people. The answer comes first, and then the facts that need attention, or
all facts with --all. If several lines have the same advice, it is printed only after the first of
these lines. Distances are printed as a matrix."""

import textwrap
from typing import Dict, Iterator, List, Optional, Set

from ..facts.fact import BAD, GOOD, NONE, WARN, Fact, to_do
from ..facts.status import Status
from ..facts.topology import NODE, PHB, PIX, PXB, SYS
from ..read.names import folded, gpu_numbers
from . import answer
from .lines import MANY, Line, lines_of, section_of
from .screen import Screen

MARKS = {GOOD: "ok", WARN: " !", BAD: "!!", NONE: "  "}
MEANINGS = {
    PIX: "under one PCIe switch",
    PXB: "under several PCIe switches, without passing the CPU",
    PHB: "one root complex: through the CPU",
    NODE: "two root complexes of one NUMA node",
    SYS: "across NUMA nodes, or nobody says which",
}
TITLES = {"distance": "distance of GPU and RDMA device"}
# The width of a list of devices, even if the output is no terminal.
WIDTH = 90
# The column at which values start.
VALUE = 31
NOT_FOUND = "there is no GPU and no RDMA device {}. There are: {}"


def wrap_list(indent: str, text: str) -> List[str]:
    """Breaks a list with commas into lines of about WIDTH columns after INDENT."""
    lines = [""]
    for item in text.split(", "):
        if lines[-1] and len(lines[-1] + item) > WIDTH:
            lines[-1] += ","
            lines.append("")
        lines[-1] += f", {item}" if lines[-1] else item
    return [indent + line for line in lines]


def attention(status: Status, screen: Screen) -> Iterator[str]:
    """Yields the answer, and the facts that need attention."""
    text = Text(status, screen)
    yield from brief(status, screen)
    yield ""
    yield from text.wrapped("", text.headline(), 0)
    yield from text.attention()
    yield from text.wrapped("", f"nvpm status --all shows all {len(status.facts)} facts.", 0)


def everything(status: Status, screen: Screen) -> Iterator[str]:
    yield from brief(status, screen)
    yield ""
    yield from Text(status, screen).lines()


def brief(status: Status, screen: Screen) -> Iterator[str]:
    """Yields the answer, which fits one screen on every node."""
    width = max(20, min(screen.width or answer.WIDTH, answer.WIDTH))
    first, *rest = answer.lines(status, width)
    yield screen.bold(first)
    yield from rest


class Unknown(Exception):
    """The user has named a device that the machine does not have."""


def of_devices(status: Status, screen: Screen, wanted: List[str]) -> Iterator[str]:
    """Yields the facts about the WANTED devices, which are names of devices or numbers of GPUs.
    Raises Unknown if the machine lacks one of these devices."""
    numbers = {str(number): name for name, number in gpu_numbers(status.machine).items()}
    there = {many[2] for many in map(MANY.match, (fact.section for fact in status.facts)) if many}
    names = {numbers.get(name, name.lower() if ":" in name else name) for name in wanted}
    if names - there:
        known = ", ".join(sorted(there)) or "none"
        raise Unknown(NOT_FOUND.format(" and no ".join(sorted(names - there)), known))
    chosen = [fact for fact in status.facts if is_about(fact, names)]
    return Text(status._replace(facts=chosen), screen).sections_of()


def is_about(fact: Fact, names: Set[str]) -> bool:
    many = MANY.match(fact.section)
    if many:
        return many[2] in names
    gpu, _, other = fact.name.partition(" ")
    return fact.section == "distance" and (gpu in names or other in names or other == "nearest")


def is_cell(fact: Fact) -> bool:
    """Returns whether the fact is a distance of two devices, which the matrix shows."""
    return fact.section == "distance" and not fact.name.endswith(" nearest")


class Text:
    def __init__(self, status: Status, screen: Optional[Screen] = None) -> None:
        self.state = status.state
        self.screen = screen or Screen()
        # Each section with its devices, in the order of the facts. A section that is not about
        # devices has an empty list.
        self.sections: Dict[str, List[str]] = {}
        # The distances in the matrix, by row (GPU) and column (RDMA device).
        self.distances: Dict[str, Dict[str, str]] = {}
        self.advised: Set[str] = set()
        for fact in status.facts:
            self.note(fact)
        self.all = lines_of(fact for fact in status.facts if not is_cell(fact))

    def note(self, fact: Fact) -> None:
        """Stores the section and the device of a fact. If the fact is a distance, also stores its
        place in the matrix."""
        section, device = section_of(fact)
        devices = self.sections.setdefault(section, [])
        if device and device not in devices:
            devices.append(device)
        if is_cell(fact):
            row, _, column = fact.name.partition(" ")
            self.distances.setdefault(row, {})[column] = fact.value

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
        """Yields the lines about things that do not work, then about things that could do better,
        each with its section."""
        for verdict in (BAD, WARN):
            for line in self.all:
                if line.fact.verdict == verdict:
                    section, only = line.section, f" [{line.devices[0]}]" if line.devices else ""
                    if len(line.devices) > 1:
                        only = f" [{', '.join(folded(line.devices))}]"
                    mark = self.mark(verdict)
                    value = f"{section}, {line.fact.name}: {line.fact.value}{only}"
                    yield from self.wrapped(f"  {mark}  ", value, 6)
                    yield from self.advice(line)

    def wrapped(self, before: str, value: str, indent: int) -> Iterator[str]:
        """Yields VALUE after BEFORE, which may contain colours. On a terminal, VALUE is wrapped,
        and later lines begin with INDENT blanks."""
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
                yield from wrap_list("      ", ", ".join(devices))
            if section == "distance":
                yield from self.matrix()
            else:
                yield from self.section(section, len(devices))

    def section(self, name: str, devices: int) -> Iterator[str]:
        """Yields the lines of a section. Lines with the same name are printed together, even if
        other lines stood between them."""
        here = [line for line in self.all if line.section == name]
        for first in here:
            for line in here if first.devices else [first]:
                if line.fact.name == first.fact.name and not line.shown:
                    yield from self.line(line, len(line.devices) < devices)

    def line(self, line: Line, some: bool) -> Iterator[str]:
        """Yields a line and its advice. SOME says that the line concerns only some devices of its
        section, so these devices are named."""
        line.shown = True
        fact = line.fact
        only = f" [{line.devices[0]}]" if some and len(line.devices) == 1 else ""
        mark = self.mark(fact.verdict)
        yield from self.wrapped(f"  {mark}  {fact.name:<24} ", f"{fact.value}{only}", VALUE)
        if some and not only:
            yield from wrap_list("        of ", ", ".join(line.devices))
        yield from self.advice(line)

    def advice(self, line: Line) -> Iterator[str]:
        """Yields the advice of the line, with the names of other lines that have the same advice.
        Yields nothing if an earlier line had the advice."""
        advice = line.fact.advice
        if not advice or advice in self.advised:
            return
        self.advised.add(advice)
        yield from self.wrapped("        -> ", advice, 11)
        others = [one for one in self.all if one is not line and one.fact.advice == advice]
        if others:
            names = ", ".join(one.title() for one in others)
            yield from wrap_list("           ", f"the same for: {names}")

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
