# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares the causes that a log shows with the facts of this node, if the log is of this node. The
facts confirm a cause or speak against it, and never add a cause."""

import re
from typing import Iterable, List, NamedTuple, Optional, Set, Tuple

from ..facts.fact import BAD, GOOD, WARN, Fact
from .judge import Found, Verdict, ranked
from .model import NAMED

# A fact adds CONFIRMS to the score if it confirms the cause. It adds CONTRADICTS otherwise.
CONFIRMS, CONTRADICTS = 1.0, -1.5
LINE = re.compile(r"([^:;]+): ((?:`[^`]+`(?:, )?)+)")
DEVICES = {"GPUs": "GPU ", "RDMA devices": "RDMA device "}


class Seen(NamedTuple):
    """Lists the facts on this node that confirm a cause, and the facts that contradict it."""

    confirm: List[Fact]
    contradict: List[Fact]


def is_of(fact: Fact, section: str, name: str) -> bool:
    """Returns whether the fact is the line NAME of SECTION, as a cause names them."""
    wanted = DEVICES.get(section)
    same = fact.section.startswith(wanted) if wanted else fact.section == section
    return same and (fact.name == name or fact.name.startswith(name) or fact.name.endswith(name))


def seen(status: str, facts: Iterable[Fact]) -> Seen:
    """Returns the facts of this node at the lines of STATUS, which is the column of a cause."""
    found = Seen([], [])
    for section, names in LINE.findall(status):
        for name in re.findall("`([^`]+)`", names):
            for fact in facts:
                if is_of(fact, section.strip(), name):
                    if fact.verdict in (BAD, WARN):
                        found.confirm.append(fact)
                    elif fact.verdict == GOOD:
                        found.contradict.append(fact)
    return found


def compared(verdict: Verdict, facts: List[Fact]) -> Verdict:
    """Returns the verdict with the causes in the order in which this node confirms them. A cause
    that a message names stays before the others, because the node may have changed since."""
    for one in verdict.causes:
        node = seen(one.cause.status, facts)
        if node.confirm:
            one.of_node = CONFIRMS
        elif node.contradict and one.sure() < NAMED:
            one.of_node = CONTRADICTS
    return verdict._replace(causes=ranked(verdict.causes))


def is_here(hosts: Set[str], host: str) -> bool:
    """Returns whether a log with these hosts is of this host. The domain of this host does not
    count, because the hosts of a log have no domain."""
    return bool(host) and host.partition(".")[0] in hosts


def to_do(found: Found, facts: Optional[List[Fact]]) -> str:
    """Returns the advice. A cause may leave the advice to this node. If the fact that confirms such
    a cause gives advice, the advice of the fact counts, because the fact names only what is
    installed here."""
    if facts is not None and found.cause.of_node:
        for fact in seen(found.cause.status, facts).confirm:
            if fact.advice:
                return fact.advice.rstrip(".")
    return found.best().to_do()


def word(found: Found, facts: List[Fact]) -> Tuple[str, bool]:
    """Returns the line of this node's status that is about a cause, and whether the line confirms
    the cause. If no line judges, the line is empty."""
    node = seen(found.cause.status, facts)
    fact = next(iter(node.confirm or node.contradict), None)
    return (f"{fact.section}, {fact.name}: {fact.value}" if fact else "", bool(node.confirm))
