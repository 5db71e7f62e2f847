# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the lines that a tool prints about nodes, between the lines of the nodes themselves. Such
lines name nodes that printed nothing: pdsh and clush print a line for each exit code that is not 0,
and srun also tells which task ran on which node."""

import re
from typing import Dict, List, Optional

from .names import MOST, NotNames, unfolded

# Programs that print messages of their own with their name as the label.
TOOLS = ("srun", "pdsh", "clush", "slurmstepd")

# Ansible adds these words to the output of a command whose exit code is not 0.
RETURN_CODE = "non-zero return code"

# Matches headings of Ansible, such as `node1 | CHANGED | rc=0 >>` and `node1 | FAILED! => {`.
ANSIBLE = re.compile(r"(\S+) \| [A-Z]+!?(?: \| rc=-?\d+)? (?:>>|=>) ?(.*)")
# Lines of a tool that are about no node, or repeat another line. pdsh prints such lines when it
# ends a command that takes too long.
NOISE = re.compile(
    r"\[(ERROR|WARNING|DEPRECATION WARNING)\]: |Origin: <|\{'action': "
    r"|sending (SIGTERM|signal) .*\b(to|ssh|pid)\b"
)
# Lines of a tool about nodes. dshbak takes the label of pdsh's own lines for a node.
ABOUT = (
    re.compile(r"pdsh@[^:\s]+: (?P<nodes>\S+): (?P<words>.*)"),
    re.compile(r"clush: (?P<nodes>\S+)(?: \(\d+\))?: (?P<words>.*)"),
    re.compile(r"srun: error: (?P<nodes>\S+): tasks? (?P<tasks>[0-9,-]+): (?P<words>.*)"),
    re.compile(r"srun: error: (?P<words>Node failure) on (?P<nodes>\S+)$"),
    re.compile(r"srun: error: .* failed on node (?P<nodes>\S+): (?P<words>.*)"),
)
OF_PDSH = re.compile(r"pdsh@[^:\s]+$")
BELOW_PDSH = re.compile(r"(?P<nodes>\S+): (?P<words>.*)")
# The greatest number of characters of a line that can be a tool's.
LONGEST = 2000


def is_heading(name: str) -> bool:
    """Returns whether dshbak has made a heading of pdsh's own label."""
    return bool(OF_PDSH.match(name))


class Reports:
    """The words of a tool about nodes, in `by_node`. `tasks` has the name of the node for each
    number that srun prints."""

    def __init__(self) -> None:
        self.by_node: Dict[str, str] = {}
        self.tasks: Dict[str, str] = {}

    def add(self, line: str, heading: str) -> bool:
        """Returns whether a tool has printed LINE, and keeps the words of such a line. HEADING is
        the heading above the line."""
        # Nearly all lines belong to a status.
        if len(line) > LONGEST or (line[:1] in ("{", "}", " ", "") and line[:2] != "{'"):
            return False
        if NOISE.match(line):
            return True
        patterns = (BELOW_PDSH,) if is_heading(heading) else ABOUT
        found = next(filter(None, (pattern.match(line) for pattern in patterns)), None)
        if found:
            self.keep(found.groupdict())
        return bool(found) or line.startswith("pdsh@")

    def keep(self, found: Dict[str, str]) -> None:
        try:
            nodes = unfolded(found["nodes"])
            tasks = unfolded(f"[{found['tasks']}]") if found.get("tasks") else []
        except NotNames:
            return
        if len(self.by_node) + len(nodes) > MOST:
            return
        for node in nodes:
            self.by_node.setdefault(node, found["words"])
        # The tasks of a node have consecutive numbers, and each node has as many tasks.
        share = max(1, len(tasks) // max(1, len(nodes)))
        for at, task in enumerate(tasks[: share * len(nodes)]):
            self.tasks[task] = nodes[at // share]


def message(said: Optional[Dict[str, object]]) -> List[str]:
    """Returns the words in an object with which Ansible reports a failure."""
    for key in ("stderr", "stdout", "msg"):
        words = (said or {}).get(key)
        if isinstance(words, str) and words.strip():
            return [line[:LONGEST] for line in words.strip().split("\n")[-3:]]
    return []
