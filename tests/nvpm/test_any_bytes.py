# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm handles any contents of a machine's files. The exit code is one of the codes in the manual
page, and the JSON and the metrics can be parsed. nvpm also reads each list of registrations that
the module can write. Hypothesis makes up the contents, which are the same in each run."""

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from machine import Machine
from tables import SAMPLE, TOOLS, Player, called

from nvpm.read import machine as subject
from nvpm.read.regions import LIST, Region

# Commands, each with the exit codes that nvpm(8) lists.
CODES = {
    "": {0},
    "status": {0, 3, 4},
    "status --all": {0, 3, 4},
    "status --json": {0, 3, 4},
    "status --prometheus": {0},
    "check": {0, 1, 2, 3},
    "regions": {0, 1, 3},
    "regions --summary": {0, 1, 3},
    "regions --json": {0, 1, 3},
}
OF_THE_LIST = [command for command in CODES if command.startswith("regions")]

PROCESS = "4242"
STAT = f"{PROCESS} (a b) S " + " ".join(["1"] * 18) + " 77 0"
A_LINE = f"{PROCESS} 77 5 0x7f0000000000 65536 nv_mem mapped 0000:04:00.0 python3"
MORE = {
    LIST: f"# process started age address length client state device name\n{A_LINE}",
    f"/proc/{PROCESS}/stat": STAT,
    f"/proc/{PROCESS}/status": "Uid:\t0\t0\t0\t0",
    f"/proc/{PROCESS}/comm": "a b",
    "/proc/cpuinfo": "flags\t\t: fpu hypervisor",
    "/proc/cmdline": "iommu=pt",
    "/sys/class/dmi/id/product_name": "Server",
    "/sys/devices/system/node/online": "0-1",
}


def made() -> tuple[Player, Path]:
    """Makes a good machine with a registration, which exists until the tests end."""
    directory = tempfile.TemporaryDirectory(prefix="nvpm-bytes.")
    DIRECTORIES.append(directory)
    player = Player(Path(directory.name))
    root = Path(player.environment["NVPM_SYSROOT"])
    machine = Machine(str(root))
    for path, text in MORE.items():
        machine.put(path, text)
    return player, root


DIRECTORIES: list[tempfile.TemporaryDirectory[str]] = []
PLAYER, ROOT = made()
FILES = sorted(
    str(path.relative_to(ROOT))
    for path in ROOT.rglob("*")
    if path.is_file() and not path.is_symlink()
)

# Words of the kind that the files contain, and words that they do not contain.
WORDS = st.sampled_from(
    [
        *("0", "1", "-1", "00", "4242", "18446744073709551616", "1e9", "0x", "nan", "٣", "²"),
        *("0xffffffffffffffff", "yes", "mapped", "orphaned", "nv_mem", "0000:04:00.0", "[none]"),
        *("N/A", "(x)", ")", "\\040", "\\", "%", "{", '"', "'", "#", "-", ":", "=", ",", ".."),
    ]
)
TEXTS = st.lists(
    st.tuples(WORDS, st.sampled_from([" ", "\n", "\t", "\r\n", "\0", ",", "", "  "])), max_size=12
).map(lambda pairs: "".join(map("".join, pairs)).encode())
CONTENTS = st.one_of(st.binary(max_size=300), TEXTS)


def mixed(before: bytes, data: bytes, at: int) -> bytes:
    """Returns the old contents with DATA inserted at AT. DATA replaces up to two bytes."""
    at %= len(before) + 1
    return before[:at] + data + before[at + len(data) % 3 :]


def look(command: str) -> None:
    """Runs nvpm. Fails if there is an exception or a wrong exit code, or if the JSON or the metrics
    cannot be parsed."""
    machine = subject.Machine(str(ROOT))
    said, code = called(machine, PLAYER.environment, *command.split())
    assert code in CODES[command], (command, code, said)
    if command.endswith("--json") and code != 1 and not said.startswith("nv_peer_mem"):
        json.loads(said)
    if command.endswith("--prometheus"):
        for line in said[:-1].split("\n"):
            assert line.startswith("# ") or SAMPLE.fullmatch(line), line


# The files with the answers of programs, which the double `tool` prints.
ANSWERS = re.compile("modinfo/|rpm/|(mokutil|ofed_info|unit|starting|enabled)$")
# The kept answers of programs, by command. They are used while no file with answers is changed.
KEPT: dict[tuple[str, ...], Any] = {}


@contextlib.contextmanager
def each_double_once(kept: dict[tuple[str, ...], Any]) -> Iterator[None]:
    """Lets nvpm run each double once, and later gives nvpm the kept answer. Starting programs would
    take most of the time. Other programs may read the changed file, and always run."""
    run = subject.Machine.ended

    def ended(machine: Any, *command: str) -> Any:
        if os.path.basename(command[0]) not in TOOLS:
            return run(machine, *command)
        if command not in kept:
            kept[command] = run(machine, *command)
        return kept[command]

    with mock.patch.object(subject.Machine, "ended", ended):
        yield


def with_file(file: str, data: bytes, commands: list[str]) -> None:
    path = ROOT / file
    before, mode = path.read_bytes(), path.stat().st_mode
    path.chmod(0o644)
    try:
        path.write_bytes(data)
        with each_double_once({} if ANSWERS.match(file) else KEPT):
            for command in commands:
                look(command)
    finally:
        path.write_bytes(before)
        path.chmod(mode)


ALWAYS_THE_SAME = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@settings(ALWAYS_THE_SAME, max_examples=int(os.environ.get("NVPM_EXAMPLES", "150")))
@given(st.sampled_from(FILES), CONTENTS, st.none() | st.integers(0, 400))
def test_any_file(file: str, data: bytes, at: int | None) -> None:
    contents = data if at is None else mixed((ROOT / file).read_bytes(), data, at)
    with_file(file, contents, list(CODES))


def test_each_file() -> None:
    """Tries each file empty, and with bytes that are not text."""
    for file in FILES:
        for data in (b"", b"\xff\xfe\0\x80 \n" * 3):
            with_file(file, data, list(CODES))


@settings(ALWAYS_THE_SAME, max_examples=10 * int(os.environ.get("NVPM_EXAMPLES", "150")))
@given(CONTENTS, st.none() | st.integers(0, 400))
@example(A_LINE.replace("65536", "x").encode(), None)
def test_any_list(data: bytes, at: int | None) -> None:
    contents = data if at is None else mixed(MORE[LIST].encode(), data, at)
    with_file(LIST.lstrip("/"), contents, OF_THE_LIST)


# ---- as the module writes the list (src/c/proc.c) ----------------------------------------


def name_of(comm: bytes) -> str:
    return "".join(
        chr(byte) if 0x20 < byte < 0x7F and byte != ord("\\") else f"\\{byte:03o}" for byte in comm
    )


def written(one: Region) -> str:
    return (
        f"{one.process} {one.started} {one.age} {one.address} {one.length} {one.client} "
        f"{one.state} {one.pci} {one.command}\n"
    )


U64 = st.integers(0, 2**64 - 1)
# A name ends before its first zero byte, as in the kernel.
COMMS = st.binary(max_size=15).map(lambda comm: name_of(comm.split(b"\0")[0]))
REGIONS = st.builds(
    Region,
    process=st.integers(1, 2**31 - 1),
    started=U64,
    age=st.integers(0, 2**32 - 1),
    address=U64.map(hex),
    length=st.integers(1, 2**64 - 1),
    client=st.sampled_from(["nv_mem", "nv_mem_revocable", "nv_mem_fixed", "nv_mem_nc"]),
    state=st.sampled_from(
        ["pinning", "pinned", "mapped", "unmapped", "revoking", "revoked", "orphaned"]
    ),
    pci=st.sampled_from(["-", "0000:04:00.0", "10000:ff:1f.7"]),
    command=COMMS,
)


@settings(ALWAYS_THE_SAME, max_examples=400)
@given(st.lists(REGIONS, max_size=6))
def test_list_as_it_is_written(found: list[Region]) -> None:
    text = "# process started age address length client state device name\n"
    path = ROOT / LIST.lstrip("/")
    path.write_text(text + "".join(map(written, found)))
    try:
        machine = subject.Machine(str(ROOT))
        said, code = called(machine, PLAYER.environment, "regions", "--json")
        summary, _ = called(machine, PLAYER.environment, "regions", "--summary")
    finally:
        path.write_text(MORE[LIST] + "\n")
    assert code == 0
    told = json.loads(said)
    assert told["bytes"] == sum(one.length for one in found)
    listed = [
        (one["process"], one["age"], one["address"], one["length"], one["client"], one["state"])
        for one in told["registrations"]
    ]
    assert sorted(listed) == sorted(
        (one.process, one.age, one.address, one.length, one.client, one.state) for one in found
    )
    names = [one["command"] for one in told["registrations"]]
    assert sorted(names) == sorted(one.command.replace("\\040", " ") or "?" for one in found)
    devices = [one["pci"] or "-" for one in told["registrations"]]
    assert sorted(devices) == sorted(one.pci for one in found)
    processes = {(one.process, one.started) for one in found}
    assert len(summary.splitlines()) == len(processes) + 1
