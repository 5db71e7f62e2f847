# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What a step works with: where its files are, and how it writes what held and what did not."""

from pathlib import Path
from typing import Any, Dict, Optional, Tuple

import built
from journal import Journal
from talk import Client, Pair

KIB, MIB = 1 << 10, 1 << 20
# The driver frees buffers of whole blocks of this size by themselves (docs/programs.md).
BLOCK = 2 * MIB
PERSISTENT, REVOCABLE = "persistent", "revocable"


class Context:
    """What a step has to work with."""

    def __init__(self, directory: Path, journal: Journal, options: Any) -> None:
        self.directory, self.journal, self.options = directory, journal, options
        self.source = directory / "source"
        self.built = directory / "built"
        self.client_file = self.built / built.CLIENT
        self.step = ""
        self.pair: Optional[Pair] = None
        self.mode = ""
        self.before: Dict[str, Any] = {}

    def line(self, word: str, text: str) -> None:
        self.journal.write("line", step=self.step, word=word, text=text)

    def ok(self, text: str) -> None:
        self.line("ok", text)

    def bad(self, text: str) -> None:
        self.line("bad", text)

    def no(self, text: str) -> None:
        self.line("not", text)

    def check(self, text: str, is_so: bool, more: str = "") -> None:
        if is_so:
            self.ok(text)
        else:
            self.bad(text + (": " + more if more else ""))

    def equal(self, text: str, expected: Any, got: Any) -> None:
        self.check(text, got == expected, f"expected {expected}, got {got}")

    def figure(self, name: str, value: float, unit: str) -> None:
        self.journal.write("figure", step=self.step, name=name, value=value, unit=unit)

    def client(self) -> Client:
        assert self.pair
        return Client(str(self.client_file), self.pair, self.journal)

    def answers(self, text: str, expected: Tuple[str, ...], said: str) -> bool:
        """Judges an answer of the client. Returns whether it was `ok`."""
        word, _, rest = said.partition(" ")
        if word == "not":
            self.no(f"{text}: {rest}")
        else:
            is_right = word in expected
            more = "expected {}, got {}".format(" or ".join(expected), said)
            self.check(f"{text}: {word}", is_right, more)
        return word == "ok"
