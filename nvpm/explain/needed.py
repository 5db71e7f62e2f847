# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Finds the texts that a pattern needs: a line that has none of these texts cannot match. A search
for a text is faster than a pattern, and most lines of a log have none of the texts."""

import importlib
import sys
from typing import Any, List, Optional, Pattern, Tuple

# The parser of the module re.
parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
# A shorter text occurs in too many lines.
SHORTEST = 2
Texts = Tuple[str, ...]


def texts(pattern: Pattern[str]) -> Texts:
    """Returns the needed texts of a pattern in small letters, or nothing. A line matches only if it
    contains at least one of these texts."""
    return needed_by(parser.parse(pattern.pattern)) or ()


def worth(found: Texts) -> Tuple[int, int]:
    """Returns how much a choice of texts is worth: long texts are rare."""
    return min(map(len, found)), -len(found)


def needed_by(sequence: Any) -> Optional[Texts]:
    """Returns the needed texts of a sequence of items."""
    choices: List[Texts] = []
    run = ""
    for operator, value in [*sequence, ("END", None)]:
        letter = letter_of(str(operator), value)
        if letter:
            run += letter
            continue
        if len(run) >= SHORTEST:
            choices.append((run,))
        run = ""
        inner = needed_by_item(str(operator), value)
        if inner:
            choices.append(inner)
    return max(choices, key=worth) if choices else None


def letter_of(operator: str, value: Any) -> str:
    """Returns the only character that an item matches, in small letters. Returns an empty text if
    the item also matches other characters."""
    if operator == "LITERAL":
        return chr(value).lower()
    if operator == "IN":
        kinds = {str(kind) for kind, _ in value}
        letters = {chr(one).lower() for kind, one in value if str(kind) == "LITERAL"}
        if kinds == {"LITERAL"} and len(letters) == 1:
            return letters.pop()
    return ""


def needed_by_item(operator: str, value: Any) -> Optional[Texts]:
    """Returns the texts that a group, a choice or a repetition needs."""
    if operator == "SUBPATTERN":
        return needed_by(value[-1])
    if operator in ("MAX_REPEAT", "MIN_REPEAT") and value[0] > 0:
        return needed_by(value[2])
    if operator == "BRANCH":
        found = [needed_by(branch) for branch in value[1]]
        if all(found):
            return tuple(dict.fromkeys(text for one in found for text in one or ()))
    return None
