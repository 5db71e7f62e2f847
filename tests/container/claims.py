#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""claims.py DIRECTORY [COMMIT]: looks the claims "(read)" of docs/kubernetes.md up in clones, and
prints what has changed since they were read. DIRECTORY has a clone OWNER+REPO, or its git
directory below that name. COMMIT is what to compare with, such as HEAD; without it, the commit of
the table."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).resolve().with_name("read.table")
LINE = re.compile(r"  ([\w.-]+/[\w.-]+) ([0-9a-f]{7,40}) (\S+) \| (.+)$")


class Read(NamedTuple):
    """A file in which a claim was read. Without a file, `literal` says why there is none."""

    claim: str
    repository: str
    commit: str
    file: str
    literal: str


def reads() -> Iterator[Read]:
    claim = ""
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line.startswith("  no file: "):
            yield Read(claim, "", "", "", line.removeprefix("  no file: "))
        elif line.startswith(" "):
            found = LINE.match(line)
            assert found, f"read.table: {line}"
            yield Read(claim, *found.groups())
        elif not line.startswith("#"):
            claim = line


def text_of(clone: Path, commit: str, file: str) -> str | None:
    """Returns the text of a file in a clone; None if there is no such file."""
    command = ["git", "-C", str(clone), "show", f"{commit}:{file}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode else done.stdout


def main() -> int:
    directory = Path(sys.argv[1])
    changed = compared = 0
    for read in reads():
        if not read.repository:
            continue
        place = directory / read.repository.replace("/", "+")
        clone = place / "repo" if (place / "repo").exists() else place
        if not clone.exists():
            print(f"not here: {read.repository}")
            continue
        compared += 1
        text = text_of(clone, sys.argv[2] if len(sys.argv) > 2 else read.commit, read.file)
        if text is None or read.literal not in text:
            changed += 1
            what = "is not there" if text is None else f"does not have: {read.literal}"
            print(f"{read.claim}\n  {read.repository}: {read.file} {what}")
    print(f"{compared} places were compared, {changed} have changed")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
