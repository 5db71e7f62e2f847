# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""nvpm waits for each program with a time limit, even if the program cannot be killed. A driver can
keep a process in the kernel. The tests imitate such a process in two ways: by a process of another
session that keeps the pipe open, and by a kill() without effect."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from installed import SERVICE, TOP
from machine import Machine
from tables import Player

from nvpm import bugreport
from nvpm.read import ask, programs
from nvpm.read import machine as subject

# The child in another session keeps the pipe open, and is not killed together with the program.
HOLDS_THE_PIPE = ["sh", "-c", "setsid sleep 7 & sleep 8"]


@pytest.fixture
def unkillable(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Makes kill() have no effect until the test ends. Yields the list of processes that nvpm has
    tried to kill. Kills these processes at the end."""
    spared: list[int] = []
    monkeypatch.setattr(os, "kill", lambda number, _signal: spared.append(number))
    monkeypatch.setattr(os, "killpg", lambda number, _signal: spared.append(number))
    yield spared
    monkeypatch.undo()
    for number in spared:
        os.kill(number, signal.SIGKILL)
        os.waitpid(number, 0)


def seconds_since(begun: float) -> float:
    return time.monotonic() - begun


def is_running(number: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{number}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_good_and_bad_ends() -> None:
    assert programs.run(["sh", "-c", "echo yes; echo no >&2; cat"]) == (0, b"yes\n", "")
    assert programs.run(["sh", "-c", "exit 7"]) == (7, b"", "")
    ended = programs.run(["/nowhere/program"])
    assert ended == (None, b"", "cannot be started: No such file or directory")


def test_nothing_to_read() -> None:
    """If a program reads its input, it gets the end of file. It must not read from the terminal."""
    code = "from nvpm.read import programs; print(programs.run(['cat'], 5))"
    reading, writing = os.pipe()
    said = subprocess.run(
        [sys.executable, "-B", "-c", code],
        cwd=SERVICE,
        stdin=reading,
        capture_output=True,
        check=True,
    )
    os.close(reading)
    os.close(writing)
    assert b"code=0" in said.stdout


def test_to_the_screen(capfd: pytest.CaptureFixture[str]) -> None:
    assert programs.run(["sh", "-c", "echo out; echo err >&2"], quiet=False) == (0, b"", "")
    assert capfd.readouterr() == ("out\n", "err\n")


def test_its_children_end_also(tmp_path: Path) -> None:
    note = tmp_path / "number"
    script = f"sleep 300 & echo $! >{note}; sleep 300"
    # On a busy machine, the shell may not have begun when it is killed.
    for limit in 0.5, 5, 50:
        ended = programs.run(["sh", "-c", script], limit)
        assert ended == (None, b"", f"took longer than {limit:g} s and was killed")
        if note.exists() and note.read_text():
            break
    has_ended(int(note.read_text()))


def has_ended(number: int) -> None:
    """Waits for the end of a process, which may need a moment after its signal."""
    begun = time.monotonic()
    while is_running(number):
        assert seconds_since(begun) < 60, f"process {number} is left"
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    """If a user interrupts nvpm, or a scheduler ends it, the programs that nvpm has started end,
    also their children. For example, a selftest holds a GPU and a device."""
    player = Player(tmp_path)
    Machine(player.environment["NVPM_SYSROOT"])
    note, program = tmp_path / "number", tmp_path / "bin/uname"
    program.write_text(f"#!/bin/sh\nsleep 300 &\necho $! >{note}.new\nmv {note}.new {note}\nwait\n")
    program.chmod(0o755)
    with subprocess.Popen(
        # A shell that runs the tests in the background makes them ignore SIGINT.
        [
            "env",
            "--default-signal",
            sys.executable,
            "-B",
            SERVICE / "nvpm",
            "report",
            "--no-selftest",
        ],
        env=player.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as nvpm:
        begun = time.monotonic()
        while not note.exists():
            assert seconds_since(begun) < 60
            time.sleep(0.01)
        nvpm.send_signal(number)
        assert nvpm.wait() == 128 + number
    has_ended(int(note.read_text()))


def test_pipe_that_is_never_closed() -> None:
    begun = time.monotonic()
    assert programs.run(HOLDS_THE_PIPE, 0.5).why == "took longer than 0.5 s and was killed"
    assert seconds_since(begun) < 4


def test_what_cannot_be_killed(unkillable: list[int], capsys: pytest.CaptureFixture[str]) -> None:
    begun = time.monotonic()
    ended = programs.run(["sleep", "30"], 0.3)
    assert seconds_since(begun) < 5
    assert ended.code is None and f"does not end: process {unkillable[0]} is left" in ended.why
    assert f"sleep (process {unkillable[0]}) does not end" in capsys.readouterr().err


def test_devices_that_do_not_answer(
    unkillable: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def hang() -> Iterator[tuple[str, str]]:
        yield "mlx5_0", "EBADF"
        time.sleep(30)

    monkeypatch.setattr(ask, "answers", hang)
    # On a busy machine, the child may not have answered in time.
    found = next(filter(None, map(ask.devices, (0.3, 3.0, 20.0))))
    assert found == {"mlx5_0": "EBADF"}
    assert f"(process {unkillable[-1]}) does not end" in capsys.readouterr().err


def test_selftest_that_hangs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("import time\ntime.sleep(30)\n")
    monkeypatch.setattr(bugreport, "program", lambda: str(program))
    monkeypatch.setattr(bugreport, "SELFTEST_LIMIT", 0.5)
    machine = subject.Machine(str(tmp_path))
    assert bugreport.tested(machine) == "(nvpm selftest took longer than 0.5 s and was killed)\n"


def test_service_that_does_not_stop(tmp_path: Path) -> None:
    """Even if the service's script hangs, a package can be removed."""
    root = tmp_path / "machine"
    Machine(str(root)).put("/sys/module/nv_peer_mem/refcnt", "0")
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\necho stopping\nsleep 30\n")
    script.chmod(0o755)
    code = (
        "import sys; from nvpm import commands; from nvpm.read import place;"
        "from nvpm.read.machine import Machine;"
        "commands.STOP_LIMIT = 0.5; place.kernel_of_another = lambda _: False;"
        f"sys.exit(commands.main(Machine({str(root)!r}), ['leave', {str(script)!r}]))"
    )
    command = [sys.executable, "-B", "-c", code]
    said = subprocess.run(command, cwd=SERVICE, capture_output=True, text=True, check=False)
    assert said.returncode == 0, said
    assert "stopping" in said.stdout and "stays loaded" in said.stdout
    assert f"{script} stop took longer than 0.5 s and was killed" in said.stderr


def test_there_is_one_place() -> None:
    """Only programs.py starts processes and waits for them. There are two exceptions: ask.py forks
    a child, and reader.py keeps a child. programs.py stops both children."""
    words = re.compile(
        r"\b(import subprocess|subprocess\.|Popen|waitpid|"
        r"os\.(?:wait|system|popen|spawn\w*|fork)\b)"
    )
    found = {
        str(file.relative_to(TOP)): set(words.findall(file.read_text(encoding="utf-8")))
        for file in (TOP / "nvpm").rglob("*.py")
    }
    assert {file for file, used in found.items() if used} == {
        "nvpm/read/programs.py",
        "nvpm/read/ask.py",
        "nvpm/read/reader.py",
    }
    assert found["nvpm/read/ask.py"] == {"os.fork"}
    assert found["nvpm/read/reader.py"] == {"os.fork"}
