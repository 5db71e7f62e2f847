# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the messages of nv_peer_mem's own programs from nvpm/data/own."""

import functools
import json
import re
from typing import Any, NamedTuple

from program import TOP, explain

DATA = TOP / "nvpm/data/own"


class Own(NamedTuple):
    text: str
    id: str
    group: str
    fields: dict[str, str]

    @property
    def is_failure(self) -> bool:
        return not {"fine", "follows", "reason"} & set(self.fields)


def messages() -> list[Own]:
    found = []
    for file in sorted(DATA.glob("*.table")):
        group = ""
        for block in re.split(r"\n(?=\S)", file.read_text(encoding="utf-8")):
            text, *rest = block.rstrip("\n").split("\n")
            if text.startswith("% group "):
                group = text[8:]
            if text.startswith(("#", "%")):
                continue
            words = [line.strip().partition(" ") for line in rest]
            fields = {name: value for name, _, value in words}
            found.append(Own(text, fields["id"], group, fields))
    return found


MESSAGES = messages()
BY_TEXT = {one.text: one for one in MESSAGES}


@functools.cache
def answer(log: str) -> dict[str, Any]:
    """Returns the answer for a log."""
    found: dict[str, Any] = json.loads(explain("--json", "-", text=log).out)
    return found


def of_causes(log: str) -> list[Own]:
    """Returns the messages that show causes of a log, the first cause first."""
    texts = [one["message"] for cause in answer(log)["causes"] for one in cause["messages"]]
    return [BY_TEXT[text] for text in texts if text in BY_TEXT]


def rows(log: str) -> list[Own]:
    """Returns all of our messages that the program finds in a log."""
    asides = [*answer(log)["follows"], *answer(log)["aside"]]
    texts = [one["message"] for one in asides]
    return of_causes(log) + [BY_TEXT[text] for text in texts if text in BY_TEXT]
