#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""sources.py DIRECTORY [OWNER/REPO...]: looks the formats of the messages in nvpm/data up in
clones, and prints the formats that are not found. DIRECTORY has a clone OWNER+REPO, or its git
directory below that name. A format counts as found if its file has the literal, or another file of
the same tree."""

import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[2]

from literals import literals  # noqa: E402

FROM = re.compile(r"^  from ([\w.-]+/[\w.-]+): ([^,|]+)(?:, ([^|]+?))? \| (.*)$")
CONVERSION = re.compile(
    r"%[-+ #0]*[\d*]*(?:\.[\d*]*)?(?:hh|h|ll|l|z|t|j|q|L)?[a-zA-Z]|\{[^{}\s]*\}|\$\{[^{}]*\}"
)
# A piece of this length is rare, and is short enough to stand in one of several adjacent literals.
PIECE = 20


class Format(NamedTuple):
    repository: str
    path: str
    versions: list[str]
    text: str
    place: str  # the file of data, and the line


def formats() -> Iterator[Format]:
    for file in sorted(TOP.glob("nvpm/data/**/*.table")):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            if found := FROM.match(line):
                versions = (found[3] or "").removesuffix(" and later").split(" to ")
                place = f"{file.relative_to(TOP)}:{number}"
                yield Format(found[1], found[2], [*filter(None, versions)], found[4], place)


class Clone:
    """The git directory of a repository."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def git(self, *command: str) -> str:
        run = subprocess.run(
            ["git", "--git-dir", str(self.directory), *command], capture_output=True, check=False
        )
        return run.stdout.decode(errors="replace") if run.returncode == 0 else ""

    @functools.cache  # noqa: B019
    def texts(self, tree: str, path: str) -> frozenset[str]:
        """Returns the literals of a file, and their lines."""
        found = set(literals(path, self.git("show", f"{tree}:{path}")))
        return frozenset(found | {line.strip() for one in found for line in one.split("\\n")})

    def has(self, tree: str, one: Format) -> bool:
        return one.text in self.texts(tree, one.path) or self.anywhere(tree, one.text)

    def anywhere(self, tree: str, text: str) -> bool:
        run = max(CONVERSION.split(text), key=len).strip()
        if len(run) < 4:
            return False
        listed = self.git("grep", "-lF", "-e", run[:PIECE], tree).splitlines()
        return any(text in self.texts(tree, path.partition(":")[2]) for path in listed)


def clone_of(directory: Path, repository: str) -> "Clone | None":
    top = directory / repository.replace("/", "+")
    for one in (top / "repo/.git", top / ".git", top / "repo", top):
        if (one / "objects").is_dir():
            return Clone(one)
    return None


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    directory, only = Path(sys.argv[1]), sys.argv[2:]
    counts = dict.fromkeys(("found", "only in the named versions", "not found", "no clone"), 0)
    for one in formats():
        if only and one.repository not in only:
            continue
        clone = clone_of(directory, one.repository)
        if not clone:
            counts["no clone"] += 1
        elif clone.has("HEAD", one):
            counts["found"] += 1
        elif any(clone.has(version, one) for version in one.versions):
            counts["only in the named versions"] += 1
        else:
            counts["not found"] += 1
            print(f"{one.place}: {one.repository}: {one.path}: {one.text}")
    print(", ".join(f"{word} {count}" for word, count in counts.items()))


if __name__ == "__main__":
    main()
