# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Removes names and numbers that identify people, hosts, jobs and cards from a text.

Each name is replaced by a word with a number, such as address-2. The same name always gets the same
word, so that a reader can still compare. PCI addresses stay, because all machines have the same
addresses. Kernel addresses, models, versions and programs of the system also stay."""

import json
import re
from functools import partial
from typing import Dict, Iterable, Match

from ..facts.fact import Fact
from ..read.machine import Machine
from .names import hosts, people
from .patterns import (
    BEFORE,
    BETWEEN,
    DOMAINS,
    HOST_WORD,
    KEPT,
    LONGEST_LABEL,
    OF_THE_SYSTEM,
    RULES,
    USER_WORD,
    WHAT,
)

# Keys of nvpm's JSON: the values of WORDS are nvpm's own words or names of devices, the value of
# COMMAND is the name of a process, and the value of HOST is the name of a host.
WORDS = ("id", "section", "name", "verdict", "gpu", "device", "pci", "way", "ways", "client")
COMMAND, HOST = "command", "host"
PROCESS = re.compile(r"(.*?)((?:, which has ended,)? has \d+ registrations? of GPU memory.*)")

GUID_DIGITS = re.compile("(?:0x)?[0-9a-f]{9,16}|[0-9a-f]{4}(?::[0-9a-f]{4}){3}")

# Matches a word that has replaced a name, and must not be replaced again.
REPLACED = re.compile(r"(?:secret|target|user|uuid|serial|address|host|job)-\d+$")


def key_of(word: str, name: str) -> str:
    """Returns the same key for all spellings of NAME: with or without capitals, and, for a GUID,
    with or without 0x, colons and leading zeros."""
    name = name.lower()
    if word == "address" and GUID_DIGITS.fullmatch(name):
        return name.replace("0x", "").replace(":", "").lstrip("0")
    return name


class Redactor:
    """Replaces names, and counts the replaced names. KEPT are texts that look like addresses, but
    stay, such as versions with four numbers."""

    def __init__(self, machine: Machine, kept: Iterable[str] = ()):
        self.known: Dict[str, Dict[str, str]] = {}
        self.kept = set(kept)
        self.hosts, self.users = hosts(machine), people(machine)

    def text(self, text: str) -> str:
        """Redacts a text in which each word may be a name."""
        text = self.patterns(text)
        text = HOST_WORD.sub(self.host_word, text)
        text = USER_WORD.sub(self.user_word, text)
        return DOMAINS.pattern.sub(partial(self.instead, DOMAINS.word), text)

    def patterns(self, text: str) -> str:
        """Redacts only names with a recognizable form. Other words stay, because they may be nvpm's
        own words even if a host or a user has the same name."""
        for word, pattern in RULES:
            text = pattern.sub(partial(self.instead, word), text)
        return text

    def json(self, text: str) -> str:
        """Redacts the values in a JSON. Keys, and words of nvpm, stay. If TEXT is no JSON, redacts
        it as a text."""
        try:
            return json.dumps(self.value("", json.loads(text)), indent=1, ensure_ascii=False) + "\n"
        except ValueError:
            return self.text(text)

    def value(self, key: str, value: object) -> object:
        if isinstance(value, dict):
            return {name: self.value(name, inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.value(key, inner) for inner in value]
        if not isinstance(value, str):
            return value
        if key == COMMAND:
            return self.job(value)
        if key == HOST:
            return self.replaced("host", value)
        return self.patterns(value) if key in WORDS else self.text(value)

    def fact(self, fact: Fact) -> Fact:
        """Returns FACT with a redacted value and redacted advice."""
        process = PROCESS.fullmatch(fact.value)
        if process and fact.section == "use":
            return fact._replace(value=self.job(process[1]) + process[2])
        return fact._replace(value=self.text(fact.value), advice=self.text(fact.advice))

    def job(self, name: str) -> str:
        return name if OF_THE_SYSTEM.match(name) else self.replaced("job", name)

    def replaced(self, word: str, name: str) -> str:
        """Returns the word with a number that stands for NAME."""
        known = self.known.setdefault(word, {})
        return known.setdefault(key_of(word, name), f"{word}-{len(known) + 1}")

    def instead(self, word: str, found: Match[str]) -> str:
        groups = found.groupdict()
        what = groups.get(WHAT) or found.group()
        if groups.get(KEPT) or what in self.kept or REPLACED.match(what):
            return found.group()
        name = self.job(what) if word == "job" else self.replaced(word, what)
        return (groups.get(BEFORE) or "") + name

    def host_word(self, found: Match[str]) -> str:
        """Replaces a host's name together with the domain after it. The name may also be a part of
        a word between hyphens or underscores. Longer names are tried first: in node-12-ib0 the name
        is node-12, not node. A name of two characters must have only underscores or the word's ends
        as neighbours, or begin the word and not consist of letters only."""
        word: str = found[WHAT] or ""
        start = 0
        for label in word.split("."):
            # Every second part is a hyphen or an underscore.
            parts = BETWEEN.split(label)
            for length in range(min(len(parts), LONGEST_LABEL), 0, -2):
                for at in range(0, len(parts) - length + 1, 2):
                    name = "".join(parts[at : at + length])
                    whole = {
                        *parts[max(at - 1, 0) : at],
                        *parts[at + length : at + length + 1],
                    } <= {"_"}
                    fits = len(name) > 2 or whole or (not at and not name.isalpha())
                    if fits and self.is_host(name):
                        before, after = "".join(parts[:at]), "".join(parts[at + length :])
                        return word[:start] + before + self.replaced("host", name) + after
            start += len(label) + 1
        return found.group()

    def is_host(self, name: str) -> bool:
        """Returns whether NAME is the name of a host. Case counts if NAME has only letters, because
        it may then be an ordinary word."""
        if name in self.hosts:
            return True
        return not name.isalpha() and name.lower() in self.hosts

    def user_word(self, found: Match[str]) -> str:
        """Replaces a word that is the name of a user. Otherwise replaces each part of the word
        between dots that is the name of a user. The comparison is case-sensitive."""
        word: str = found[WHAT]
        if word in self.users:
            return self.replaced("user", word)
        parts = word.split(".")
        return ".".join(
            self.replaced("user", part) if part in self.users else part for part in parts
        )

    def counted(self) -> str:
        """Returns a text with the number of replaced names of each kind, or "nothing"."""
        counts = [f"{len(known)} x {word}" for word, known in sorted(self.known.items())]
        return ", ".join(counts) or "nothing"
