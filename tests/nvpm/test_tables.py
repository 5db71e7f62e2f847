# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What nvpm says of the machines of each table. In selftest's it has doubles of libcuda and libibverbs."""

import pytest
from tables import HERE, Player, machines


def each(table):
    found = list(machines(table))
    return pytest.mark.parametrize("lines", [lines for _, lines in found], ids=[title for title, _ in found])


def played(player, lines, record_property):
    wrong = player.play(lines)
    record_property("looks", player.looks)
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)
    assert player.looks


@each("machines")
def test_status(lines, tmp_path, record_property):
    played(Player(tmp_path), lines, record_property)


@each("commands")
def test_commands(lines, tmp_path, record_property):
    played(Player(tmp_path), lines, record_property)


@each("selftest")
def test_selftest(lines, tmp_path, record_property):
    played(Player(tmp_path, PYTHONPATH=str(HERE / "doubles")), lines, record_property)
