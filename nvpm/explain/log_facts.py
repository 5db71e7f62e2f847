# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Collects the facts of a log that no message is about, but on which the cause of a message can
depend. A fact is no verdict."""

import re
from typing import Dict, List, Set, Tuple

from .signs import NEEDED, PROGRAMS, SIGNS, Sign

# A variable that a program reports, or that stands on a command line or in an environment.
VARIABLE = re.compile(
    r"\b((?:NCCL|UCX|NVSHMEM|FI|MC|OMPI_MCA|PYTORCH|CUDA|GLOO|RCCL|HSA)_[A-Z][A-Z0-9_]*)"
    r"(?: set by environment to | set to |=|: )[\"']?([^\s\"',;]*)"
)
NODES = re.compile(r"(?i)\bn_?nodes[ =:]+(\d{1,5})\b")
RANKS = re.compile(r"\bnranks[ =:]+(\d+)|world[_ ]size[ =:]+(\d+)")
MOST_VARIABLES = 512
# A variable keeps this number of values at most, and a program keeps this number of versions.
MOST_VALUES = 8


class LogFacts:
    def __init__(self) -> None:
        self.names: Set[str] = set()
        self.versions: Dict[str, List[str]] = {}
        self.variables: Dict[str, Set[str]] = {}
        self.nodes = 0
        self.ranks = 0
        # The rank of each process of NCCL, by host and process.
        self.rank_of: Dict[Tuple[str, str], str] = {}
        # The number of ranks of the communicator that the rank is from.
        self.size_of: Dict[Tuple[str, str], int] = {}

    def read(self, line: str) -> None:
        """Collects the facts of a line."""
        self.read_signs(line, line.lower())
        for name, value in VARIABLE.findall(line):
            if name not in self.variables and len(self.variables) >= MOST_VARIABLES:
                continue
            values = self.variables.setdefault(name, set())
            if len(values) < MOST_VALUES:
                values.add(value.rstrip("."))
        nodes, ranks = NODES.search(line), RANKS.search(line)
        if nodes:
            self.nodes = max(self.nodes, int(nodes[1]))
        if ranks:
            self.ranks = max(self.ranks, int(ranks[1] or ranks[2]))

    def read_signs(self, line: str, small: str) -> None:
        """Collects the facts whose patterns match. SMALL is the line in small letters."""
        for one in SIGNS:
            known = one.fact in self.names or not can_match(one, small)
            if not known and one.pattern.search(line):
                self.names.add(one.fact)
        for one in PROGRAMS:
            found = one.pattern.search(line) if can_match(one, small) else None
            if found:
                version = next(filter(None, found.groups())).rstrip(".-")
                versions = self.versions.setdefault(one.fact, [])
                if version not in versions and len(versions) < MOST_VALUES:
                    versions.append(version)


def can_match(one: Sign, small: str) -> bool:
    """Returns whether a line in small letters has a text that the pattern of a sign needs."""
    return any(text in small for text in one.needed)


def has_facts(line: str) -> bool:
    """Returns whether a line may show facts: a variable, or a text that a sign needs."""
    small = line.lower()
    return "_" in line or any(text in small for text in NEEDED)
