#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""dead_paths.py [DIRECTORY]: checks that each file of the checkout exists that a program of the
lab, of a guest or of a test of packages names.

Most of these programs run for minutes in guests, and no person runs all of them after a file was
moved. So a program that still names the old place would fail weeks later."""

import fnmatch
import re
import sys
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[3]
READ = ("tests/guest", "tests/packages", "tests/lab", "tests/doubles/operators", ".githooks", ".ci")
MADE = "cp|mkdir|mv|ln|tar|git|rsync|install|cd|_topdir"
PARTS = "build|container|debian|docs|examples|init.d|nvpm|preload|rpm|src|tests"
# A guest sees tests/guest as /lab, and a layer sees the checkout as /checkout.
PLACES = {"/checkout/": "", "/lab/": "tests/guest/", "": ""}
NAMED = re.compile(rf"(?<![\w./$}}\]-])(/checkout/|/lab/|(?=(?:{PARTS})/))([\w./-]*\w)")
# Copies in /tmp. The program that uses such a directory must have made it.
COPY = re.compile(rf"/tmp/({PARTS})(?=/)")

# Names that are no files of this checkout, by the file that has them.
OTHERS: dict[str, tuple[str, ...]] = {
    "tests/guest/systems/detection.sh": ("src/",),  # sources of other projects
    "tests/guest/scenarios/layouts.sh": ("tests/guest/enable",),  # a file in debugfs
    "tests/lab/layers/build/imagebuilt.sh": ("src/linux", "tests/guest/neighbours"),  # in the image
    "tests/lab/layers/build/nvpmcompiled.sh": ("",),  # an empty project for the crates alone
    "tests/lab/layers/build/debug.sh": ("build/",),  # the scripts beside it
    "tests/guest/dmabuf.sh": ("tests/guest/symbolic",),  # a directory of a layer
    "tests/lab/layers/build/symbolic.sh": ("tests/guest/symbolic",),
    "tests/lab/checks/dead_paths.py": ("src/", "tests/guest/"),  # the names above
}


def ignored(top: Path) -> list[str]:
    """Returns the patterns of files that builds make."""
    lines = (top / ".gitignore").read_text(encoding="utf-8").splitlines()
    return [line.strip("/") for line in lines if line and not line.startswith("#")]


def is_made(name: str, patterns: list[str]) -> bool:
    """Tells whether a build makes the file, or a directory above it."""
    above = [name, *(str(one) for one in Path(name).parents)]
    return any(
        fnmatch.fnmatch(one, pattern) or fnmatch.fnmatch(Path(one).name, pattern)
        for one in above
        for pattern in patterns
    )


def dead(top: Path, file: Path, patterns: list[str]) -> Iterator[str]:
    """Yields a line for each name in a file that no file has."""
    text = file.read_text(encoding="utf-8")
    here = str(file.relative_to(top))
    for number, line in enumerate(text.splitlines(), 1):
        for place, rest in NAMED.findall(line):
            name = PLACES[place] + rest
            # A word in capitals stands for any name.
            if re.search("[A-Z]{3}", name) or name.startswith(OTHERS.get(here, ())):
                continue
            begins = list((top / name).parent.glob(f"{Path(name).name}*"))
            if not begins and not is_made(name, patterns):
                yield f"{here}:{number}: there is no {name}"
    for copy in sorted(set(COPY.findall(text))):
        made = rf"({MADE}) [^\n]*/tmp/{copy}\b"
        if not re.search(made, text):
            yield f"{here}: uses /tmp/{copy}, and does not make it"


def main() -> str | None:
    top = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else TOP
    patterns = ignored(top)
    files = [file for place in READ for file in sorted((top / place).rglob("*"))]
    texts = [file for file in files if file.is_file() and file.suffix not in (".gz", ".md", ".rs")]
    # Tests of the lab's own programs run in each `test`, and make files of any name.
    texts = [file for file in texts if not file.name.startswith("test_")]
    texts = [file for file in texts if not is_made(str(file.relative_to(top)), patterns)]
    found = [line for file in texts for line in dead(top, file, patterns)]
    print(f"{len(texts)} files were read")
    return "\n".join(found) or None


if __name__ == "__main__":
    sys.exit(main())
