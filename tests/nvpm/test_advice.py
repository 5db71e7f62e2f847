# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each name in braces in the texts of advice.py, and in the advice of `nvpm explain` for this
machine, has a value, and each value is used in a text."""

import re
import string
from collections.abc import Iterator

from installed import TOP

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
    """Returns the names in braces in the texts."""
    values = [value for name, value in vars(advice).items() if name.isupper()]
    tables = [file.read_text(encoding="utf-8") for file in TOP.glob("nvpm-rs/data/**/*.table")]
    here = [text for table in tables for text in re.findall(r"(?m)^ +here (.*)$", table)]
    assert len(here) > 10
    return {
        name
        for value in (*values, core.SET_NEW, *here)
        for text in texts(value)
        for _, name, _, _ in string.Formatter().parse(text)
        if name is not None
    }


def test_names_of_templates() -> None:
    known = set(advice.WORDS) | set(advice.BY_INSTALLER)
    assert names() == known
