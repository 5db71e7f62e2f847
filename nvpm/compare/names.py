# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Folds and unfolds names of nodes. The folded form is the one that tools for clusters use, such as
node[1-3,7]."""

import re
from itertools import product
from typing import Dict, List, Tuple

# No fleet has more nodes. A hostile node may print a heading such as n[0-999999999].
MOST = 100000

# Commas within such brackets do not end a name.
BRACKETS = re.compile(r"(\[[^\[\]]*\])")
RANGES = re.compile(r"\[([0-9,-]+)\]")
# The first and the last number of a range, with at most 18 digits.
RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?$")


class NotNames(ValueError):
    """A text is no list of names. The message says why."""


def unfolded(text: str) -> List[str]:
    """Returns the names in a text such as node[1-3,7],gpu4. Raises NotNames for a text with other
    brackets, and for more than MOST names."""
    names: List[str] = []
    # The parts with an odd place are the brackets.
    parts = [
        part if at % 2 else part.replace(",", "\n") for at, part in enumerate(BRACKETS.split(text))
    ]
    for word in filter(None, (word.strip() for word in "".join(parts).split("\n"))):
        # The parts with an odd place are the texts between brackets.
        parts = RANGES.split(word)
        if any(sign in part for part in parts[::2] for sign in "[]"):
            raise NotNames(f"{word} is not a list of nodes such as node[1-5,7]")
        choices: List[List[str]] = []
        count = 1
        # No further numbers are made after too many, because a word may have many brackets.
        for at, part in enumerate(parts):
            choices.append(numbers(part) if at % 2 else [part])
            count *= len(choices[-1])
            if len(names) + count > MOST:
                raise NotNames(f"{word} has more than {MOST} nodes")
        names += map("".join, product(*choices))
    return names


def numbers(text: str) -> List[str]:
    """Returns the numbers in a text such as 1-3,7. They keep the width of the first number of their
    range, as in 08-10."""
    found: List[str] = []
    for part in text.split(","):
        matched = RANGE.match(part)
        first, last = (matched[1], matched[2] or matched[1]) if matched else ("1", "0")
        if int(last) < int(first):
            raise NotNames(f"[{text}] is not a list of numbers such as [1-5,7]")
        if int(last) - int(first) + len(found) >= MOST:
            raise NotNames(f"[{text}] has more than {MOST} numbers")
        found += [f"{at:0{len(first)}}" for at in range(int(first), int(last) + 1)]
    return found


def folded(names: List[str]) -> str:
    """Returns the names in the short form that tools for clusters use, such as node[1-3,7]."""
    by_stem: Dict[Tuple[str, str], List[str]] = {}
    for name in names:
        # The name is read from its end, because a pattern for all of it takes long for some names.
        found = re.match(r"(\D*)([0-9]{1,18})", name[::-1])
        if found:
            end, digits = found[1][::-1], found[2][::-1]
            stem = name[: len(name) - len(end) - len(digits)]
            by_stem.setdefault((stem, end), []).append(digits)
        else:
            by_stem.setdefault((name, ""), [])
    texts = []
    for (stem, end), digits in by_stem.items():
        if not digits:
            texts.append(stem)
        elif len(digits) == 1:
            texts.append(f"{stem}{digits[0]}{end}")
        else:
            texts.append(f"{stem}[{','.join(runs(digits))}]{end}")
    return ",".join(texts)


def runs(digits: List[str]) -> List[str]:
    """Returns the ranges of consecutive numbers of the same width."""
    found: List[List[str]] = []
    for text in sorted(digits, key=lambda text: (len(text), int(text))):
        if found and int(found[-1][-1]) + 1 == int(text) and len(found[-1][-1]) == len(text):
            found[-1].append(text)
        else:
            found.append([text])
    return [run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found]


def without_domain(name: str) -> str:
    """Returns the first part of the name of a host. An address stays as it is."""
    return name.split(".")[0] if name[:1].isalpha() else name
