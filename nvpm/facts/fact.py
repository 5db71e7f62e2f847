# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A fact is a finding about this machine that matters for GPUDirect RDMA, together with a
verdict."""

import re
from functools import partial
from typing import Dict, Iterable, Iterator, List, NamedTuple, Optional

from ..read.machine import clean

# WARN means that something works, but could do better. NONE means that there is nothing to judge.
# UNREAD means that the user may not read the thing that the value names.
GOOD, WARN, BAD, NONE, UNREAD = VERDICTS = "good", "warn", "bad", "none", "unread"

READ_AS_ROOT = "Only root can read that: run it as root to see it."


class Fact(NamedTuple):
    section: str
    name: str
    verdict: str
    value: str
    advice: str = ""
    id: str = ""


# Each part of the status yields its facts. It may yield None in place of a fact that is not needed.
Facts = Iterator[Optional[Fact]]


def judged(verdict: str, section: str, name: str, value: object, advice: str = "") -> Fact:
    return Fact(section, name, verdict, str(value), advice)


good = partial(judged, GOOD)
warn = partial(judged, WARN)
bad = partial(judged, BAD)
info = partial(judged, NONE)
unread = partial(judged, UNREAD)


def identified(facts: Iterable[Fact]) -> Iterator[Fact]:
    """Makes facts safe to print, and gives them identifiers. All UNREAD facts become one fact at
    the end, which names everything that the user may not read. This fact is no defect."""
    safe = [Fact(*map(clean, fact)) for fact in facts]
    hidden = [fact.value for fact in safe if fact.verdict == UNREAD]
    if hidden:
        values = ", ".join(dict.fromkeys(hidden))
        safe.append(info("status", "not read", values, READ_AS_ROOT))
    used: Dict[str, int] = {}
    for fact in safe:
        if fact.verdict == UNREAD:
            continue
        # A monitor would confuse two facts with the same name, so the second fact gets the
        # identifier NAME_2.
        name = f"{slug(fact.section)}/{slug(fact.name)}"
        used[name] = used.get(name, 0) + 1
        yield fact._replace(id=name if used[name] == 1 else f"{name}_{used[name]}")


def slug(text: str) -> str:
    return re.sub("^_|_$", "", re.sub("[^A-Za-z0-9.:_-]+", "_", text).lower())


def to_do(facts: Iterable[Fact]) -> List[Fact]:
    """Returns the facts that need attention."""
    return [fact for fact in facts if fact.verdict in (WARN, BAD)]
