# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the outputs of `nvpm status --json` and `nvpm selftest --json` of many nodes, in the form
in which tools collect such outputs. clush and pdsh put the name of the node before each line, and
srun --label puts the number of the task there. clush -b and Ansible print a heading before the
output of each node. Other tools write one file for each node. The lines that such a tool prints
about a node are in collectors.py."""

import functools
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, TextIO

from ..read import bounded
from . import collectors
from .collectors import RETURN_CODE
from .names import MOST, NotNames, unfolded, without_domain

# Matches a line that begins with a label, which is the name of a node or the number of a task. A
# line of nvpm's JSON has no label, and begins with a blank, a brace or a quote.
LABELLED = re.compile(r"\s*(\d+|[A-Za-z0-9][\w.-]*): ?(.*)")
# A tool prints the names of the nodes between two lines of hyphens: clush -b, dshbak.
RULE = re.compile("-{5,}$")
GROUP = re.compile(r"([^\s{}]+)(?: \(\d+\))?$")

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

    # An input may have many labels.
    __slots__ = ("found", "label", "lines", "names", "size", "words")

    def __init__(self, label: str, names: List[str]) -> None:
        self.label, self.names = label, names
        self.lines, self.words = [], []  # type: List[str], List[str]
        self.found, self.size = False, 0

    def add(self, line: str) -> Iterator[Node]:
        """Adds a line. Yields the nodes if this line completes a status."""
        if line.endswith(RETURN_CODE):
            # Ansible adds these words to the last line of a command whose exit code is not 0.
            line = line[: -len(RETURN_CODE)]
        if not self.lines and not line.startswith("{"):
            words = line[:LONGEST_KEPT]
            self.words = [*self.words, words][-LAST_WORDS:] if line.strip() else self.words
            return
        self.size = self.size + len(line) if self.lines else len(line)
        if self.size > LONGEST:
            self.lines, self.words = [], [TOO_LONG]
            return
        self.lines.append(line)
        if line != "}" and not (len(self.lines) == 1 and line.endswith("}")):
            return
        # srun --label cuts a long line into several, so the lines are joined without a line end.
        # In JSON, a line end between two words means nothing.
        text = "".join(self.lines)
        said = by_lines(self.lines) or parsed(text)
        if said is None:
            self.words = collectors.message(object_or_none(text)) or self.words
        self.lines = []
        if said is not None:
            self.found = True
            yield from (Node(name_of(name, said), said) for name in self.names)

    def rest(self, reason: str = "") -> Iterator[Node]:
        """Yields the nodes if their lines contained no complete status. Is called after the last
        line. REASON is what the tool said about the node."""
        if self.found or not (self.words or self.lines or reason):
            return
        words = "the status is cut off" if self.lines else " / ".join(self.words) or reason
        yield from (Node(name or "(no name)", None, words) for name in self.names)


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
    and one line for each fact, and several pairs of `ways` on a line. Returns None for JSON in
    another form. Reading such JSON as a whole takes ten times longer."""
    try:
        facts = lines.index('  "facts": [')
        said: Dict[str, object] = {}
        pairs: Optional[List[object]] = None
        for line in lines[1:facts]:
            if line == '  "ways": [':
                pairs = said["ways"] = []
            elif line == "  ],":
                pairs = None
            elif pairs is not None:
                pairs += object_in("[" + line.strip().rstrip(",") + "]")
            else:
                said.update(object_in("{" + line.strip().rstrip(",") + "}"))
        end = lines.index("  ]", facts)
        said["facts"] = [object_in(line.strip().rstrip(",")) for line in lines[facts + 1 : end]]
    except ValueError:
        return None
    return said


def parsed(text: str) -> Optional[Dict[str, object]]:
    """Returns the status or the result of a selftest in TEXT, or None if TEXT contains neither.
    Ansible may have wrapped the text into JSON of its own."""
    said = object_or_none(text)
    if said is None or is_list(said, "facts") or is_list(said, "pairs"):
        return said
    output = said.get("stdout")
    return parsed(output.strip()) if isinstance(output, str) else None


def object_or_none(text: str) -> Optional[Dict[str, object]]:
    """Returns the JSON object at the beginning of TEXT, or None."""
    try:
        said, _ = DECODER.raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return said if isinstance(said, dict) else None


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


class Sorter:
    """Sorts the lines of many nodes. Each line belongs to the label before the line or, without a
    label, to the heading above the line."""

    def __init__(self, label: str) -> None:
        self.label = self.current = label
        self.by_label: Dict[str, Collected] = {}
        self.reports = collectors.Reports()
        self.names: Set[str] = set()
        self.left = MOST
        # A heading of clush -b is complete after its second rule.
        self.ruled, self.heading = False, ""
        # The label of the line before, and the lines with this label.
        self.prefix, self.collected = "", Collected("", [""])

    def of(self, key: str) -> Collected:
        """Returns the lines of a label or a heading. An input has at most MOST of them, and the
        lines of any other are passed over."""
        if key not in self.by_label:
            names = self.unfolded(key) or [key]
            if len(self.by_label) >= MOST:
                return Collected(key, [])
            self.by_label[key] = Collected(key, names)
        return self.by_label[key]

    def unfolded(self, key: str) -> List[str]:
        """Returns the names of a heading, or no names for a label. All headings together have at
        most MOST names, because a node can print a heading, too."""
        try:
            names = unfolded(key) if self.current == key else []
        except NotNames:
            return []
        self.left -= len(names)
        return names if self.left >= 0 else []

    def nodes(self, line: str) -> Iterator[Node]:
        """Yields the nodes whose status is complete after this line."""
        text = line
        # Most lines have the same label as the line before, and comparing this label is faster than
        # the patterns.
        if self.prefix and line.startswith(self.prefix):
            text = line[len(self.prefix) :]
        elif self.is_foreign(line):
            return
        else:
            text = self.sort(line)
        for node in self.collected.add(text):
            self.names.add(node.name)
            yield node

    def is_foreign(self, line: str) -> bool:
        """Returns whether a tool, and no node, has printed a line. Keeps the words of such a
        line."""
        ruled, self.ruled = self.ruled, False
        if RULE.match(line):
            self.prefix, self.ruled = "", not self.heading
            if self.heading:
                self.current, self.heading = self.heading, ""
            return True
        found = GROUP.match(line) if ruled else None
        if found:
            self.heading = found[1]
            return True
        self.heading = ""
        if self.reports.add(line, self.current):
            self.prefix = ""
            if not collectors.is_heading(self.current):
                self.current = self.label
            return True
        return False

    def sort(self, line: str) -> str:
        """Selects the node that a line belongs to. Returns the line without its label."""
        key, text, self.prefix = self.current, line, ""
        ansible = collectors.ANSIBLE.match(line)
        if ansible:
            self.current = key = ansible[1]
            self.collected = self.of(key)
            return ansible[2]
        # Below a heading, a line such as "bash: nvpm: command not found" has no label.
        labelled = LABELLED.match(line) if self.current == self.label else None
        if labelled and not line.startswith(("{", "}")):
            key, text = labelled[1], labelled[2]
            prefix = line[: len(line) - len(text)]
            self.prefix = prefix if prefix.endswith(": ") else ""
        self.collected = self.of(key)
        return text

    def rest(self) -> Iterator[Node]:
        """Yields the nodes that have printed no status, after the last line."""
        labels = self.by_label
        # A message of a login looks like a label and a text. A status without a label comes from a
        # single node, so such a text does not come from another node.
        if self.label in labels and labels[self.label].found:
            return
        for key, collected in labels.items():
            # A line without a label is no node if other lines have labels.
            if key == self.label == "" and (len(labels) > 1 or self.reports.by_node):
                continue
            # srun knows the name of the node that its label numbers.
            name = self.reports.tasks.get(key.strip(), key)
            if name != key:
                collected.names = [name]
            if key not in collectors.TOOLS:
                for node in collected.rest(self.reports.by_node.get(name, "")):
                    self.names.add(node.name)
                    yield node
        there = self.names | {without_domain(name) for name in self.names}
        for name, words in self.reports.by_node.items():
            if name not in there and without_domain(name) not in there:
                yield Node(name[:LONGEST_NAME], None, words)


def from_lines(lines: Iterable[str], label: str = "") -> Iterator[Node]:
    """Yields the nodes whose output is in LINES. LABEL names the node of a line without a label."""
    sorter = Sorter(label)
    for line in lines:
        yield from sorter.nodes(line.rstrip("\r\n"))
    yield from sorter.rest()


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
