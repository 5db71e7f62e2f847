# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The lines of the first screen about programs."""

from typing import Dict, Iterator, List

from ..facts.consumers import BY_ANOTHER_ROW, PROGRAMS
from ..facts.outcomes import Group, Outcome, grouped
from ..read import ways
from ..read.machine import MODULE, Machine
from ..read.names import pair_names
from ..read.ways import DMA_BUF

FIND_NONE = "find no way"
UNFIT = "cannot use this RDMA device"


def program_lines(machine: Machine) -> Iterator[str]:
    """Yields for each group of pairs a line for each way, with the programs that take this way. The
    last lines of a group name the programs that find no way, or cannot use the devices."""
    groups = grouped(machine)
    for group in groups:
        begin = f"with {pair_names(machine, group.pairs)}: " if len(groups) > 1 else ""
        for text, programs in by_way(machine, group).items():
            yield f"{begin}{text}: {'; '.join(programs)}"


def by_way(machine: Machine, group: Group) -> Dict[str, List[str]]:
    """Returns the names of the programs by what they do with the pairs of the group. Only common
    programs are named, and the others are counted."""
    named: Dict[str, List[str]] = {}
    others: Dict[str, int] = {}
    for program in PROGRAMS:
        found = group.programs.get(program.name)
        if not found or (found.unfit and program.why_never in BY_ANOTHER_ROW):
            continue
        text = what_it_does(machine, group, found)
        if program.common:
            wanted = program.instead if found.unfit and not program.only else found.setting
            named.setdefault(text, []).append(
                f"{program.name} ({wanted})" if wanted else program.name
            )
        else:
            others[text] = others.get(text, 0) + 1
    for text, names in named.items():
        if text in others:
            names.append(f"{others[text]} more")
    # The programs that find a way come first.
    return {text: named[text] for text in sorted(named, key=[UNFIT, FIND_NONE].count)}


def what_it_does(machine: Machine, group: Group, found: Outcome) -> str:
    if found.unfit:
        return UNFIT
    if not found.way:
        return FIND_NONE
    revocable = ways.revokes(machine) and any(
        MODULE in ways.of_pairs(machine)[pair] for pair in group.pairs
    )
    if found.way == DMA_BUF and revocable:
        return f"use {DMA_BUF}, which nothing revokes"
    return f"use {found.way}"
