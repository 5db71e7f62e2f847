# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the completion in bash at a terminal. The test types a line and the tab key, and checks the
completed line."""

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]

# Each typed line with its completed line. The test types the mark END after the tab key, and the
# completed line ends before this mark.
LINES = [
    ("nvpm st", "nvpm status "),
    ("nvpm v", "nvpm version "),
    ("nvpm help st", "nvpm help status "),
    ("nvpm help ver", "nvpm help version "),
    ("nvpm status --p", "nvpm status --prometheus "),
    ("nvpm check --ig", "nvpm check --ignore "),
    ("nvpm check --ignore stat", "nvpm check --ignore stat"),
    ("nvpm report --w", "nvpm report --write "),
    ("nvpm report --write resu", "nvpm report --write results/"),
    ("nvpm report --write results/on", "nvpm report --write results/one.gz "),
    ("nvpm report --write two", r"nvpm report --write two\ words.gz "),
    ("nvpm report --write=resu", "nvpm report --write=results/"),
    ("nvpm report --write=results/on", "nvpm report --write=results/one.gz "),
    ("nvpm check --ignore=stat", "nvpm check --ignore=stat"),
    ("nvpm run --l", "nvpm run --library "),
    ("nvpm run --d", "nvpm run --debug "),
    ("nvpm run --library resu", "nvpm run --library results/"),
    ("nvpm run --library a progra", "nvpm run --library a program_of_ours "),
    ("nvpm run progra", "nvpm run program_of_ours "),
    ("nvpm run --debug progra", "nvpm run --debug program_of_ours "),
    ("nvpm run program_of_ours resu", "nvpm run program_of_ours results/"),
    ("nvpm run program_of_ours --l", "nvpm run program_of_ours --l"),
    ("nvpm selftest --see", "nvpm selftest --seed "),
    ("nvpm selftest --b", "nvpm selftest --bandwidth "),
    ("nvpm selftest --ht", "nvpm selftest --html "),
    ("nvpm selftest --html resu", "nvpm selftest --html results/"),
    ("nvpm compare --ex", "nvpm compare --expect "),
    ("nvpm compare --expect resu", "nvpm compare --expect resu"),
    ("nvpm compare --html=resu", "nvpm compare --html=results/"),
    ("nvpm compare --j", "nvpm compare --json "),
    ("nvpm compare resu", "nvpm compare results/"),
    ("nvpm ex", "nvpm explain "),
    ("nvpm explain --jo", "nvpm explain --journal "),
    ("nvpm explain resu", "nvpm explain results/"),
    ("nvpm explain one --red", "nvpm explain one --redact "),
    ("nvpm explain --l", "nvpm explain --list "),
]


PROMPT = b"go> "
START = """\
stty cols 500
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
. {}/completions/nvpm
PS1='go> '
"""


def completed(line: str, directory: Path) -> str:
    start = directory / "start"
    start.write_text(START.format(TOP))
    child, terminal = pty.fork()
    if not child:
        os.chdir(directory)
        environment = {"PATH": f"{directory}/bin:/usr/bin:/bin", "TERM": "dumb"}
        os.execve("/bin/bash", ["bash", "--noprofile", "--rcfile", str(start), "-i"], environment)
    try:
        until(terminal, PROMPT)
        os.write(terminal, f"{line}\tEND".encode())
        said = until(terminal, b"END")
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    return said.decode().removesuffix("END")


def until(terminal: int, end: bytes) -> bytes:
    """Returns the output of bash up to END."""
    said, deadline = b"", time.monotonic() + 20
    while not said.endswith(end):
        assert time.monotonic() < deadline, said
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536)
    return said


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line for line, _ in LINES])
def test_completed(line: str, expected: str, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/program_of_ours").write_text("#!/bin/sh\n")
    (tmp_path / "bin/program_of_ours").chmod(0o755)
    for name in ("results/one.gz", "two words.gz"):
        (tmp_path / name).touch()
    assert completed(line, tmp_path) == expected


COMMANDS = [
    "status",
    "check",
    "selftest",
    "regions",
    "compare",
    "explain",
    "run",
    "report",
    "help",
    "version",
]
# A device may have any name that root gives it. The program prints the completed words of a line.
STUB = """\
. {}/completions/nvpm
_nvpm_devices() {{ printf '%s\\n' mlx5_0 '$(touch made)' 'a b' '*'; }}
COMP_WORDS=(nvpm "$@") COMP_CWORD=$#
_nvpm
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["selftest", "--device", ""], ["mlx5_0", r"\$\(touch\ made\)", r"a\ b", r"\*"]),
        (["selftest", "--device", "ml"], ["mlx5_0"]),
        (["selftest", "--device", "x"], [""]),
        (["status", "a"], [r"a\ b"]),
        (["status", "--a"], ["--all"]),
        (["c"], ["check", "compare"]),
        (["", ""], ["--help"]),
        (
            [""],
            [*COMMANDS, "--version"],
        ),
    ],
)
def test_names_of_devices(words: list[str], expected: list[str], tmp_path: Path) -> None:
    """The names are offered in the form that the shell takes literally, and are not executed."""
    script = STUB.format(TOP)
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")
    assert not list(tmp_path.iterdir())
