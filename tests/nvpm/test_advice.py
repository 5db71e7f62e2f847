# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each name in braces in the texts of advice.py, and in the advice of `nvpm explain` for this
machine, has a value, and each value is used in a text."""

import string
from collections.abc import Iterator

from nvpm.explain.table import CAUSES, ENTRIES
from nvpm.facts import advice, core
from nvpm.own.table import MESSAGES


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from texts(inner)
    elif isinstance(value, tuple):
        for inner in value:
            yield from texts(inner)


def names() -> set[str]:
    """Returns the names in braces in the texts."""
    values = [value for name, value in vars(advice).items() if name.isupper()]
    own = [message.here for message in MESSAGES]
    cases = [case.here for entry in ENTRIES for case in entry.message.cases]
    causes = [cause.here for cause in CAUSES]
    return {
        name
        for value in (*values, core.SET_NEW, *own, *cases, *causes)
        for text in texts(value)
        for _, name, _, _ in string.Formatter().parse(text)
        if name is not None
    }


def test_names_of_templates() -> None:
    known = set(advice.WORDS) | set(advice.BY_INSTALLER)
    assert names() == known
