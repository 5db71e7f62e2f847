# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Keeps the state that `serve` has reached, for the other commands, and prints each change once."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import NamedTuple

DIRECTORY = Path("/run/nv-peer-mem")
# `serve` writes its state every second, but a build may keep it for minutes.
STALE = 60


class Status(NamedTuple):
    """The state of `serve`. `at` is the time of the kernel's clock, which no person sets."""

    state: str
    reason: str
    name: str
    at: float

    @property
    def ready(self) -> bool:
        return self.state in ("ready", "held")

    @property
    def stale(self) -> bool:
        return time.monotonic() - self.at > STALE


def say(text: str) -> None:
    print(f"nv-peer-mem: {text}", flush=True)


class Report:
    def __init__(self, directory: Path = DIRECTORY) -> None:
        self.file = directory / "status.json"
        self.said = ("", "")
        directory.mkdir(parents=True, exist_ok=True)

    def write(self, state: str, reason: str, name: str) -> None:
        """Writes the state, and prints it if the state or the reason is new. If the disk is full,
        the file keeps the state from before, which the probe finds stale after a minute."""
        if (state, reason) != self.said:
            say(f"{state}: {reason}")
            self.said = (state, reason)
        status = Status(state, reason, name, time.monotonic())
        new = self.file.with_suffix(".new")
        with contextlib.suppress(OSError):
            new.write_text(json.dumps(status._asdict()), encoding="utf-8")
            new.rename(self.file)


def read(directory: Path = DIRECTORY) -> Status | None:
    """Returns the state from the file of `serve`; None if there is no file."""
    try:
        text = (directory / "status.json").read_text(encoding="utf-8")
        return Status(**json.loads(text))
    except (OSError, ValueError, TypeError):
        return None


def asked(directory: Path = DIRECTORY) -> Path:
    """Returns the file that exists if somebody has asked that the module stays unloaded."""
    return directory / "asked-to-unload"
