# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the emulated ConnectX cards (nic/), and asks them questions."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from layers.cache import CACHE, DOUBLES, Wrong, killed_with_us
from layers.stack import Layers


class Nics:
    """The process of the cards of some guests. RUNS has a directory for each guest, with the memory
    of the guest's GPU; each guest has NUMBER cards. WHO names the log."""

    def __init__(self, who: str, layers: Layers, runs: list[Path], number: int) -> None:
        self.control = runs[0] / "nics"
        self.log = CACHE / "log" / f"{who}.nics"
        guests = [
            ",".join([f"{run}/bar", *(f"{run}/nic{card}" for card in range(1, number + 1))])
            for run in runs
        ]
        program = [sys.executable, "-B", DOUBLES / "nic/nic.py", "--control", self.control, *guests]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                killed_with_us(*program),
                env={**os.environ, "LAB_MLX5_HEADERS": str(layers.card)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self.process.stdout
        with self.process.stdout as said:
            if said.readline() != b"ready\n":
                self.end()
                raise Wrong(f"the emulated cards did not start: {self.end_of_log()}")

    def end_of_log(self) -> str:
        return self.log.read_text(errors="replace")[-500:]

    def ask(self, *words: str) -> str:
        """Asks the question of these words, of which the first is the number of a card."""
        with socket.socket(socket.AF_UNIX) as asking:
            try:
                asking.connect(str(self.control))
                asking.sendall(" ".join(words).encode())
                answer = asking.makefile(encoding="utf-8").readline()
            except OSError:
                answer = ""
        if not answer:
            raise Wrong(f"the emulated cards have ended: {self.end_of_log()}")
        return answer.rstrip("\n")

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
