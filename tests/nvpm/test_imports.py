# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The files of nvpm import each other in one direction only, so that each file can be read after
the files that it imports. The folders also have an order: read, facts, show, and then the other
files. Imports inside functions count, too."""

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

from installed import TOP

PACKAGE = TOP / "nvpm"


def name_of(file: Path) -> str:
    return ".".join(file.relative_to(TOP).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(file): file for file in PACKAGE.rglob("*.py") if file.name != "__main__.py"}


def imported(name: str, file: Path) -> Iterator[str]:
    """Yields the files of nvpm that FILE imports. If a package has no file with the imported name,
    FILE imports the package's __init__.py."""
    here = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level + 1] + (node.module or "").split(".")
            package = ".".join(filter(None, base))
            for alias in node.names:
                inner = f"{package}.{alias.name}"
                yield inner if inner in FILES else package


GRAPH = {name: set(imported(name, file)) - {name} for name, file in FILES.items()}
# The folders from the lowest to the highest. All other files are above them.
FOLDERS = ["nvpm.read", "nvpm.facts", "nvpm.show"]
# read/ask.py may import the selftest's verbs, which it runs in a child process.
EXCEPTIONS = {("nvpm.read.ask", "nvpm.selftest"), ("nvpm.read.ask", "nvpm.selftest.verbs")}


def floor(name: str) -> int:
    """Returns the height of a file's folder. The __init__.py of nvpm is below all folders. Files
    that are in no folder of FOLDERS are above all folders."""
    folder = ".".join(name.split(".")[:2])
    if name == "nvpm":
        return -1
    return FOLDERS.index(folder) if folder in FOLDERS else len(FOLDERS)


def test_folders() -> None:
    assert len({floor(name) for name in GRAPH}) == len(FOLDERS) + 2
    climbs = {(a, b) for a, below in GRAPH.items() for b in below if floor(b) > floor(a)}
    assert climbs == EXCEPTIONS


def test_no_circle() -> None:
    assert sum(map(len, GRAPH.values())) > 100
    # Each file imports the __init__.py of its package. This __init__.py must therefore import
    # nothing.
    assert len(list(graphlib.TopologicalSorter(GRAPH).static_order())) == len(FILES)
