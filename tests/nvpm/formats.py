# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads tests/nvpm/formats, which have the format string in a program's source for each row of the
table of `nvpm explain`, and compares a row with a format. formats/README.md describes the files."""

import functools
import re
from pathlib import Path
from typing import NamedTuple

from nvpm.explain import texts
from nvpm.explain.table import SECTIONS

FORMATS = Path(__file__).parent / "formats"
CONVERSION = re.compile(
    r"(%%)|%[-+ #0]*[\d*]*(?:\.[\d*]*)?(?:hh|h|ll|l|z|t|j|q|L)?[a-zA-Z](?:I[46]|F)?"
    r"|\{[^{}\s]*\}|\$\{[^{}]*\}|\$\([^()]*\)|\$[A-Za-z_]\w*|\$[0-9@*]"
)
# A value that each conversion may have, by its last letter.
VALUES = {**dict.fromkeys("diu", "7"), **dict.fromkeys("xXp", "0x7f00"), "c": "c", "f": "7.0"}
HOLE = "\0"  # a place of a pattern that any text fills


class Format(NamedTuple):
    """A format string in a source."""

    text: str
    path: str
    tree: str  # the commit of the tree in which the format was found, its date, and its tag
    versions: str  # the first and the last tag with the format, of those that were looked at
    before: str  # what the program puts before its messages, as far as the row has it


class Block(NamedTuple):
    """What is known about the source of a row."""

    row: str
    formats: "list[Format]"
    why: str  # why there is no format
    # The whole messages as users met them, with conversions in place of values. A block has such
    # messages if no source is public, or if a program or its libraries make a message of several
    # texts.
    met: "list[str]"


@functools.cache
def holes(text: str) -> "tuple[str, list[str]]":
    """Returns a format with a hole in place of each conversion, and the conversions."""
    found: list[str] = []

    def hole(one: "re.Match[str]") -> str:
        if one[1]:
            return "%"
        found.append(one.group())
        return HOLE

    return CONVERSION.sub(hole, re.sub(" +", " ", text)), found


def value(conversion: str) -> str:
    return VALUES.get(conversion[-1], "mlx5_0") if conversion.startswith("%") else "mlx5_0"


class Fit(NamedTuple):
    """How a row's text without alternatives stands in a format."""

    literal: int  # the characters that the format has, too
    total: int  # the characters of the text
    filled: str  # the format with values with which it contains the text


def fit(row: str, text: str) -> "Fit | None":
    """Returns how a row's text stands in a format, with as many characters as possible literal."""
    row = re.sub(" +", " ", row)
    form, conversions = holes(text)
    shown = texts.PLACEHOLDER.sub(HOLE, row)
    total = len(shown.replace(HOLE, ""))
    if HOLE not in shown and shown in form:
        moves: list[tuple[int, int, bool]] = []
        literal = total
    else:
        moves = aligned(shown, form)
        literal = sum(same for _, _, same in moves)
        if not moves:
            return None
    values = [{"<n>": "7", "<w>": "mlx5_0"}.get(one, "") for one in texts.PLACEHOLDER.findall(row)]
    # The value of a hole of the format is what the hole takes from the row. Within the row's text a
    # hole can be empty.
    taken = dict.fromkeys(range(moves[0][0], moves[-1][0]), "") if moves else {}
    for i, j, same in moves:
        if not same:
            one = values[shown[:j].count(HOLE)] if shown[j] == HOLE else shown[j]
            taken[i] = taken.get(i, "") + one
    parts = []
    place = 0
    for i, one in enumerate(form):
        if one == HOLE:
            # An optional text follows another value, or stands within the row's text.
            optional = taken.get(i) == "" or (i not in taken and form[i - 1 : i] == HOLE)
            empty = optional and conversions[place][-1] in "s}"
            parts.append("" if empty else taken.get(i) or value(conversions[place]))
            place += 1
        else:
            parts.append(one)
    return Fit(literal, total, "".join(parts))


def aligned(row: str, form: str) -> "list[tuple[int, int, bool]]":
    """Returns the best way in which ROW is a part of FORM, as pairs of places in FORM and ROW. The
    two characters are equal, or the hole of the format takes the character of the row."""
    width, height = len(form) + 1, len(row) + 1
    worst = float("-inf")
    best = [[0.0] * width] + [[worst] * width for _ in range(height - 1)]
    came = [[0] * width for _ in range(height)]  # 1: both move, 2: the row moves, 3: the format
    for j in range(height):
        now, steps = best[j], came[j]
        for i in range(width):
            score = now[i]
            if score == worst:
                continue
            hole = i + 1 < width and form[i] == HOLE
            skips = i + 1 < width and j and (hole or (j < height - 1 and row[j] == HOLE))
            if skips and now[i + 1] < score:
                now[i + 1], steps[i + 1] = score, 3
            if j == height - 1:
                continue
            below = best[j + 1]
            if i + 1 < width and form[i] == row[j] != HOLE and below[i + 1] < score + 1:
                below[i + 1], came[j + 1][i + 1] = score + 1, 1
            # A hole of the format takes a placeholder of the row in preference to a literal
            # character.
            cost = -0.01 if hole and row[j] == HOLE else 0.01
            if (hole or row[j] == HOLE) and below[i] < score - cost:
                below[i], came[j + 1][i] = score - cost, 2
    j, i = height - 1, max(range(width), key=lambda one: best[-1][one])
    if best[j][i] == worst:
        return []
    moves = []
    while j:
        step = came[j][i]
        if step == 1:
            i, j = i - 1, j - 1
            moves.append((i, j, True))
        elif step == 2:
            j -= 1
            if i < len(form) and form[i] == HOLE:
                moves.append((i, j, False))
        else:
            i -= 1
    return moves[::-1]


def of_block(block: str) -> "Block | None":
    """Returns what a block of a file says. An indented line belongs to the format above it."""
    row, why = "", ""
    met: list[str] = []
    formats: list[dict[str, str]] = []
    for line in block.splitlines():
        key, _, rest = line.strip().partition(": ")
        if not line.strip() or line.startswith("#"):
            continue
        if key == "row":
            row = rest
        elif key == "no format":
            why = rest
        elif key == "met":
            met.append(rest)
        elif key == "format":
            formats.append({"text": rest})
        else:
            assert line.startswith("  ") and key in Format._fields, line
            formats[-1][key] = rest
    if not row:
        return None
    made = [
        Format(
            *(
                one.get(field, "").strip('"') if field == "before" else one.get(field, "")
                for field in Format._fields
            )
        )
        for one in formats
    ]
    return Block(row, made, why, met)


def of_file(file: Path) -> list[Block]:
    """Returns the blocks of a file."""
    found = map(of_block, file.read_text(encoding="utf-8").split("\n\n"))
    return [block for block in found if block]


@functools.cache
def blocks() -> dict[str, Block]:
    """Returns the blocks of all files by their rows."""
    found: dict[str, Block] = {}
    for file in sorted(FORMATS.glob("*.txt")):
        for one in of_file(file) if file.stem != "RESULT" else []:
            assert one.row.strip() not in found, one.row
            found[one.row.strip()] = one
    return found


def of_row(text: str) -> "Block | None":
    return blocks().get(text.strip())


def filled(row: str, whole: str) -> "list[Fit]":
    """Expands a row into texts without alternatives. Returns how each text stands in the format
    WHOLE. Leaves out texts that do not stand in the format."""
    found = [fit(text, whole) for text in texts.expanded(row)]
    return [each for each in found if each]


def rows() -> "list[tuple[str, str]]":
    """Returns the text and the source of each row of the table."""
    return [(one.text, one.source) for section in SECTIONS for one in section.messages]
