# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A copy of the files of an area, in which mistakes are tried."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from areas import Area
from thought import Made

# A test that takes so many times longer than without a mistake hangs.
PATIENCE, LEAST_SECONDS = 4, 120
# How often a command noticed a mistake in a file. The command that noticed most comes first for the
# next mistake in this file, so that most mistakes cost one command.
noticed_by: Counter[tuple[str, str]] = Counter()


@dataclass
class Copy:
    """`seconds` is how long each command takes without a mistake."""

    area: Area
    directory: Path
    seconds: dict[str, float] = field(default_factory=dict)
    # The files that have mistakes now, as they were before.
    good: dict[Path, str] = field(default_factory=dict)

    def forgets_other_copies(self) -> None:
        """Lets cargo forget what it has compiled from files of another copy. For files outside of a
        package, cargo remembers absolute paths, and would not notice that they change here."""
        for manifest in self.directory.rglob("Cargo.toml"):
            for name in re.findall(r'^name = "(.+)"$', manifest.read_text("utf-8"), re.MULTILINE):
                for old in self.directory.glob(f"target/*/.fingerprint/{name}-*"):
                    shutil.rmtree(old)

    def run(self, command: str) -> str:
        """Runs a command. Returns an empty text if it ends with 0, else its last lines."""
        limit = None
        if command in self.seconds:
            limit = max(LEAST_SECONDS, PATIENCE * self.seconds[command])
        environment = {**os.environ, "CARGO_TARGET_DIR": str(self.directory / "target")}
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        ) as child:
            try:
                said, _ = child.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                return "no end"
        return "" if not child.returncode else "\n".join(said.splitlines()[-15:]) or "failed"

    def prove(self, commands: list[str]) -> None:
        """Runs commands without a mistake, and measures how long they take."""
        for command in commands:
            began = time.monotonic()
            if problem := self.run(command):
                sys.exit(f"sweep: without a mistake, this fails: {command}\n{problem}")
            self.seconds[command] = time.monotonic() - began
        seconds = sum(self.seconds[command] for command in commands)
        print(f"without a mistake, these tests pass in {seconds:.0f} s", flush=True)

    def compiles(self, mistakes: list[Made]) -> bool:
        """Puts the mistakes in, and returns whether the program can be built. Mistakes that are
        put in together are in different files."""
        for one in mistakes:
            path = self.directory / one.file
            self.good[path] = path.read_text(encoding="utf-8")
            path.write_text(one.put_in(self.good[path]), encoding="utf-8")
        return not any(self.run(command) for command in self.area.builds)

    def put_right(self) -> None:
        for path, text in self.good.items():
            path.write_text(text, encoding="utf-8")
        self.good.clear()

    def notices(self, commands: list[str], file: str) -> bool:
        for command in sorted(commands, key=lambda one: -noticed_by[file, one]):
            if self.run(command):
                noticed_by[file, command] += 1
                return True
        return False
