# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Removes names and numbers that identify people, hosts, jobs and cards from a text.

Each name is replaced by a word with a number, such as address-2. The same name always gets the same
word, so that a reader can still compare. PCI addresses stay, because all machines have the same
addresses. Kernel addresses, models, versions and programs of the system also stay."""

import json
import re
from functools import partial
from typing import Dict, Iterable, List, Match, Set

from ..facts.fact import Fact
from ..read.machine import Machine
from .names import hosts, jobs, ordinary, people
from .patterns import (
    BEFORE,
    BETWEEN,
    DOMAINS,
    FOREIGN,
    HOST_WORD,
    JOB_WORD,
    KEPT,
    LONGEST_LABEL,
    OF_THE_SYSTEM,
    RULES,
    SURE,
    SYSTEM_PATH,
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
REPLACED = re.compile(r"(?:secret|target|user|uuid|serial|container|address|path|host|job)-\d+$")
# A user may give a process the name of a PCI device or of a version, which the report must keep.
KEPT_FORM = re.compile(r"(?:[0-9a-f]{4,5}:)?[0-9a-f]{2}:[0-9a-f]{2}(?:\.[0-7])?|v?\d+(?:[.-]\d+)+")
# A process has at most this number of characters in its name. A longer name of a program is cut.
LONGEST_COMM = 15
# The greatest number of names with blanks that are searched for everywhere, because a user may have
# thousands of them.
MOST_SPACED = 200
# The quotation marks that the kernel prints around a name.
MARKS = "\"'`"


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
        self.ordinary = ordinary(machine)
        self.jobs: Set[str] = set()
        # Names of processes that are not one word. Each name is searched for by itself.
        self.spaced: List[str] = []
        for name in sorted(jobs(machine)):
            self.learn_job(name)

    # ---- names that one place gives away ----

    def learn(self, text: str) -> None:
        """Finds names of processes, users and hosts in TEXT. From then on, each of these names is
        replaced wherever it stands as a word."""
        for word, pattern in SURE:
            for found in pattern.finditer(text):
                name = found[WHAT].strip(MARKS)
                if word == "job":
                    self.learn_job(name.rpartition("/")[2])
                elif self.is_telling(name):
                    (self.users if word == "user" else self.hosts).add(name)

    def learn_fact(self, fact: Fact) -> None:
        """Finds the name of the process that a fact is about."""
        process = PROCESS.fullmatch(fact.value)
        if process and fact.section == "use":
            self.learn_job(process[1])

    def learn_json(self, value: object) -> None:
        """Finds names of processes in the members of a JSON object."""
        if isinstance(value, dict):
            if isinstance(value.get(COMMAND), str):
                self.learn_job(value[COMMAND])
            value = list(value.values())
        if isinstance(value, list):
            for inner in value:
                self.learn_json(inner)

    def learn_job(self, name: str) -> None:
        if name in self.jobs or not self.is_telling(name) or OF_THE_SYSTEM.fullmatch(name):
            return
        self.jobs.add(name)
        if not JOB_WORD.fullmatch(name) and len(self.spaced) < MOST_SPACED:
            self.spaced = sorted([*self.spaced, name], key=len, reverse=True)

    def is_telling(self, name: str) -> bool:
        """Returns whether NAME can be replaced everywhere. A name that is an ordinary word in such
        a report, or the name of a module or a device, is replaced only where it is the name of a
        process, a user or a host: otherwise a user who chooses such a name spoils the report."""
        plain = name.lower()
        return (
            len(name) > 2
            and not name.isdigit()
            and not plain.startswith("0x")
            and name not in self.kept
            and not KEPT_FORM.fullmatch(plain)
            and any(self.is_own(part) for part in re.split(r"\W+", plain))
            and plain not in self.ordinary
            and not REPLACED.match(name)
        )

    def is_own(self, part: str) -> bool:
        """Returns whether a part of a name is more than a number or an ordinary word."""
        return len(part) > 2 and not part.isdigit() and part not in self.ordinary

    def job_word(self, found: Match[str]) -> str:
        """Replaces a word that is the name of a process, or begins with such a name that the kernel
        has cut."""
        word: str = found.group()
        for name in (word, word[:LONGEST_COMM]):
            if name in self.jobs:
                return self.replaced("job", name)
        return word

    # ---- texts ----

    def text(self, text: str) -> str:
        """Redacts a text in which each word may be a name."""
        self.learn(text)
        text = self.patterns(text)
        for word, pattern in FOREIGN:
            text = pattern.sub(partial(self.perhaps, word), text)
        text = self.spaced_jobs(text)
        text = JOB_WORD.sub(self.job_word, text)
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

    def spaced_jobs(self, text: str) -> str:
        """Replaces names of processes that are not one word, such as `my job`."""
        for name in self.spaced:
            if name in text:
                pattern = rf"(?<!\w){re.escape(name)}(?!\w)"
                text = re.sub(pattern, self.replaced("job", name), text)
        return text

    def job(self, name: str) -> str:
        bare = name.strip(MARKS)
        mark = name[: len(name) - len(name.lstrip(MARKS))]
        if OF_THE_SYSTEM.fullmatch(bare) or SYSTEM_PATH.match(bare):
            return name
        # A path to a program and the name of the program stand for the same process.
        return mark + self.replaced("job", bare.rpartition("/")[2] or bare) + mark

    def replaced(self, word: str, name: str) -> str:
        """Returns the word with a number that stands for NAME."""
        known = self.known.setdefault(word, {})
        return known.setdefault(key_of(word, name), f"{word}-{len(known) + 1}")

    def perhaps(self, word: str, found: Match[str]) -> str:
        """Replaces a name. A name that looks like that of a process stays if it is an ordinary
        word, such as `port` in port:4420."""
        ordinary = word == "job" and found[WHAT].lower() in self.ordinary
        return found.group() if ordinary else self.instead(word, found)

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
