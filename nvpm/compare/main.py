# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command `nvpm compare`, which prints its result on one screen or as JSON."""

import json
import os
import sys
import textwrap
from argparse import Namespace
from typing import Container, Dict, Iterator, List

from ..options import Parser
from ..read.machine import Machine, clean
from .features import Features, features
from .groups import MISSING, Group, groups_of, norm_of
from .inputs import Node, from_lines, from_paths, lines_of
from .measured import Rates, compared, rates, results
from .names import folded

# The lines of a screen, its columns, and the columns of a name.
HEIGHT, WIDTH, NAME = 24, 100, 14
# Features that describe the nodes that are alike.
DESCRIBING = (
    *("GPU, model", "driver, nvidia", "driver, flavour", "module, state", "module, source"),
    *("RDMA core, peer memory", "RDMA device, firmware", "ways", "kernel"),
)


class Fleet:
    """The nodes of all inputs."""

    def __init__(self, nodes: Iterator[Node]) -> None:
        self.nodes: Dict[str, Features] = {}
        self.silent: List[Node] = []
        tested: Dict[str, Features] = {}
        used: Dict[str, int] = {}
        used_by_tests: Dict[str, int] = {}
        measured: Dict[str, Rates] = {}
        for node in nodes:
            name = clean(node.name)
            if node.status is None:
                self.silent.append(node._replace(name=name, words=clean(node.words)))
            else:
                try:
                    if "facts" in node.status:
                        self.nodes[unused(name, self.nodes, used)] = features(node.status)
                    else:
                        name = unused(name, tested, used_by_tests)
                        tested[name], measured[name] = results(node.status), rates(node.status)
                except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
                    self.silent.append(Node(name, None, "a status in another form"))
        self.add_selftests(tested, measured)
        self.norm = norm_of(self.nodes)
        self.groups = groups_of(self.nodes, self.norm)
        self.odd = [group for group in self.groups if group.differences]
        self.alike = sum(len(group.nodes) for group in self.groups if not group.differences)

    def add_selftests(self, tested: Dict[str, Features], measured: Dict[str, Rates]) -> None:
        """Adds the results of selftests to the features of the nodes that they belong to."""
        for found in (tested, compared(measured)):
            for name, added in found.items():
                self.nodes.setdefault(name, {}).update(added)


def unused(name: str, names: Container[str], used: Dict[str, int]) -> str:
    """Returns NAME. If NAMES has this name already, appends a number to NAME. USED has the last
    number of each name, because one node may print thousands of statuses."""
    free = name
    while free in names:
        used[name] = used.get(name, 1) + 1
        free = f"{name}#{used[name]}"
    return free


def wrapped(name: str, text: str, most: int) -> List[str]:
    lines = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=name.ljust(NAME - 1) + " ",
        subsequent_indent=" " * NAME,
        break_on_hyphens=False,
    )
    if len(lines) <= most:
        return lines
    return [*lines[: most - 1], lines[most - 1][: WIDTH - 4] + " ..."]


def headline(fleet: Fleet) -> str:
    total = len(fleet.nodes) + len(fleet.silent)
    differ = sum(len(group.nodes) for group in fleet.odd)
    texts = [f"{total} {'node' if total == 1 else 'nodes'}: {fleet.alike} are alike"]
    if total == fleet.alike == 1:
        texts = ["1 node: there is no other to compare it with"]
    if differ:
        ways = "1 way" if len(fleet.odd) == 1 else f"{len(fleet.odd)} ways"
        texts.append(f"{differ} differ, in {ways}")
    if fleet.silent:
        texts.append(f"{len(fleet.silent)} gave no status")
    return ", ".join(texts) + "."


def silent_lines(fleet: Fleet) -> Iterator[List[str]]:
    by_words: Dict[str, List[str]] = {}
    for node in fleet.silent:
        by_words.setdefault(node.words, []).append(node.name)
    for words, names in by_words.items():
        yield wrapped(folded(names), f"no status: {words or 'no output'}", 2)


def group_lines(fleet: Fleet, group: Group, most: int) -> List[str]:
    """Returns lines with the differences of a group. Each difference is printed with the value that
    the other nodes have."""
    count = f"{len(group.nodes)} nodes: " if len(group.nodes) > 1 else ""
    said: List[str] = []
    name = folded(group.nodes)
    if len(name) > NAME - 2:
        said, name = [name if len(name) <= WIDTH else name[: WIDTH - 4] + " ..."], ""
    for feature, value in group.differences:
        usual = fleet.norm[feature]
        others = "the others have none" if usual == MISSING else f"the others {usual}"
        said += wrapped(name, f"{count}{feature}: {value}; {others}", 2)
        name, count = "", ""
    if len(said) > most:
        said = [*said[: most - 1], " " * NAME + f"and {len(group.differences)} differences in all"]
    return said


def alike_lines(fleet: Fleet) -> List[str]:
    parts = [
        f"{name}: {fleet.norm[name]}"
        for name in DESCRIBING
        if fleet.norm.get(name, MISSING) != MISSING
    ]
    return wrapped("most nodes", "; ".join(parts), 4)


def as_text(fleet: Fleet, every: bool) -> Iterator[str]:
    """Yields one screen: the odd nodes first."""
    yield headline(fleet)
    room = sys.maxsize if every else HEIGHT - 6
    blocks = [*silent_lines(fleet)]
    blocks += [group_lines(fleet, group, sys.maxsize if every else 5) for group in fleet.odd]
    left = len(blocks)
    for block in blocks:
        if len(block) > room:
            break
        room -= len(block)
        left -= 1
        yield from block
    if left:
        yield f"and {left} more groups: nvpm compare --all"
    yield from alike_lines(fleet)


def as_json(fleet: Fleet) -> str:
    groups = [
        {
            "nodes": group.nodes,
            "differences": [
                {"feature": name, "value": value, "others": fleet.norm[name]}
                for name, value in group.differences
            ],
        }
        for group in fleet.odd
    ]
    silent = [{"node": node.name, "words": node.words} for node in fleet.silent]
    return json.dumps(
        {
            "schema": 1,
            "nodes": len(fleet.nodes) + len(fleet.silent),
            "alike": fleet.alike,
            "groups": groups,
            "silent": silent,
            "norm": fleet.norm,
        },
        indent=1,
        ensure_ascii=False,
    )


def options_of(machine: Machine, words: List[str]) -> Namespace:
    parser = Parser(
        "compare",
        "Compares what nvpm status --json or nvpm selftest --json printed on many nodes, and says "
        "which nodes differ from the others, and in which fact. Reads files, directories with a "
        "file for each node, or standard input with the node before each line (clush, pdsh, srun "
        "--label), or with a heading before each node (clush -b, Ansible).",
        "Exit codes: 0 all nodes are alike, 1 some differ or gave no status, 2 there is nothing to "
        "compare.",
    )
    parser.add_argument("path", nargs="*", help="files or directories; without one: standard input")
    parser.add_argument("--all", action="store_true", help="all groups, also beyond one screen")
    parser.add_argument("--json", action="store_true", help="one object for machines")
    options = parser.read(machine, words)
    missing = next((path for path in options.path if not os.path.exists(path)), None)
    if missing:
        parser.error(f"there is no {missing}")
    if not options.path and sys.stdin.isatty():
        parser.error("name files or directories, or pipe the output of many nodes into it")
    return options


def main(machine: Machine, words: List[str]) -> int:
    options = options_of(machine, words)
    try:
        fleet = Fleet(from_paths(options.path) if options.path else from_lines(lines_of(sys.stdin)))
    except OSError as error:
        sys.stderr.write(f"nvpm compare: {error.filename}: {error.strerror}\n")
        return 2
    if not fleet.nodes:
        sys.stderr.write(nothing(fleet))
        return 2
    if options.json:
        print(as_json(fleet))
    else:
        print("\n".join(map(clean, as_text(fleet, options.all))))
    return 1 if fleet.odd or fleet.silent else 0


def nothing(fleet: Fleet) -> str:
    said = f" The first node said: {fleet.silent[0].words}" if fleet.silent else ""
    return (
        "nvpm compare: there is nothing to compare: it reads the output of nvpm status --json and "
        f"of nvpm selftest --json.{said}\n"
    )
