# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests which names of files are dead, with the lines that jobs had when they failed."""

from pathlib import Path

import pytest

from checks.dead_paths import dead, ignored

CONFIGURE = "cp -a /checkout/src /tmp/src\nlocated() { sh /tmp/build/configure; }\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Returns a checkout with a few files."""
    for name in ("src/main.rs", "build/configure", "tests/guest/cuda.sh", "tests/packages/lib.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".gitignore").write_text("# made\n*.o\n/build/prebuilt/\n")
    return tmp_path


def found(tree: Path, text: str) -> list[str]:
    file = tree / "tests/packages/drivers.sh"
    file.write_text(text)
    return list(dead(tree, file, ignored(tree)))


def test_a_copy_that_nobody_makes(tree: Path) -> None:
    assert found(tree, CONFIGURE) == [
        "tests/packages/drivers.sh: uses /tmp/build, and does not make it"
    ]
    assert found(tree, f"cp -a /checkout/build /tmp/build\n{CONFIGURE}") == []


@pytest.mark.parametrize(
    "name", ["tests/lab/nvidia/header", "/checkout/src/configure", "/lab/cuda/gone.py"]
)
def test_a_file_that_has_moved(tree: Path, name: str) -> None:
    (line,) = found(tree, f"sh {name} 590\n")
    assert line.startswith("tests/packages/drivers.sh:1: there is no ")


@pytest.mark.parametrize(
    "name",
    [
        "/checkout/src",
        "/lab/cuda.sh",
        "build/prebuilt/x86_64.S",
        "src/main.o",
        "tests/guest/scenarios/NAME.sh",
        "/usr/src/linux",
        "/opt/nvpm/tests",
    ],
)
def test_a_file_that_is_there_or_made_or_elsewhere(tree: Path, name: str) -> None:
    assert found(tree, f"sh {name} 590\n") == []
