# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm goes on if a file of the kernel does not answer, and says which. A FIFO that nobody writes
stands for such a file."""

import errno
import json
import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed import SERVICE
from machine import Machine
from tables import Player, called

from nvpm.read import machine as subject
from nvpm.read import reader

GPU = "0000:03:00.0"
INFORMATION = f"/proc/driver/nvidia/gpus/{GPU}/information"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets nvpm wait for a FIFO for a short time only, because no FIFO answers, however long nvpm
    waits. A busy machine may need longer for an ordinary file."""
    asked = reader.asked

    def of_kind(path: str, size: int, limit: float) -> bytes:
        fifo = os.path.exists(path) and stat.S_ISFIFO(os.stat(path).st_mode)
        return asked(path, size, min(limit, 0.2) if fifo else 60.0)

    monkeypatch.setattr(reader, "asked", of_kind)
    yield
    reader.stop()


@pytest.fixture
def player(tmp_path: Path) -> Player:
    player = Player(tmp_path)
    Machine(player.environment["NVPM_SYSROOT"])
    return player


def silent(player: Player, path: str) -> Path:
    file = Path(player.environment["NVPM_SYSROOT"] + path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file)
    return file


def run(player: Player, *words: str) -> tuple[str, object]:
    machine = subject.Machine(player.environment["NVPM_SYSROOT"])
    return called(machine, player.environment, *words)


def test_driver_that_does_not_answer(player: Player) -> None:
    silent(player, INFORMATION)
    said, code = run(player, "check")
    begin = "NVPM CRITICAL - kernel/nvidia_driver: does not answer (/proc/driver/nvidia/gpus/"
    assert said.startswith(begin) and code == 2
    said, _ = run(player, "status")
    first = said.splitlines()[0]
    assert first.startswith(
        "No GPU memory can be registered now: the NVIDIA driver does not answer"
    )
    assert "first to do   kernel, NVIDIA driver: " in said
    facts = [line for line in said.splitlines() if line.startswith("  !!")]
    assert "kernel, NVIDIA driver: does not answer" in facts[0]
    said, _ = run(player, "status", "--json")
    assert json.loads(said)["facts"][0]["id"] == "kernel/nvidia_driver"


def test_report_has_all_other_facts(player: Player) -> None:
    """The report has the same facts as the report of a good machine, and does not start programs
    that would hang at the same lock."""
    good, _ = run(player, "report", "--as-it-is")
    silent(player, INFORMATION)
    (Path(player.environment["PATH"].split(":")[0]) / "nvidia-smi").write_text(
        "#!/bin/sh\nexit 9\n"
    )
    said, code = run(player, "report", "--as-it-is")
    assert code == 0 and "kernel, NVIDIA driver" not in good
    for line in good.split("==== versions.txt")[0].splitlines():
        if line.startswith("  ok"):
            assert line in said, line
    hangs = "(not run, because the NVIDIA driver does not answer: see status.txt)"
    assert said.count(hangs) == 3, "two calls of nvidia-smi, and the selftest"


@pytest.mark.parametrize(
    ("path", "fact"),
    [
        ("/sys/class/infiniband/mlx5_0/fw_ver", "rdma_device_mlx5_0"),
        ("/sys/class/infiniband/mlx5_0/ports/1/state", "rdma_device_mlx5_0"),
        ("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", "firmware"),
        ("/proc/driver/nvidia/params", "suspend_lock_of_the_nvidia_driver"),
        (f"/sys/bus/pci/devices/{GPU}/config", f"pci_device_{GPU}"),
    ],
)
def test_other_files(player: Player, path: str, fact: str) -> None:
    silent(player, path)
    said, _ = run(player, "status", "--json")
    assert f'"kernel/{fact}"' in said and f"does not answer ({path}, since " in said


def test_mappings_of_a_process(player: Player) -> None:
    """If two processes have mappings that do not answer, nvpm asks only the first process."""
    machine = Machine(player.environment["NVPM_SYSROOT"])
    machine.put("/sys/module/nv_peer_mem/statistics/reachable_regions", "2")
    machine.put("/proc/sys/vm/max_map_count", "65530")
    line = "{} 7 5 0x7f0000000000 65536 nv_mem mapped - a"
    machine.put(
        "/proc/driver/nv_peer_mem/regions", "\n".join(line.format(number) for number in (41, 42))
    )
    silent(player, "/proc/41/maps")
    silent(player, "/proc/42/maps")
    said, _ = run(player, "status", "--all")
    assert "(/proc/41/maps, since " in said and "/proc/42/maps" not in said
    assert "process 42" in said


def test_one_file_of_an_area_is_asked(player: Player) -> None:
    """After the first silent file of an area, nvpm does not wait for the others."""
    paths = [f"/sys/class/infiniband/mlx5_0/ports/{port}/state" for port in range(9)]
    for path in paths:
        silent(player, path)
    machine = subject.Machine(player.environment["NVPM_SYSROOT"])
    assert [machine.read(path) for path in paths] == [b""] * 9
    assert list(machine.reader.silences) == ["RDMA device mlx5_0"]
    assert machine.reader.silences["RDMA device mlx5_0"].path == paths[0]
    # A file of another device is read.
    assert machine.text("/proc/sys/kernel/hostname") == "machine"


def test_all_files_together_have_a_limit(player: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    """If many parts of the kernel do not answer, they use up the seconds that all parts share.
    After that, nvpm waits only a short time for each part."""
    limits: list[float] = []
    asked = reader.asked

    def noted(path: str, size: int, limit: float) -> bytes:
        limits.append(limit)
        return asked(path, size, limit)

    monkeypatch.setattr(reader, "ONE_FILE", 0.15)
    monkeypatch.setattr(reader, "ALL_FILES", 0.4)
    monkeypatch.setattr(reader, "LEAST", 0.02)
    monkeypatch.setattr(reader, "asked", noted)
    paths = [f"/sys/class/infiniband/mlx5_{number}/fw_ver" for number in range(5)]
    for path in paths:
        silent(player, path)
    one = reader.Reader()
    for path in paths:
        with pytest.raises(reader.Silent):
            one.read(player.environment["NVPM_SYSROOT"], path, -1)
    assert limits[0] == 0.15 and limits == sorted(limits, reverse=True)
    assert limits[3:] == [0.02, 0.02]


def test_the_file_answers_as_a_file(tmp_path: Path) -> None:
    """The contents are those of the file, also if they are large, cut, or missing."""
    (tmp_path / "proc").mkdir()
    data = os.urandom(3 << 20)
    (tmp_path / "proc/large").write_bytes(data)
    (tmp_path / "proc/none").write_bytes(b"")
    one = reader.Reader()
    assert one.read(str(tmp_path), "/proc/large", -1) == data
    assert one.read(str(tmp_path), "/proc/large", 70000) == data[:70000]
    assert one.read(str(tmp_path), "/proc/none", -1) == b""
    for path, error in ("/proc/missing", FileNotFoundError), ("/proc", IsADirectoryError):
        with pytest.raises(error):
            one.read(str(tmp_path), path, -1)


KILLED_READER = """
import os, signal
from nvpm.read import reader
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
one = reader.Reader()
one.read("", "/proc/self/comm", -1)
os.kill(reader.RUNNING[0].number, 9)
os.waitid(os.P_PID, reader.RUNNING[0].number, os.WEXITED | os.WNOWAIT)
print(one.read("", "/proc/sys/kernel/ostype", -1).decode().strip())
"""


def test_a_reader_that_was_killed_is_replaced() -> None:
    """The kernel may kill the reading process if memory is short. As in nvpm, SIGPIPE would end a
    process that writes to the killed process."""
    command = [sys.executable, "-B", "-c", KILLED_READER]
    ended = subprocess.run(command, cwd=SERVICE, capture_output=True, check=False, text=True)
    assert (ended.returncode, ended.stdout) == (0, "Linux\n"), ended.stderr


@pytest.mark.parametrize("number", [errno.EAGAIN, errno.ENOMEM])
def test_no_process_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """If a user already has as many processes as allowed, the files are read nevertheless, and no
    descriptor stays open."""

    def fail() -> int:
        raise OSError(number, os.strerror(number))

    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/a").write_text("a")
    reader.stop()
    monkeypatch.setattr(os, "fork", fail)
    before = os.listdir("/proc/self/fd")
    for _ in range(3):
        assert reader.Reader().read(str(tmp_path), "/proc/a", -1) == b"a"
    assert os.listdir("/proc/self/fd") == before


def test_many_open_files(tmp_path: Path) -> None:
    """nvpm may have inherited more than 1,024 open files."""
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/a").write_text("a")
    code = (
        "import os, resource; resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096));"
        "[os.dup(0) for _ in range(1100)]; from nvpm.read import reader;"
        f"print(reader.Reader().read({str(tmp_path)!r}, '/proc/a', -1))"
    )
    command = [sys.executable, "-B", "-c", code]
    ended = subprocess.run(command, cwd=SERVICE, capture_output=True, check=False, text=True)
    assert ended.stdout == "b'a'\n", ended.stderr


def test_no_file_stays_open(player: Player) -> None:
    """A program that reads nvpm's output sees the end of the output, although the reading process
    may be left. That process has only its own two pipes and /dev/null."""
    code = (
        "import os; from nvpm.read import reader; r = reader.Reader();"
        "r.read('', '/proc/self/comm', -1);"
        "place = f'/proc/{reader.RUNNING[0].number}/fd/';"
        "print(*sorted(os.readlink(place + name)[:5] for name in os.listdir(place)))"
    )
    reading, writing = os.pipe()
    command = [sys.executable, "-B", "-c", code]
    ended = subprocess.run(
        command, cwd=SERVICE, capture_output=True, check=True, text=True, pass_fds=(writing,)
    )
    os.close(reading)
    os.close(writing)
    assert ended.stdout.split() == ["/dev/"] * 3 + ["pipe:"] * 2


def test_the_reader_ends_with_nvpm() -> None:
    """The reading process ends together with nvpm, because it would otherwise keep a chroot from
    being unmounted."""
    code = (
        "from nvpm.read import reader; reader.Reader().read('', '/proc/self/comm', -1);"
        "print(reader.RUNNING[0].number)"
    )
    command = [sys.executable, "-B", "-c", code]
    ended = subprocess.run(command, cwd=SERVICE, capture_output=True, check=True, text=True)
    assert not Path(f"/proc/{int(ended.stdout)}").exists()


# ---- a reading process that an earlier nvpm has left behind ----

# The four users of a process that belongs to the present user: real, effective, saved, and that of
# the file system.
OWN = "\t".join([str(os.geteuid())] * 4)


def with_boot_time(player: Player) -> Machine:
    machine = Machine(player.environment["NVPM_SYSROOT"])
    machine.put("/proc/stat", "cpu 1 2 3\nbtime 1700000000")
    return machine


def put_process(
    machine: Machine, number: int, name: str, pending: str, file: str, users: str = OWN
) -> None:
    place = f"/proc/{number}"
    machine.put(f"{place}/comm", name)
    status = f"Name:\t{name}\nUid:\t{users}\nSigPnd:\t0000\nShdPnd:\t{pending}"
    machine.put(f"{place}/status", status)
    machine.put(f"{place}/stat", f"{number} ({name}) D " + "0 " * 18 + f"{number}00 0")
    fd = Path(f"{machine.root}{place}/fd")
    fd.mkdir(parents=True)
    for descriptor, target in ("0", "/dev/null"), ("4", "pipe:[5]"), ("12", file):
        (fd / descriptor).symlink_to(target)


FIRMWARE = "/sys/devices/pci0000:00/0000:00:01.0/0000:04:00.0/infiniband/mlx5_0/fw_ver"
KILLED = "0000000000000100"


def test_left_by_an_earlier_nvpm(player: Player) -> None:
    """A file for which an earlier nvpm still waits is not read again, and the fact has the time at
    which the first of the waiting processes was started."""
    machine = with_boot_time(player)
    put_process(machine, 9, reader.NAME, KILLED, INFORMATION)
    put_process(machine, 8, reader.NAME, KILLED, INFORMATION)
    put_process(machine, 7, reader.NAME, KILLED, FIRMWARE)
    found = reader.left_behind(player.environment["NVPM_SYSROOT"])
    tick = 100 / os.sysconf("SC_CLK_TCK")
    assert found == {
        "NVIDIA driver": reader.Silence("NVIDIA driver", INFORMATION, 1700000000 + 8 * tick),
        "RDMA device mlx5_0": reader.Silence("RDMA device mlx5_0", FIRMWARE, 1700000000 + 7 * tick),
    }
    silent(player, INFORMATION)
    one = subject.Machine(player.environment["NVPM_SYSROOT"])
    assert one.read(INFORMATION) == b""
    assert one.reader.silences["NVIDIA driver"].since == 1700000000 + 8 * tick


@pytest.mark.parametrize(
    ("name", "pending", "file"),
    [
        ("nvpm-readers", KILLED, INFORMATION),
        ("python3", KILLED, INFORMATION),
        (reader.NAME, "0000000000000000", INFORMATION),
        (reader.NAME, "0000000000000080", INFORMATION),
        (reader.NAME, KILLED, "/home/x/proc"),
    ],
)
def test_not_left_by_nvpm(player: Player, name: str, pending: str, file: str) -> None:
    """Other processes, and a reading process that was not killed, say nothing about a file."""
    machine = with_boot_time(player)
    put_process(machine, 9, name, pending, file)
    assert reader.left_behind(player.environment["NVPM_SYSROOT"]) == {}


@pytest.mark.parametrize("place", range(4))
def test_process_of_another_user(player: Player, place: int) -> None:
    """A process belongs to the present user only if all four of its users are this user. A user who
    starts a program such as su remains its real user, may choose its name, and may kill it."""
    users = OWN.split()
    users[place] = "65534"
    machine = with_boot_time(player)
    put_process(machine, 9, reader.NAME, KILLED, INFORMATION, "\t".join(users))
    assert reader.left_behind(player.environment["NVPM_SYSROOT"]) == {}
    said, _ = run(player, "status", "--json")
    assert "kernel/nvidia_driver" not in said


def test_process_without_users(player: Player) -> None:
    machine = with_boot_time(player)
    put_process(machine, 9, reader.NAME, KILLED, INFORMATION)
    machine.put("/proc/9/status", f"Name:\t{reader.NAME}\nShdPnd:\t{KILLED}")
    assert reader.left_behind(player.environment["NVPM_SYSROOT"]) == {}
