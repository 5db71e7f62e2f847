# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Inputs that other users or other machines have made cost nvpm little time and memory, end no
command with an exception, and hide no other input. Each command runs in a process that the kernel
ends if it takes more than SECONDS of processor time, or more than MEMORY bytes."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from installed import SERVICE
from machine import Machine

SECONDS, MEMORY = 20, 150 << 20
SEED = int(os.environ.get("SEED", "1"))


class Ended(NamedTuple):
    code: int
    out: str
    err: str


# Runs a command within the limits, and prints its memory and its exit code. The memory of a process
# counts from before its exec, so the command must be started by a small process, not by pytest.
STARTER = f"""
import resource, subprocess, sys
def limit():
    resource.setrlimit(resource.RLIMIT_CPU, ({SECONDS}, {SECONDS}))
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
with open(sys.argv[1], "wb") as out, open(sys.argv[2], "wb") as err:
    ended = subprocess.run(sys.argv[3:], stdout=out, stderr=err, preexec_fn=limit)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10, ended.returncode)
"""


def limited(
    tmp_path: Path,
    *words: str,
    most: int = MEMORY,
    **environment: str,
) -> Ended:
    """Runs nvpm within the limits. It may take MOST bytes of memory."""
    out, err = tmp_path / "out", tmp_path / "err"
    nvpm = [sys.executable, "-B", str(SERVICE / "nvpm"), *words]
    said = subprocess.run(
        [sys.executable, "-c", STARTER, str(out), str(err), *nvpm],
        stdout=subprocess.PIPE,
        check=True,
        env={"PATH": os.environ["PATH"], "HOME": "/", **environment},
    )
    memory, code = map(int, said.stdout.split())
    texts = [file.read_text(errors="surrogateescape") for file in (out, err)]
    assert "Traceback" not in texts[1] and code >= 0, (code, texts[1][-2000:])
    assert memory <= most, f"{memory >> 20} MiB"
    return Ended(code, *texts)


# ---- the list of registrations -------------------------------------------------------------------

MANY = 130_000
LINE = "{} 5 10 0x{:x} 65536 nv_mem mapped 0000:03:00.0 t"
COMMANDS = ("check", "status --all", "status --prometheus", "regions", "regions --json", "holders")


@pytest.mark.parametrize("processes", [1, MANY])
def test_many_registrations(tmp_path: Path, processes: int) -> None:
    """A user has many registrations, in one process or in as many processes."""
    root = tmp_path / "machine"
    machine = Machine(str(root))
    machine.put("/sys/module/nv_peer_mem/statistics/reachable_regions", str(MANY))
    lines = (LINE.format(1 + number % processes, number) for number in range(MANY))
    machine.put("/proc/driver/nv_peer_mem/regions", "\n".join(["# head", *lines]))
    # With one process, only the commands differ that print each registration.
    for command in COMMANDS if processes > 1 else ("check", "regions --json"):
        ended = limited(tmp_path, *command.split(), NVPM_SYSROOT=str(root))
        if command not in ("check", "status --prometheus"):
            assert f" registrations of {MANY} were read" in ended.out, command


def test_nothing_is_left_out_of_a_short_list(tmp_path: Path) -> None:
    """The last line counts, though it has no end, and the counter may be ahead of the list."""
    root = tmp_path / "machine"
    machine = Machine(str(root))
    machine.put("/sys/module/nv_peer_mem/statistics/reachable_regions", "9")
    file = machine.at("/proc/driver/nv_peer_mem/regions")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(LINE.format(7, i) for i in range(8)))
    ended = limited(tmp_path, "regions", NVPM_SYSROOT=str(root))
    assert ended.out.endswith("all: 8 registrations, 512 KiB\n")
