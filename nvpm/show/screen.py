# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Describes the standard output. A terminal has a width and colours. If the output is a file or
another program, each fact is on one line."""

import os
import shutil
import sys

from ..facts.fact import BAD, GOOD, WARN

COLOURS = {GOOD: "32", WARN: "33", BAD: "1;31"}
BOLD = "1"


class Screen:
    """The standard output. If WIDTH is 0, lines are not wrapped."""

    def __init__(self, width: int = 0, coloured: bool = False) -> None:
        self.width, self.coloured = width, coloured

    def painted(self, colour: str, text: str) -> str:
        return f"\033[{colour}m{text}\033[0m" if self.coloured and colour else text

    def marked(self, verdict: str, text: str) -> str:
        return self.painted(COLOURS.get(verdict, ""), text)

    def bold(self, text: str) -> str:
        return self.painted(BOLD, text)


def here() -> Screen:
    """Returns the screen of standard output. In the environment, NO_COLOR turns colours off, and
    COLUMNS sets the width."""
    terminal = sys.stdout.isatty()
    wanted = terminal or os.environ.get("COLUMNS", "").isdigit()
    width = shutil.get_terminal_size().columns if wanted else 0
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
    return Screen(width, terminal and not plain)
