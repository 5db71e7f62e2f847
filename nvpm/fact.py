# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A fact: one thing that decides about GPUDirect RDMA on this machine, with a verdict."""

import re
from functools import partial
from typing import Iterable, Iterator, List, NamedTuple

from .machine import clean

# WARN: it works, but could do better. NONE: there is nothing to judge. UNREAD: the user has no right to read what the value names.
GOOD, WARN, BAD, NONE, UNREAD = VERDICTS = "good", "warn", "bad", "none", "unread"


class Fact(NamedTuple):
    section: str
    name: str
    verdict: str
    value: str
    advice: str = ""
    id: str = ""


def judged(verdict: str, section: str, name: str, value: object, advice: str = "") -> Fact:
    return Fact(section, name, verdict, str(value), advice)


good, warn, bad, none, unread = (partial(judged, verdict) for verdict in VERDICTS)


def first(section: str, name: str, cases: List[tuple]) -> Iterator[Fact]:
    """The fact of the first case that holds, if one does. A case is a condition, one of the functions above, a value, and advice where
    there is some; advice that takes time is a function."""
    for condition, kind, value, *advice in cases:
        if condition:
            yield kind(
                section, name, value, *(text() if callable(text) else text for text in advice)
            )
            break


def identified(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Makes facts safe to print and gives them identifiers. What the user may not read becomes one fact at the end: it is no defect."""
    facts = [Fact(*map(clean, fact)) for fact in facts]
    hidden = [fact.value for fact in facts if fact.verdict == UNREAD]
    if hidden:
        values = ", ".join(sorted(set(hidden), key=hidden.index))
        facts.append(
            none("report", "not read", values, "Only root can read that: run it as root to see it.")
        )
    used = {}
    for fact in facts:
        if fact.verdict != UNREAD:
            # A monitor would take two facts of one name for one: the second becomes NAME_2.
            name = slug(fact.section) + "/" + slug(fact.name)
            used[name] = used.get(name, 0) + 1
            yield fact._replace(id=name if used[name] == 1 else "%s_%d" % (name, used[name]))


def slug(text: str) -> str:
    return re.sub("^_|_$", "", re.sub("[^A-Za-z0-9.:_-]+", "_", text).lower())
