# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the completion in bash and zsh at a terminal. A test types a line and the tab key, and
checks the completed line. fish completes a line without a terminal."""

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BUILT = TOP / "nvpm/target/debug/nvpm-bin"
PROGRAM = os.environ.get("NVPM_BIN", str(BUILT))

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
    ("nvpm completion z", "nvpm completion zsh "),
]
# zsh and fish have the options from clap.
LINES_OF_ZSH = [
    ("nvpm st", "nvpm status "),
    ("nvpm help st", "nvpm help status "),
    ("nvpm status --p", "nvpm status --prometheus "),
    ("nvpm report --write resu", "nvpm report --write results/"),
    ("nvpm report --write=resu", "nvpm report --write=results/"),
    ("nvpm run --l", "nvpm run --library="),
    ("nvpm run progra", "nvpm run program_of_ours "),
    ("nvpm run program_of_ours resu", "nvpm run program_of_ours results/"),
    ("nvpm completion z", "nvpm completion zsh "),
]
WORDS_OF_FISH = [
    ("nvpm st", ["status"]),
    ("nvpm help st", ["status"]),
    ("nvpm status --p", ["--prometheus"]),
    ("nvpm report --write resu", ["results/"]),
    ("nvpm run --l", ["--library"]),
    ("nvpm run progra", ["program_of_ours"]),
    ("nvpm run program_of_ours resu", ["results/"]),
    ("nvpm completion z", ["zsh"]),
    ("nvpm explain resu", ["results/"]),
]


PROMPT = b"go> "
START = """\
stty cols 500
bind 'set bell-style none'
bind 'set enable-bracketed-paste off'
. <({} completion bash)
PS1='go> '
"""
START_OF_ZSH = """\
stty cols 500
autoload -Uz compinit
compinit -u -D
. <({} completion zsh)
unsetopt beep list_beep prompt_sp
unset zle_bracketed_paste
PROMPT='go> '
"""


def made(directory: Path) -> dict[str, str]:
    """Makes what the lines name, and returns the environment."""
    (directory / "results").mkdir()
    (directory / "bin").mkdir()
    (directory / "bin/program_of_ours").write_text("#!/bin/sh\n")
    (directory / "bin/program_of_ours").chmod(0o755)
    for name in ("results/one.gz", "two words.gz"):
        (directory / name).touch()
    return {
        "PATH": f"{directory}/bin:/usr/bin:/bin",
        "TERM": "dumb",
        "ZDOTDIR": f"{directory}/bin",
        "HOME": f"{directory}/bin",
    }


def completed(line: str, directory: Path, shell: list[str]) -> str:
    environment = made(directory)
    (directory / "bin/start").write_text(START.format(PROGRAM))
    (directory / "bin/.zshrc").write_text(START_OF_ZSH.format(PROGRAM))
    child, terminal = pty.fork()
    if not child:
        os.chdir(directory)
        os.execve(f"/bin/{shell[0]}", shell, environment)
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
    """Returns the output of the shell up to END."""
    said, deadline = b"", time.monotonic() + 20
    while not said.endswith(end):
        assert time.monotonic() < deadline, said
        if select.select([terminal], [], [], 0.1)[0]:
            said += os.read(terminal, 65536)
    return said


@pytest.mark.parametrize(("line", "expected"), LINES, ids=[line for line, _ in LINES])
def test_completed(line: str, expected: str, tmp_path: Path) -> None:
    shell = ["bash", "--noprofile", "--rcfile", "bin/start", "-i"]
    assert completed(line, tmp_path, shell) == expected


@pytest.mark.parametrize(("line", "expected"), LINES_OF_ZSH, ids=[line for line, _ in LINES_OF_ZSH])
def test_completed_by_zsh(line: str, expected: str, tmp_path: Path) -> None:
    said = completed(line, tmp_path, ["zsh", "-d", "-i"])
    # When a letter follows, zsh takes back the blank that it has written, and writes it again.
    assert re.sub("[ /=]?\b(?=[ /=])", "", said) == expected


@pytest.mark.parametrize(
    ("line", "expected"), WORDS_OF_FISH, ids=[line for line, _ in WORDS_OF_FISH]
)
def test_completed_by_fish(line: str, expected: list[str], tmp_path: Path) -> None:
    script = f"{PROGRAM} completion fish | source; complete -C '{line}'"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script],
        cwd=tmp_path,
        env=made(tmp_path),
        capture_output=True,
        text=True,
    )
    # fish 4 also offers words that contain the typed letters in another place.
    offered = [word.split("\t")[0] for word in done.stdout.splitlines()]
    typed = line.rpartition(" ")[2]
    assert [word for word in offered if word.startswith(typed)] == expected, done.stderr


COMMANDS = [
    "status",
    "used",
    "check",
    "selftest",
    "regions",
    "compare",
    "explain",
    "run",
    "report",
    "completion",
    "help",
    "version",
]
# A device may have any name that root gives it. The program prints the completed words of a line.
STUB = """\
. <({} completion bash)
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
        (["c"], ["check", "compare", "completion"]),
        (["", ""], ["--help"]),
        (
            [""],
            [*COMMANDS, "--version"],
        ),
    ],
)
def test_names_of_devices(words: list[str], expected: list[str], tmp_path: Path) -> None:
    """The names are offered in the form that the shell takes literally, and are not executed."""
    script = STUB.format(PROGRAM)
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.stdout.splitlines(), done.stderr) == (expected, "")
    assert not list(tmp_path.iterdir())
