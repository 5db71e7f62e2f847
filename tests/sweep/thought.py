# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Mistakes that no rule makes and that a person thought of: calls in another order, a lock that is
missing, a wrong device. `thought/AREA` lists those of an area.

A line with a file and what goes wrong begins a mistake. Of the lines after it, one that begins with
"-" is in the file and is left out, one that begins with "+" is put in, and one that begins with a
blank stays. The lines between two lines "..." belong together, and such a piece is in the file
exactly once. Lines that begin with "#" are comments."""

import re
from pathlib import Path
from typing import NamedTuple

from mistakes import Mistake

HERE = Path(__file__).resolve().parent


class Thought(NamedTuple):
    file: str
    why: str
    lines: tuple[str, ...]

    @property
    def place(self) -> str:
        return "by a person"

    def name(self) -> str:
        changed = next(line for line in self.lines if line[0] in "-+")
        return f"{self.file}: {self.why} ({changed[0]}{changed[1:].strip()})"

    def pieces(self) -> list[tuple[str, str]]:
        """Returns the old lines and the new lines of each piece."""
        found = [("\n", "\n")]
        for line in self.lines:
            old, new = found[-1]
            if line == "...":
                found.append(("\n", "\n"))
            else:
                text = f"{line[1:]}\n"
                found[-1] = (old + text * (line[0] != "+"), new + text * (line[0] != "-"))
        return found

    def put_in(self, text: str) -> str:
        text = f"\n{text}"
        places = []
        for old, new in self.pieces():
            # Two such pieces in a row share the end of a line.
            times = len(re.findall(f"(?={re.escape(old)})", text))
            assert times == 1, f"these lines are in {self.file} {times} times, not once:{old}"
            places.append((text.index(old), old, new))
        for at, old, new in sorted(places, reverse=True):
            # The end of the line before is in the piece only to find where a line begins.
            text = text[: at + 1] + new[1:] + text[at + len(old) :]
        return text[1:]


# A mistake of either kind.
Made = Mistake | Thought


def thoughts(area: str) -> list[Thought]:
    """Returns the mistakes of an area that people thought of."""
    found: list[Thought] = []
    for line in (HERE / "thought" / area).read_text(encoding="utf-8").splitlines():
        if head := re.fullmatch(r"([\w./-]+): (.*)", line):
            found.append(Thought(head[1], head[2], ()))
        elif line and not line.startswith("#"):
            last = found.pop()
            found.append(last._replace(lines=(*last.lines, line)))
    return found
