# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Loads the module into the kernel, and unloads it. Nothing is forced: a module that is in use
stays."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Refused(Exception):
    """The kernel has refused. The message is that of insmod or rmmod."""


def load(files: list[Path], parameters: list[str]) -> None:
    """Loads modules in this order, the last one with PARAMETERS. A module that is loaded already
    stays, as the callback module does until the next boot."""
    for file in files:
        name = file.name.partition(".")[0]
        if not Path(f"/sys/module/{name}").exists():
            call("insmod", str(file), *(parameters if file == files[-1] else ()))


def unload(name: str) -> None:
    call("rmmod", name)


def call(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip()
        raise Refused(said or f"{command[0]} has ended with {ended.returncode}")
