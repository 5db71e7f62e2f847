# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the machines of each table. For the table selftest, the lab's libcuda and a double replace
libcuda and libibverbs."""

from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import library
from installed import TOP
from machine import ALIASES
from tables import HERE, Lines, Player, machines

# A function that records a property of a test.
Record = Callable[[str, object], None]


def each(table: str) -> pytest.MarkDecorator:
    found = list(machines(table))
    return pytest.mark.parametrize(
        "lines", [lines for _, lines in found], ids=[title for title, _ in found]
    )


def played(player: Player, lines: Lines, record_property: Record) -> None:
    wrong = player.play(lines)
    record_property("looks", player.looks)
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    assert player.looks


@each("machines")
def test_status(lines: Lines, tmp_path: Path, record_property: Record) -> None:
    played(Player(tmp_path), lines, record_property)


@each("varied")
def test_varied(lines: Lines, tmp_path: Path, record_property: Record) -> None:
    played(Player(tmp_path), lines, record_property)


@each("judged")
def test_judged(lines: Lines, tmp_path: Path, record_property: Record) -> None:
    played(Player(tmp_path), lines, record_property)


@each("programs_by_pair")
def test_programs(lines: Lines, tmp_path: Path, record_property: Record) -> None:
    played(Player(tmp_path), lines, record_property)


@each("commands")
def test_commands(lines: Lines, tmp_path: Path, record_property: Record) -> None:
    played(Player(tmp_path), lines, record_property)


@pytest.fixture(scope="session")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Builds the lab's libcuda, which needs no GPU in this form."""
    sources, file = TOP / "tests/lab/cuda", tmp_path_factory.mktemp("cuda") / "libcuda.so.1"
    files = [sources / "cuda.c", sources / "gpu_host.c"]
    return library(file, f"-I{sources}/include", *files)


@each("selftest")
def test_selftest(libcuda: str, lines: Lines, tmp_path: Path, record_property: Record) -> None:
    player = Player(tmp_path, PYTHONPATH=str(HERE / "doubles"), LIBCUDA=libcuda)
    played(player, lines, record_property)


def test_in_the_sources(tmp_path: Path) -> None:
    """nvpm also runs from its sources, where the service's scripts are in another directory."""
    player = Player(tmp_path)
    (tmp_path / "bin/nvpm").unlink()
    (tmp_path / "bin/nvpm").symlink_to(TOP / "nvpm.sh")
    lines = [
        f"{ALIASES['@conf']} = ONBOOT=no",
        "$ nvpm status --all",
        "line on boot no: ONBOOT=no in /etc/infiniband/nv_peer_mem.conf",
    ]
    assert not player.play(list(enumerate(lines, 1)))
