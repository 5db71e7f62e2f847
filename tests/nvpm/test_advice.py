# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each name in braces in the texts of advice.py has a value, and each value is used in a text."""

import string
from collections.abc import Iterator

from nvpm.facts import advice, core


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
    """Returns the names in braces in the texts. The first part of each pair in SAID is left out,
    because it is a pattern."""
    values = [value for name, value in vars(advice).items() if name.isupper() and name != "SAID"]
    filled = [*values, tuple(template for _, template in advice.SAID), core.SET_NEW]
    return {
        name
        for value in filled
        for text in texts(value)
        for _, name, _, _ in string.Formatter().parse(text)
        if name is not None
    }


def test_names_of_templates() -> None:
    known = set(advice.WORDS) | set(advice.BY_INSTALLER)
    assert names() == known
