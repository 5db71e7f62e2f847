# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Loads the module into the kernel, and unloads it. Nothing is forced: a module that is in use
stays."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Refused(Exception):
    """The kernel has refused. The message is that of insmod or rmmod."""


def load(files: list[Path], parameters: list[str], modules: Path = Path("/sys/module")) -> None:
    """Loads modules in this order, the last one with PARAMETERS. The other ones, such as the
    callback module, stay loaded until the next boot. If the last one has a namesake that is loaded,
    the kernel refuses."""
    *others, last = files
    for file in others:
        if not (modules / file.name.partition(".")[0]).exists():
            call("insmod", str(file))
    call("insmod", str(last), *parameters)


def unload(name: str) -> None:
    call("rmmod", name)


def call(*command: str) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = (ended.stderr or ended.stdout).strip()
        raise Refused(said or f"{command[0]} has ended with {ended.returncode}")
