# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm looks twice at registrations whose memory is being freed, because a revocation that works
takes milliseconds."""

from pathlib import Path

import pytest
from machine import Machine
from tables import Player, called

from nvpm.read import machine as subject

STATISTICS = "/sys/module/nv_peer_mem/statistics"
LIST = "/proc/driver/nv_peer_mem/regions"
LINE = "42 1234 {} {} 65536 nv_mem_revocable revoking 0000:99:00.0 a\n"


def warnings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str, second: str) -> int:
    """Returns the number of warnings if the list is FIRST and then SECOND."""
    player = Player(tmp_path)
    machine = Machine(player.environment["NVPM_SYSROOT"])
    machine.put(f"{STATISTICS}/reachable_regions", "2")
    machine.put(LIST, first)
    monkeypatch.setattr("nvpm.facts.use.sleep", lambda _: machine.put(LIST, second))
    read = subject.Machine(player.environment["NVPM_SYSROOT"])
    output = called(read, player.environment, "status", "--json")[0]
    return output.count("does not end its use of 64 KiB")


def test_revocation_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ends, stays = LINE.format(5, "0x7f0000000000"), LINE.format(5, "0x7f0000010000")
    assert warnings(tmp_path, monkeypatch, ends + stays, stays) == 1


def test_memory_that_is_registered_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier, later = LINE.format(5, "0x7f0000000000"), LINE.format(0, "0x7f0000000000")
    assert warnings(tmp_path, monkeypatch, earlier, later) == 0
