# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Takes names and numbers that identify somebody out of a text.

Each becomes a word with a number, the same for the same, so that one can still see what belongs
together: address-2 is address-2 wherever it stands. PCI addresses stay: all machines have the same.
"""

import os
import pwd
import re
from functools import partial
from typing import Dict, Iterable, List, Match, NamedTuple, Pattern

from .machine import Machine

FIRST_PERSON = 1000

GUID = r"\b[0-9a-f]{4}(?::[0-9a-f]{4}){3}\b"
MAC = r"\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}(?:(?:[:-][0-9a-f]{2}){2})?\b"
# Eight groups, or some around the two colons that stand for zeros.
IPV6 = (
    r"(?<![\w:.])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"
    r"|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}|::(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4})"
    r"(?![\w:])"
)
IPV4 = r"(?<![\w.])(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?:25[0-5]|2[0-4]\d|1?\d?\d)){3}(?![\w.])"
UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
# What stands behind these words.
NUMBERED = r"(?<=serial number[:=] )\S+|(?<=serial[:=] )\S+|(?<=\[SN\] Serial number: )\S+"
HOME = r"(?<=/home/)[^/\s:\"']+"


# Names that say nothing of anybody: of this machine, and of the users that come with systems.
COMMON = (
    *("localhost", "admin", "user", "ubuntu", "debian", "rocky", "centos", "fedora", "opc"),
    *("ec2-user", "azureuser", "vagrant", "nvidia"),
)


class Rule(NamedTuple):
    word: str
    pattern: Pattern[str]


def rule(word: str, pattern: str) -> Rule:
    return Rule(word, re.compile(pattern, re.IGNORECASE))


RULES = (
    rule("uuid", UUID),
    rule("serial", NUMBERED),
    rule("address", f"{MAC}|{GUID}|{IPV6}|{IPV4}"),
    rule("user", HOME),
)


class Redactor:
    def __init__(self, machine: Machine):
        self.known: Dict[str, Dict[str, str]] = {}
        self.rules: List[Rule] = [*RULES]
        hosts = (machine.host, os.uname().nodename)
        self.names("host", {name for host in hosts for name in (host, host.partition(".")[0])})
        self.names("user", people())

    def names(self, word: str, names: Iterable[str]) -> None:
        """These, as words of their own. Letters count: a user's name may be a word."""
        wanted = sorted((name for name in names if len(name) > 2 and name not in COMMON), key=len)
        if wanted:
            either = "|".join(map(re.escape, reversed(wanted)))
            self.rules.append(Rule(word, re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")))

    def text(self, text: str) -> str:
        for word, pattern in self.rules:
            text = pattern.sub(partial(self.instead, word), text)
        return text

    def instead(self, word: str, found: Match[str]) -> str:
        known = self.known.setdefault(word, {})
        return known.setdefault(found.group().lower(), f"{word}-{len(known) + 1}")

    def counted(self) -> str:
        """What was taken out, for the reader."""
        counts = [f"{len(known)} x {word}" for word, known in sorted(self.known.items())]
        return ", ".join(counts) or "nothing"


def people() -> List[str]:
    """The names of users who are no part of the system, and whoever runs this."""
    return [user.pw_name for user in pwd.getpwall() if FIRST_PERSON <= user.pw_uid < 65000]
