# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the part of nvpm in Rust. The environment variable NVPM_BIN names the program; without
it, the newest one that cargo has built here is run."""

import functools
import os
import subprocess
from pathlib import Path
from typing import IO, NamedTuple

TOP = Path(__file__).resolve().parents[2]
# A program that hangs fails the test.
LONGEST = 60


def built() -> Path:
    """Returns the program, or ends the tests if there is none."""
    if named := os.environ.get("NVPM_BIN"):
        return Path(named)
    found = [TOP / "nvpm-bin", *TOP.glob("nvpm/target/*/nvpm-bin")]
    there = [file for file in found if file.is_file()]
    assert there, "cargo build in nvpm/ makes the program that these tests run"
    return max(there, key=lambda file: file.stat().st_mtime)


PROGRAM = built()


class Said(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """The answer in one line."""
        return " ".join(self.out.split())


def nvpm(
    *words: "str | Path",
    text: "str | bytes" = b"",
    stdin: "IO[bytes] | int | None" = None,
    **environment: str,
) -> Said:
    """Runs a command, with TEXT on the standard input."""
    data = text.encode(errors="surrogateescape") if isinstance(text, str) else text
    ended = subprocess.run(
        [PROGRAM, *words],
        stdin=stdin,
        input=None if stdin else data,
        capture_output=True,
        check=False,
        timeout=LONGEST,
        env={**os.environ, **environment},
    )
    return Said(
        ended.returncode,
        *(one.decode(errors="surrogateescape") for one in (ended.stdout, ended.stderr)),
    )


# Explains files, or TEXT on the standard input.
explain = functools.partial(nvpm, "explain")
