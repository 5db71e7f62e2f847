# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the outputs of `nvpm status --json` and `nvpm selftest --json` of many nodes, in the form
in which tools collect such outputs. clush and pdsh put the name of the node before each line, and
srun --label puts the number of the task there. clush -b and Ansible print a heading before the
output of each node. Other tools write one file for each node."""

import functools
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, TextIO

from ..read import bounded

# Matches a line that begins with a label, which is the name of a node or the number of a task. A
# line of nvpm's JSON has no label, and begins with a blank, a brace or a quote.
LABELLED = re.compile(r"\s*(\d+|[A-Za-z0-9][\w.-]*): ?(.*)")
# Matches headings of Ansible, such as `node1 | CHANGED | rc=0 >>` and `node1 | FAILED! => {`.
ANSIBLE = re.compile(r"(\S+) \| [A-Z]+!?(?: \| rc=-?\d+)? (?:>>|=>) ?(.*)")
# clush -b prints the names of the nodes between two lines of hyphens.
RULE = re.compile("-{5,}$")
GROUP = re.compile(r"(\S+)(?: \(\d+\))?$")
# Lines of Ansible about a command whose exit code is not 0.
NOISE = re.compile(r"\[(ERROR|WARNING|DEPRECATION WARNING)\]: |Origin: <")
# The last line of nvpm's JSON; Ansible adds words to it.
END = re.compile(r"\}(?:non-zero return code)?$")

# Programs that print messages of their own between the lines of the nodes.
COLLECTORS = ("srun", "pdsh", "clush", "slurmstepd")

# No name of a host is longer (RFC 1035).
LONGEST_NAME = 253
# The greatest number of characters of a line, and of the output of one node. A status of a node
# with many devices has less than 1 MiB.
LONGEST = 8 << 20
# Longer lines are not kept for other nodes, because they would fill memory.
LONGEST_KEPT = 2000
# No number in a status has more digits. Python needs long to read a number with many digits.
MOST_DIGITS = 24
# The number of lines that are kept if a node has printed no status.
LAST_WORDS = 3


TOO_LONG = "the status is too long"


class Node(NamedTuple):
    """A node with its status, or with the result of its selftest. If the node printed neither,
    `words` has the last lines that it printed."""

    name: str
    status: Optional[Dict[str, object]]
    words: str = ""


class Collected:
    """Collects the lines with one label until they are a complete status."""

    def __init__(self, label: str) -> None:
        self.label, self.lines, self.words = label, [], []  # type: str, List[str], List[str]
        self.found, self.size = False, 0

    def add(self, line: str) -> Optional[Node]:
        """Adds a line. Returns the node if this line completes a status."""
        if not self.lines and not line.startswith("{"):
            words = line[:LONGEST_KEPT]
            self.words = [*self.words, words][-LAST_WORDS:] if line.strip() else self.words
            return None
        self.size = self.size + len(line) if self.lines else len(line)
        if self.size > LONGEST:
            self.lines, self.words = [], [TOO_LONG]
            return None
        self.lines.append(line)
        if not END.match(line) and not (len(self.lines) == 1 and line.endswith("}")):
            return None
        said, self.lines = by_lines(self.lines) or parsed("\n".join(self.lines)), []
        if said is None:
            return None
        self.found = True
        return Node(name_of(self.label, said), said)

    def rest(self) -> Optional[Node]:
        """Returns the node if its lines contained no complete status. Is called after the last
        line."""
        if self.found or not (self.words or self.lines):
            return None
        words = "the status is cut off" if self.lines else " / ".join(self.words)
        return Node(self.label or "(no name)", None, words)


def whole(text: str) -> int:
    """Returns a whole number. Raises ValueError for a number that no status has."""
    if len(text) > MOST_DIGITS:
        raise ValueError(f"a number of {len(text)} digits")
    return int(text)


DECODER = json.JSONDecoder(parse_int=whole)


# The results are kept, because most lines of a status are the same on other nodes.
@functools.lru_cache(maxsize=1 << 16)
def line_of(line: str) -> Any:
    return DECODER.decode(line)


def object_in(line: str) -> Any:
    """Returns the object in a line. Raises ValueError if the line has none."""
    try:
        return line_of(line) if len(line) <= LONGEST_KEPT else DECODER.decode(line)
    except RecursionError:
        raise ValueError("too deep") from None


def by_lines(lines: List[str]) -> Optional[Dict[str, object]]:
    """Returns the status in LINES if they have nvpm's own form, which has one line for each member
    and one line for each fact. Returns None for JSON in another form. Reading such JSON as a whole
    takes ten times longer."""
    try:
        facts = lines.index('  "facts": [')
        said: Dict[str, object] = {}
        for line in lines[1:facts]:
            said.update(object_in("{" + line.strip().rstrip(",") + "}"))
        end = lines.index("  ]", facts)
        said["facts"] = [object_in(line.strip().rstrip(",")) for line in lines[facts + 1 : end]]
    except ValueError:
        return None
    return said


def parsed(text: str) -> Optional[Dict[str, object]]:
    """Returns the status or the result of a selftest in TEXT, or None if TEXT contains neither.
    Ansible may have wrapped the text into JSON of its own."""
    try:
        said, _ = DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    if is_list(said, "facts") or is_list(said, "pairs"):
        return said
    return parsed(said["stdout"].strip()) if isinstance(said.get("stdout"), str) else None


def is_list(said: Dict[str, object], key: str) -> bool:
    """Returns whether SAID has objects in a list with this key. The list may be empty."""
    found = said.get(key)
    return isinstance(found, list) and all(isinstance(one, dict) for one in found)


def name_of(label: str, said: Dict[str, object]) -> str:
    """Returns the name of the node, which is the label. If the label only numbers the nodes, the
    name is the host name in the status. The label comes first, because two nodes may have the same
    host name."""
    name = label if label and not label.isdigit() else str(said.get("host") or label)
    return name[:LONGEST_NAME]


def from_lines(lines: Iterable[str], label: str = "") -> Iterator[Node]:
    """Yields the nodes whose output is in LINES. LABEL names the node of a line without a label."""
    by_label: Dict[str, Collected] = {}
    heading, current = False, label
    prefix, collected = "", Collected("")
    for line in lines:
        line = line.rstrip("\r\n")
        text = line
        # A rule before a status may belong to a message.
        heading = heading and not line.startswith("{")
        # Most lines have the same label as the line before, and comparing this label is faster than
        # the patterns.
        if prefix and line.startswith(prefix):
            text = line[len(prefix) :]
        elif NOISE.match(line):
            continue
        elif RULE.match(line):
            heading, prefix = not heading, ""
            continue
        elif heading and GROUP.match(line):
            current = line.split(" (")[0]
            continue
        else:
            key, prefix = current, ""
            labelled, ansible = LABELLED.match(line), ANSIBLE.match(line)
            if ansible:
                current, text = ansible[1], ansible[2]
                key = current
            elif labelled and not line.startswith(("{", "}")):
                key, text = labelled[1], labelled[2]
                prefix = line[: len(line) - len(text)]
                prefix = prefix if prefix.endswith(": ") else ""
            collected = by_label.setdefault(key, Collected(key))
        node = collected.add(text)
        if node:
            yield node
    # A message of a login looks like a label and a text. A status without a label comes from a
    # single node, so such a text is no other node's.
    if label in by_label and by_label[label].found:
        return
    for node in filter(None, (collected.rest() for collected in by_label.values())):
        if node.name not in COLLECTORS:
            yield node


def lines_of(file: TextIO) -> Iterator[str]:
    return bounded.lines(file.readline, LONGEST)


def from_file(path: str) -> Iterator[Node]:
    """Yields the nodes in a file. If the file has no status, yields one node with the name of the
    file."""
    with open(path, encoding="utf-8-sig", errors="surrogateescape") as file:
        found = list(from_lines(lines_of(file)))
    stem = os.path.basename(path).split(".json")[0].split(".txt")[0]
    if not any(node.status for node in found):
        # The file has no status, so it has a message, which may look like a label and a text. The
        # first line of the message is taken for the words of one node.
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            words = file.read(1000).split("\n")
        found = [Node(stem, None, words[0] or "an empty file")]
    yield from found


def from_paths(paths: List[str]) -> Iterator[Node]:
    """Yields the nodes of all files in PATHS. For a directory, yields the nodes of all files in
    this directory."""
    for path in paths:
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                file = os.path.join(path, name)
                if os.path.isfile(file) and not name.startswith("."):
                    yield from from_file(file)
        else:
            yield from from_file(path)
