#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""proofs.py: writes nvpm/explain/proven.py, which lists the cases of the table of `nvpm explain`
that a log in tests/nvpm/logs proves. An answer by another case is possible at most."""

import json
import runpy
import subprocess
import sys
import types
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
FILE = TOP / "nvpm/explain/proven.py"
HEAD = '''# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The cases that a log in tests/nvpm/logs proves, by their places among the cases of their message.
Only an answer by such a case may be certain or probable. tests/nvpm/proofs.py writes this file."""

from typing import Dict, Tuple

PROVEN: Dict[str, Tuple[int, ...]] = {
'''
# A string of this length fits into a line.
LONGEST = 88


def literal(text: str) -> str:
    """Returns a text as one or more literals."""
    parts, rest = [], text
    while len(repr(rest)) > LONGEST:
        cut = rest.rfind(" ", 0, LONGEST - 8) + 1 or LONGEST - 8
        parts.append(rest[:cut])
        rest = rest[cut:]
    return "\n    ".join(map(repr, [*parts, rest]))


def claims() -> dict[str, tuple[list[int], list[int]]]:
    """Returns the places of the cases of each message that its row claims to be sure, and of those
    that a log proves. In this process the table is as its rows claim it."""
    claimed = types.ModuleType("nvpm.explain.proven")
    claimed.PROVEN = None  # type: ignore[attr-defined]
    sys.modules[claimed.__name__] = claimed
    from logged import answered, contradicted_by, logs, may_be_sure, proven_by

    from nvpm.explain.messages import ours
    from nvpm.explain.table import ENTRIES

    found, contradicted = set(), set()
    for log in logs():
        answer = answered(log.text())
        found.update(proven_by(log, answer))
        contradicted.update(contradicted_by(log, answer))
    made = {}
    for entry in ENTRIES:
        if entry.message in ours.SECTION.messages:
            continue
        sure = [n for n, case in enumerate(entry.message.cases) if may_be_sure(entry, case)]
        good = [n for n in sure if (entry, n) in found - contradicted]
        made[entry.message.text] = (sure, good)
    return made


def proven() -> dict[str, tuple[int, ...]]:
    """Returns what the file has to contain. Another process finds it, because the table of this
    process may be loaded already."""
    command = [sys.executable, "-B", __file__, "--print"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {text: tuple(good) for text, (_, good) in json.loads(said).items() if good}


def main() -> None:
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(TOP))
    made = claims()
    if "--print" in sys.argv:
        print(json.dumps(made))
        return
    before = runpy.run_path(str(FILE))["PROVEN"] if FILE.exists() else {}
    after = {text: tuple(good) for text, (_, good) in made.items() if good}
    for text in before.keys() | after.keys():
        if before.get(text) != after.get(text):
            print(f"{text}: cases {before.get(text, ())} are now {after.get(text, ())}")
    lines = [f"    {literal(text)}: {tuple(good)}," for text, (_, good) in made.items() if good]
    FILE.write_text(HEAD + "\n".join(lines) + "\n}\n", encoding="utf-8")
    subprocess.run(["ruff", "format", "-q", str(FILE)], check=True)
    all_sure, all_good = (sum(len(one[n]) for one in made.values()) for n in (0, 1))
    print(f"{FILE.name}: {len(lines)} messages, {all_good} of {all_sure} cases proven")


if __name__ == "__main__":
    main()
