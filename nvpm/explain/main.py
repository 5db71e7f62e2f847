# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The command `nvpm explain`."""

import os
import sys
from argparse import Namespace
from typing import Callable, Iterator, List, Optional, Tuple

from ..facts.fact import Fact
from ..options import Parser
from ..read.machine import Machine, clean
from ..show import screen as terminal
from . import as_json, here, inputs, show
from .answer import CODES, NOTHING, Answer
from .judge import judged
from .lines import hosts_of
from .scan import Scan
from .texts_of import NoText, Stream, Unreadable


def joined(words: List[str]) -> Iterator[str]:
    """Yields the words, with --since and its time in one word, because argparse takes a time such
    as -1h for an option."""
    rest = iter(words)
    for word in rest:
        yield f"{word}={next(rest, '')}" if word == "--since" else word


def options_of(machine: Machine, words: List[str]) -> Namespace:
    parser = Parser(
        "explain",
        "Says in at most 12 lines what the cause of the failures in a log is, how sure that is, "
        "which line shows it, and what to do. Reads logs of NCCL, UCX, NVSHMEM, MPI, perftest, "
        "Mooncake, NIXL, libfabric, dkms, modprobe, the operators of Kubernetes and the kernel, in "
        "any mixture. Several files are one case. Nothing leaves this machine.",
        "Exit codes: 0 no line in the log is an error of GPUDirect RDMA, 1 no log can be read, or "
        "all are empty, or a part of one cannot be read and the rest shows nothing, 2 wrong "
        "options, 3 a cause was found, 4 the log has errors whose cause is not known.",
    )
    parser.add_argument(
        "file",
        nargs="*",
        metavar="FILE",
        help="logs, also .gz, .xz, .bz2, .tar and .zip, directories of logs, the archive of nvpm "
        "report, or - for standard input",
    )
    parser.add_argument("--journal", action="store_true", help="the kernel's lines of the journal")
    parser.add_argument("--since", metavar="TIME", help="with --journal: from this time on (-1h)")
    parser.add_argument("--dmesg", action="store_true", help="the kernel's lines since the boot")
    parser.add_argument(
        "--here",
        action="store_true",
        help="the log is of this node, also if it does not contain the node's name",
    )
    parser.add_argument("--all", action="store_true", help="every message that was found, and why")
    parser.add_argument("--json", action="store_true", help="one object for machines")
    parser.add_argument(
        "--redact",
        action="store_true",
        help="take the names of hosts, and addresses, out of the quoted lines; names of users, "
        "directories and jobs stay",
    )
    options = parser.read(machine, list(joined(words)))
    if options.since is not None and not (options.journal and options.since):
        parser.error("--since needs a time, and --journal")
    if not options.file and not (options.journal or options.dmesg):
        if sys.stdin is None or sys.stdin.isatty():
            parser.error("which log? Name files, or - to paste it here, or --journal or --dmesg")
        options.file = ["-"]
    for name in options.file:
        if name != "-" and not os.path.exists(name):
            parser.error(f"there is no {name or 'file with an empty name'}")
    return options


class Logs:
    """All logs that the options name: their names, what was found in them, and whether parts of
    them could not be read."""

    def __init__(self) -> None:
        self.names: List[str] = []
        self.scan = Scan()
        self.cut = False

    def tell(self, reason: Unreadable) -> None:
        """Says that a part of the logs cannot be read."""
        self.cut = self.cut or not isinstance(reason, NoText)
        sys.stderr.write(clean(f"nvpm explain: {reason}") + "\n")

    def read(self, source: Iterator[Tuple[str, Stream]]) -> None:
        """Reads the files of a source. A file that was cut counts as far as it can be read."""
        try:
            for name, stream in source:
                before = self.scan.lines
                try:
                    self.scan.read(name, stream)
                except Unreadable as reason:
                    self.tell(reason)
                    if self.scan.lines == before:
                        continue
                self.names.append(name)
        except Unreadable as reason:
            self.tell(reason)


def read(options: Namespace) -> Logs:
    logs = Logs()
    logs.read(inputs.from_paths(options.file, logs.tell))
    if options.journal:
        since = [f"--since={options.since}"] if options.since else []
        command = ["journalctl", "-k", "-o", "short-iso", "--no-pager", *since]
        logs.read(inputs.from_program(command))
    if options.dmesg:
        logs.read(inputs.from_program(["dmesg"]))
    return logs


def facts_of(machine: Machine, options: Namespace, scan: Scan) -> Optional[List[Fact]]:
    """Returns the facts about this node. Returns None if another node has written the log."""
    from ..facts.status import status_of

    own = options.here or options.journal or options.dmesg
    if own or (
        here.is_here(hosts_of(scan.sources), machine.host) and not is_older(machine, options.file)
    ):
        return status_of(machine).facts
    return None


def is_older(machine: Machine, files: List[str]) -> bool:
    """Returns whether all files were written before this node booted, because the node may have
    been set up differently then."""
    booted = next((line for line in machine.lines("/proc/stat") if line.startswith("btime ")), "")
    written = [inputs.written(name) for name in files if name != "-"]
    return bool(booted and written) and max(written) < int(booted.split()[1])


def redactor(machine: Machine, scan: Scan) -> Callable[[str], str]:
    """Returns a function that takes names and addresses out of a text, also the names of the hosts
    in the log."""
    from ..redact.names import named
    from ..redact.redactor import Redactor

    made = Redactor(machine)
    names = hosts_of(scan.sources)
    made.hosts |= named(names | {name.lower() for name in names})
    return made.text


def empty(names: List[str]) -> str:
    """Returns the subject of the message about empty files."""
    return clean(f"{names[0]} is empty" if len(names) == 1 else f"all {len(names)} files are empty")


def main(machine: Machine, words: List[str]) -> int:
    options = options_of(machine, words)
    logs = read(options)
    scan = logs.scan
    if not logs.names:
        sys.stderr.write("nvpm explain: there is no log that can be read.\n")
        return 1
    if not scan.lines:
        subject = empty(logs.names)
        sys.stderr.write(f"nvpm explain: {subject}. Did the program write its log elsewhere?\n")
        return 1
    verdict = judged(scan)
    facts = facts_of(machine, options, scan) if verdict.causes else None
    if facts is not None:
        verdict = here.compared(verdict, facts)
    answer = Answer(logs.names, scan, verdict, facts)
    quoted: Callable[[str], str] = str
    if options.redact:
        quoted = redactor(machine, scan)
    if options.json:
        print(as_json.as_json(answer, quoted))
    else:
        text = show.Text(answer, terminal.here().width, quoted)
        for line in text.everything() if options.all else text.brief():
            print(line)
    # The part that cannot be read may contain a cause.
    return 1 if logs.cut and answer.kind() == NOTHING else CODES[answer.kind()]
