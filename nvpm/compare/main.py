# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command `nvpm compare`, which prints its result on one screen or as JSON, and writes it as a
page."""

import argparse
import os
import re
import sys
from argparse import Namespace
from typing import List, Optional

from ..options import Parser
from ..read.machine import Machine, clean
from ..show.page import NewFile
from .as_json import as_json
from .fleet import Expected, Fleet
from .inputs import from_lines, from_paths, lines_of
from .names import MOST, NotNames, unfolded
from .text import as_text


def expected(text: str) -> Expected:
    """Returns the nodes of --expect: a number, or names such as node[1-5],gpu7."""
    if re.match("[0-9]+$", text):
        count = int(text[:9])
        if 1 <= count <= MOST:
            return Expected((), count)
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to {MOST}")
    try:
        names = unfolded(text)
    except NotNames as reason:
        raise argparse.ArgumentTypeError(str(reason)) from None
    if not names:
        raise argparse.ArgumentTypeError("no nodes are named")
    return Expected(names, len(names))


def options_of(machine: Machine, words: List[str]) -> Namespace:
    parser = Parser(
        "compare",
        "Compares what nvpm status --json or nvpm selftest --json printed on many nodes, and says "
        "which nodes differ from the others, and in which fact. Reads files, directories with a "
        "file for each node, or standard input with the node before each line (clush, pdsh, srun "
        "--label), or with a heading before each node (clush -b, Ansible).",
        "Exit codes: 0 all nodes are alike, or like the others of their kind, 1 some differ, gave "
        "no status or are missing, 2 there is nothing to compare, or the page cannot be written.",
    )
    parser.add_argument("path", nargs="*", help="files or directories; without one: standard input")
    parser.add_argument("--all", action="store_true", help="all groups, also beyond one screen")
    parser.add_argument(
        "--expect",
        type=expected,
        metavar="NODES",
        help="the nodes that should be there, such as node[1-5],gpu7, or their number; those that "
        "are missing are named",
    )
    parser.add_argument(
        "--html", metavar="FILE", help="also writes a page for a browser, FILE, which must be new"
    )
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
    if not options.html:
        return compare(options, None)
    try:
        file = NewFile(options.html)
    except OSError as error:
        sys.stderr.write(f"nvpm compare: {options.html} cannot be written: {error.strerror}\n")
        return 2
    with file:
        return compare(options, file)


def compare(options: Namespace, file: Optional[NewFile]) -> int:
    try:
        nodes = from_paths(options.path) if options.path else from_lines(lines_of(sys.stdin))
        fleet = Fleet(nodes, options.expect)
    except OSError as error:
        sys.stderr.write(f"nvpm compare: {error.filename}: {error.strerror}\n")
        return 2
    if fleet.cut:
        sys.stderr.write(f"nvpm compare: only the first {MOST} nodes are compared\n")
    if not fleet.nodes:
        sys.stderr.write(nothing(fleet))
        return 2
    if file:
        from .page import as_page

        try:
            file.keep(as_page(fleet))
        except OSError as error:
            sys.stderr.write(f"nvpm compare: {options.html} cannot be written: {error.strerror}\n")
            return 2
    if options.json:
        print(as_json(fleet))
    else:
        print("\n".join(map(clean, as_text(fleet, options.all))))
    return 1 if fleet.odd or fleet.silent or fleet.missing_count else 0


def nothing(fleet: Fleet) -> str:
    said = f" The first node said: {fleet.silent[0].words}" if fleet.silent else ""
    return (
        "nvpm compare: there is nothing to compare: it reads the output of nvpm status --json and "
        f"of nvpm selftest --json.{said}\n"
    )
