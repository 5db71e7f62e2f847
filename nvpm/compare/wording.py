# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tells differences between nodes from differences between two versions of nvpm. The values of
facts are text for people, and their wording changes from version to version."""

import re
from typing import FrozenSet

from .features import Verdicts
from .groups import MISSING

# The beginnings of features that are data in each version.
DATA = ("kernel", "ways", "program ", "selftest")
# Features that every version prints for each machine that has the part. A machine without such a
# feature has no such part.
ALWAYS = ("driver, nvidia", "GPU, link", "GPU, BAR1", "RDMA device, link", "ways", "module, state")
NUMBER = re.compile(r"[0-9][0-9.]*")
# The number of devices before a value, and the names of the devices behind the value.
COUNTED = re.compile(r"^[0-9]+ x | \([^()]*\)$")


def is_real(name: str, value: str, usual: str, mine: Verdicts, theirs: Verdicts) -> bool:
    """Returns whether a difference between nodes with two versions of nvpm is a difference of the
    nodes themselves. This is so if the verdicts differ, or if the same words have other numbers.
    MINE are the verdicts of the node, and THEIRS those of the other nodes."""
    if verdicts_of(name, mine) != verdicts_of(name, theirs):
        return True
    if MISSING in (value, usual):
        return name in ALWAYS
    return name.startswith(DATA) or words(value) == words(usual)


def verdicts_of(name: str, verdicts: Verdicts) -> FrozenSet[str]:
    return frozenset(verdict for feature, verdict in verdicts if feature == name)


def words(value: str) -> FrozenSet[str]:
    """Returns the words of a value without its numbers."""
    return frozenset(NUMBER.sub("#", COUNTED.sub("", part)) for part in value.split("; "))
