# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads what `nvpm status --json` printed on many nodes, as the tools that collect such output
deliver it: clush and pdsh with the node before each line, srun --label with the number of the task,
clush -b and Ansible with a heading before each node, or one file for each node."""

import functools
import json
import os
import re
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional

# The node before each line. The lines of nvpm's JSON begin with blanks, braces or quotes.
LABELLED = re.compile(r"\s*(\d+|[A-Za-z0-9][\w.-]*): ?(.*)")
# node1 | CHANGED | rc=0 >>   and   node1 | FAILED! => {
ANSIBLE = re.compile(r"(\S+) \| [A-Z]+!?(?: \| rc=-?\d+)? (?:>>|=>) ?(.*)")
# Between two lines of hyphens clush -b names the nodes.
RULE = re.compile("-{5,}$")
GROUP = re.compile(r"(\S+)(?: \(\d+\))?$")
# Lines of Ansible about a command whose exit code is not 0.
NOISE = re.compile(r"\[(ERROR|WARNING|DEPRECATION WARNING)\]: |Origin: <")
# The last line of nvpm's JSON; Ansible adds words to it.
END = re.compile(r"\}(?:non-zero return code)?$")

# Words that are kept of a node without a status.
LAST_WORDS = 3


class Node(NamedTuple):
    """A node's status, or its last words if it gave no status."""

    name: str
    status: Optional[Dict[str, object]]
    words: str = ""


class Collected:
    """The lines of one label, until they are a whole status."""

    def __init__(self, label: str) -> None:
        self.label, self.lines, self.words = label, [], []  # type: str, List[str], List[str]
        self.found = False

    def add(self, line: str) -> Optional[Node]:
        """Adds a line. Returns the node when the line ends a status."""
        if not self.lines and not line.startswith("{"):
            self.words = [*self.words, line][-LAST_WORDS:] if line.strip() else self.words
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
        """Returns the node without a status, after all lines."""
        if self.found or not (self.words or self.lines):
            return None
        words = "the status is cut off" if self.lines else " / ".join(self.words)
        return Node(self.label or "(no name)", None, words)


# Most lines of a status are lines of other nodes also.
@functools.lru_cache(maxsize=1 << 16)
def line_of(line: str) -> Any:
    return json.loads(line)


def by_lines(lines: List[str]) -> Optional[Dict[str, object]]:
    """Returns the status in LINES as nvpm prints them: a line for each member and for each fact.
    None for JSON of another form, which takes ten times longer to read."""
    try:
        facts = lines.index('  "facts": [')
        said: Dict[str, object] = {}
        for line in lines[1:facts]:
            said.update(line_of("{" + line.strip().rstrip(",") + "}"))
        end = lines.index("  ]", facts)
        said["facts"] = [line_of(line.strip().rstrip(",")) for line in lines[facts + 1 : end]]
    except ValueError:
        return None
    return said


def parsed(text: str) -> Optional[Dict[str, object]]:
    """Returns the status in TEXT; None if there is none. Ansible may wrap it into its own JSON."""
    try:
        said, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    if isinstance(said, dict) and isinstance(said.get("stdout"), str) and "facts" not in said:
        return parsed(said["stdout"].strip())
    return said if isinstance(said, dict) and "facts" in said else None


def name_of(label: str, said: Dict[str, object]) -> str:
    """Returns the label, unless it only numbers the nodes: two nodes may think the same of their
    own name."""
    return label if label and not label.isdigit() else str(said.get("host") or label)


def from_lines(lines: Iterable[str], label: str = "") -> Iterator[Node]:
    """Yields the nodes of one stream."""
    by_label: Dict[str, Collected] = {}
    heading, current = False, label
    prefix, collected = "", Collected("")
    for line in lines:
        line = line.rstrip("\r\n")
        text = line
        # Mostly a line belongs to the same node as the line before, which takes less time to see.
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
    yield from filter(None, (collected.rest() for collected in by_label.values()))


def from_file(path: str) -> Iterator[Node]:
    """Yields the nodes of a file, which is named after its node if it has one status only."""
    with open(path, encoding="utf-8", errors="surrogateescape") as file:
        found = list(from_lines(file))
    stem = os.path.basename(path).split(".json")[0].split(".txt")[0]
    if not any(node.status for node in found):
        # A message may look like a node and its words.
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            words = file.read(1000).split("\n")
        found = [Node(stem, None, words[0] or "an empty file")]
    yield from found


def from_paths(paths: List[str]) -> Iterator[Node]:
    """Yields the nodes of files, and of all files in directories."""
    for path in paths:
        if os.path.isdir(path):
            for name in sorted(os.listdir(path)):
                file = os.path.join(path, name)
                if os.path.isfile(file) and not name.startswith("."):
                    yield from from_file(file)
        else:
            yield from from_file(path)
