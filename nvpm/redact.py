# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Takes names and numbers that identify somebody out of a text.

Each becomes a word with a number, the same for the same, so that one can still see what belongs
together: address-2 is address-2 wherever it stands. PCI addresses stay: all machines have the same.
"""

import os
import pwd
import re
from functools import partial
from typing import Dict, Iterable, List, Match, NamedTuple, Pattern, Set

from .machine import Machine

FIRST_PERSON, NOBODY = 1000, 65534

# What stands before the part that is taken out, where that has a name.
BEFORE, WHAT = "before", "what"

OCTET = r"(?:25[0-5]|2[0-4]\d|1?\d?\d)"
IPV4 = rf"(?<![\w.-]){OCTET}(?:\.{OCTET}){{3}}(?!\w|[.-]\d)"
GUID = r"\b[0-9a-f]{4}(?::[0-9a-f]{4}){3}\b|\b0x[0-9a-f]{16}\b|\b[0-9a-f]{32}\b"
# Of Ethernet 6, of a GUID 8, of IP over InfiniBand 20 bytes.
MAC = r"\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5,19}\b"
# Eight groups, or some around the two colons that stand for zeros; with one of the older kind.
MAPPED = rf"(?<![\w:.])::(?:ffff:)?{OCTET}(?:\.{OCTET}){{3}}(?!\w|\.\d)"
IPV6 = (
    r"(?<![\w:.])(?:(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}"
    r"|(?:[0-9a-f]{1,4}:){1,6}(?::[0-9a-f]{1,4}){1,6}|(?:[0-9a-f]{1,4}:){2,7}:"
    r"|::(?:[0-9a-f]{1,4}:){0,5}[0-9a-f]{1,4})(?![\w:])"
)
UUID = r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b"
SERIAL = rf"(?P<{BEFORE}>\b(?:serial ?(?:number|no\.?)?|s/n) ?[:=] ?)(?P<{WHAT}>\S+)"
SECRET = (
    rf"(?P<{BEFORE}>(?:password|passwd|passphrase|secret|token|api_?key) ?[:=] ?)(?P<{WHAT}>\S+)"
)
CREDENTIALS = rf"(?P<{BEFORE}>://)(?P<{WHAT}>[^\s/@]+)(?=@)"
MAIL = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
HOME = rf"(?P<{BEFORE}>/home/)(?P<{WHAT}>[^/\s:\"']+)"


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
    rule("secret", CREDENTIALS),
    rule("secret", SECRET),
    rule("user", MAIL),
    rule("uuid", UUID),
    rule("serial", SERIAL),
    rule("address", f"{MAC}|{GUID}|{MAPPED}|{IPV6}|{IPV4}"),
    rule("user", HOME),
)


class Redactor:
    """KEPT are texts that look like addresses and are none: versions have four numbers, too."""

    def __init__(self, machine: Machine, kept: Iterable[str] = ()):
        self.known: Dict[str, Dict[str, str]] = {}
        self.kept = set(kept)
        self.rules: List[Rule] = [*RULES]
        self.hosts({name.partition(".")[0] for name in (machine.host, os.uname().nodename)})
        self.users(people())

    def hosts(self, names: Iterable[str]) -> None:
        """These, with the domain behind them."""
        for either in alternatives(names):
            whole = rf"(?<![a-z0-9])(?:{either})(?:\.[a-z0-9-]+)*(?![a-z0-9])"
            self.rules.append(rule("host", whole))

    def users(self, names: Iterable[str]) -> None:
        """Letters count: a user's name may be a word."""
        for either in alternatives(names):
            whole = rf"(?<![\w-])(?:{either})(?![\w-])"
            self.rules.append(Rule("user", re.compile(whole)))

    def text(self, text: str) -> str:
        for word, pattern in self.rules:
            text = pattern.sub(partial(self.instead, word), text)
        return text

    def instead(self, word: str, found: Match[str]) -> str:
        groups = found.groupdict()
        what = groups.get(WHAT) or found.group()
        if what in self.kept:
            return found.group()
        known = self.known.setdefault(word, {})
        name = known.setdefault(what.lower(), f"{word}-{len(known) + 1}")
        return (groups.get(BEFORE) or "") + name

    def counted(self) -> str:
        """What was taken out, for the reader."""
        counts = [f"{len(known)} x {word}" for word, known in sorted(self.known.items())]
        return ", ".join(counts) or "nothing"


def alternatives(names: Iterable[str]) -> List[str]:
    """One pattern, the longest name first; none without names."""
    wanted = sorted((name for name in names if len(name) > 2 and name not in COMMON), key=len)
    return ["|".join(map(re.escape, reversed(wanted)))] if wanted else []


def people() -> Set[str]:
    """The names of users who are no part of the system, and of whoever runs this, whom a directory
    may know and not list."""
    found = {user.pw_name for user in pwd.getpwall() if FIRST_PERSON <= user.pw_uid != NOBODY}
    found |= {os.environ.get(name, "") for name in ("SUDO_USER", "LOGNAME", "USER")}
    return found - {"root", "nobody", ""}
