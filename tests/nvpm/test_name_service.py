# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Each command ends, although the name service does not answer. Monitoring does not ask it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import library
from installed import SERVICE
from machine import Machine
from tables import HERE, Player

# Two users, of whom only the first is asked for.
LIST = """\
42 1234 5 0x7f0000000000 65536 nv_mem pinned - train
43 1234 5 0x7f0000000000 65536 nv_mem pinned - other"""
# A command that does not end is killed after this number of seconds. No command takes as long.
LONGEST = 120


@pytest.fixture(scope="session")
def silent_names(tmp_path_factory: pytest.TempPathFactory) -> str:
    return library(tmp_path_factory.mktemp("names") / "silent.so", HERE / "doubles/silent_names.c")


class Outage:
    """A machine with two registrations, whose name service does not answer."""

    def __init__(self, scratch: Path, silent_names: str) -> None:
        player = Player(scratch)
        machine = Machine(player.environment["NVPM_SYSROOT"])
        machine.put("/proc/driver/nv_peer_mem/regions", LIST)
        machine.put("/sys/module/nv_peer_mem/statistics/reachable_regions", "2")
        for number in 42, 43:
            machine.put(f"/proc/{number}/stat", f"{number} (a) S " + "0 " * 18 + "1234 0 0")
            machine.put(f"/proc/{number}/status", "Uid:" + f"\t{1000 + number}" * 4)
        machine.put("/etc/passwd", "root:x:0:0:::\nbobsleigh:x:1042:1042:::")
        machine.put("/bin/x", "")
        for name, text in {
            "dmesg": "nvidia: bobsleigh has started a program",
            "journalctl": "",
        }.items():
            program = scratch / "bin" / name
            program.write_text(f"#!/bin/sh\necho '{text}'\n")
            program.chmod(0o755)
        self.asked = scratch / "asked"
        self.environment = {
            **player.environment,
            "HOME": str(scratch),
            "ASKED": str(self.asked),
            "LD_PRELOAD": silent_names,
        }

    def nvpm(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-B", str(SERVICE / "nvpm"), *words]
        return subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            check=False,
            text=True,
            timeout=LONGEST,
        )

    def questions(self) -> list[str]:
        return self.asked.read_text().split() if self.asked.exists() else []


@pytest.fixture
def outage(tmp_path: Path, silent_names: str) -> Outage:
    return Outage(tmp_path, silent_names)


def test_the_double(outage: Outage) -> None:
    """The double takes the place of the C library's functions: a program that asks never ends."""
    command = [sys.executable, "-c", "import pwd; pwd.getpwuid(1)"]
    with pytest.raises(subprocess.TimeoutExpired):
        subprocess.run(command, env=outage.environment, check=False, timeout=1)
    assert outage.questions() in ([], ["getpwuid_r"])


@pytest.mark.parametrize(
    "words",
    [
        "check",
        "status",
        "status --all",
        "status --json",
        "status --prometheus",
        "regions --json",
        "explain --here -",
        "compare -",
        "help",
    ],
)
def test_monitoring_does_not_ask(outage: Outage, words: str) -> None:
    outage.nvpm(*words.split())
    assert outage.questions() == []


@pytest.mark.parametrize("words", ["regions", "regions --summary", "holders"])
def test_users_are_shown_by_number(outage: Outage, words: str) -> None:
    """The service is asked once, and not for each user."""
    ended = outage.nvpm(*words.split())
    assert outage.questions() == ["getpwuid_r"]
    for process in "process 42 (train, user 1042)", "process 43 (other, user 1043)":
        assert process in ended.stdout
    assert ended.stderr == (
        "nvpm: the name service, which knows the names of users, does not answer: users are shown "
        "by their numbers.\n"
    )


def test_report(outage: Outage, tmp_path: Path) -> None:
    """The report says that names may be left, and takes out those that are in files."""
    ended = outage.nvpm("report", "--no-selftest")
    assert outage.questions() == ["getpwent"]
    assert ended.returncode == 0, ended.stderr
    assert "nvidia: user-1 has started a program" in ended.stdout
    assert "Perhaps not taken out: names of users, because the name service" in ended.stdout


def test_distrusted_file(outage: Outage, tmp_path: Path) -> None:
    """The owner of a file that nvpm does not load is shown by number."""
    code = f"import sys; sys.path.insert(0, {str(SERVICE)!r}); from nvpm import trust; "
    file = tmp_path / "library.so"
    file.write_text("")
    os.chown(file, 4711, 4711)
    command = [sys.executable, "-B", "-c", f"{code}print(trust.distrusted({str(file)!r}))"]
    ended = subprocess.run(
        command,
        env=outage.environment,
        capture_output=True,
        check=False,
        text=True,
        timeout=LONGEST,
    )
    assert ended.stdout == f"{file} belongs to user 4711\n", ended.stderr
    assert outage.questions() == []
