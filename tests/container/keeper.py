# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the program of the container image, and reads its sources. The environment variable
NVPM_KEEPER names the program; without it, the newest one that cargo has built here is run."""

import os
import re
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
SOURCES = TOP / "nvpm/keeper/src"
# A string of Rust, without its quotation marks.
LITERAL = r'"((?:[^"\\]|\\.)*)"'
# A value that is a number and a word, so that it fits each placeholder of the tables.
VALUE = "7"


def built() -> Path:
    """Returns the program, or ends the tests if there is none."""
    if named := os.environ.get("NVPM_KEEPER"):
        return Path(named)
    there = [file for file in TOP.glob("nvpm/target/*/nv-peer-mem") if file.is_file()]
    assert there, "cargo build --workspace in nvpm/ makes the program that these tests run"
    return max(there, key=lambda file: file.stat().st_mtime)


def keeper(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Runs a command of the program."""
    return subprocess.run(
        [built(), *words],
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def source(file: str) -> str:
    """Returns a source of the program without its tests."""
    text = (SOURCES / f"{file}.rs").read_text(encoding="utf-8")
    return text.partition("#[cfg(test)]\nmod tests {")[0]


def texts(file: str) -> list[str]:
    """Returns the strings of a source, with VALUE for each part that varies."""
    lines = re.sub(r"(?m)^\s*//.*$", "", source(file))
    joined = (re.sub(r"\\\n\s*", "", found) for found in re.findall(LITERAL, lines, re.DOTALL))
    return [re.sub(r"\{[^{}]*\}", VALUE, one.replace('\\"', '"')) for one in joined]


def text(file: str, beginning: str) -> str:
    """Returns the only string of a source that begins with these words."""
    (found,) = [one for one in texts(file) if one.startswith(beginning)]
    return found
