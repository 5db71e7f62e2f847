#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""own_page.py: writes the tables of docs/troubleshooting.md that are made of the table nvpm/own. A
comment before each table names the groups that the table has. All other text of the page stays.
Messages that say that all is well are left out."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
PAGE = TOP / "docs/troubleshooting.md"
if __name__ == "__main__":
    sys.path.insert(0, str(TOP))
    sys.dont_write_bytecode = True

from messages_page import printed, row  # noqa: E402

from nvpm.own.model import FINE  # noqa: E402
from nvpm.own.table import GROUPS  # noqa: E402

TABLE = re.compile(
    r"(<!-- tests/nvpm/own_page\.py writes this table: ([a-z, -]+)\. -->\n).*?(<!-- End\. -->)",
    re.DOTALL,
)
HEAD = "| message | cause | what to do |\n|---|---|---|"
# A link from this page to itself.
ITSELF = "(troubleshooting.md#"


def lines(names: list[str]) -> Iterator[str]:
    """Yields the table of the groups with these names."""
    yield HEAD
    for group in (group for name in names for group in GROUPS if group.name == name):
        for message in group.messages:
            if message.kind != FINE:
                yield row(printed(message.text), message.cause, message.action).replace(
                    ITSELF, "(#"
                )


def page(old: str) -> str:
    """Returns the page with new tables."""
    named = [name for _, names, _ in TABLE.findall(old) for name in names.split(", ")]
    assert sorted(named) == sorted(group.name for group in GROUPS), named
    return TABLE.sub(
        lambda found: found[1] + "\n" + "\n".join(lines(found[2].split(", "))) + "\n\n" + found[3],
        old,
    )


def main() -> None:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    print(PAGE)


if __name__ == "__main__":
    main()
