# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads a log once, with constant memory. Most lines of a log have the form of an earlier line, so
each line is reduced to its shape, and only lines of new shapes, and of shapes that matter, are
looked at closely."""

import re
from typing import Dict, FrozenSet, Iterable, List, NamedTuple, Optional, Set, Tuple

from . import lines as prefixes
from . import long_lines
from .conditions import holds_in_line, is_of_line
from .errors import errors
from .lines import Source
from .log_facts import LogFacts, has_facts
from .model import FINE, FOLLOWS
from .runs import STARTS, Runs
from .table import INDEX, WORDS, Entry
from .texts import pattern

# The shape of a line is the line without these characters, which are those of numbers and
# addresses.
DIGITS = b"0123456789abcdef"
MOST_SHAPES = 20000
MOST_SOURCES = 4096
MOST_HITS = 512
MOST_UNKNOWN = 64
# A value has at most this length.
LONGEST_VALUE = 200
# Equal lines are looked up instead of being read again.
MOST_EQUAL = 4096
# A longer line is read at its beginning and at its end, this number of bytes each.
LONGEST = 4096
# Facts are read from this number of lines with the same shape.
FACTS_OF_A_SHAPE = 16
# NCCL says this once in each process.
RANK = re.compile(r"\brank (\d+) nranks (\d{1,9})")
# After a line of this form, the next line has the value of a fact. Such lines are the output of a
# command, and the limits of a container in the words of docker compose and docker inspect.
ASKED = re.compile(
    rb"(?:\bulimit -l['\"]*|\buname -(?:r|a)['\"]*|\bmemlock:|\"Name\": \"memlock\",)$"
)
# Ray prints equal lines of several processes once.
REPEATED = re.compile(r"\[repeated (\d{1,9})x across cluster\]")
TOKEN = re.compile("[A-Za-z_]+")
BAD_LINE = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|WARN|Error|error|ERR|fatal|failed|Failed|FAILED|failure|Failure"
    r"|cannot|Cannot|Couldn't|unable|Unable|Assertion|aborting|refused|not supported|Xid"
    r"|Unknown symbol|unknown symbol|disagrees about version|exports duplicate symbol|timed out"
    r"|BUG:|Oops|Call Trace|denied|DENIED|Segmentation fault|SIGSEGV)\b"
    r"|[Mm]ismatch|MISMATCH|^\[?[EF]\d{4} |\[E\]|\w+Error\b"
    # Compilers and programs in other languages.
    r"|\b(?:Fehler|Erreur|erreur) ?:|错误|錯誤|エラー|[Ee]rror ?："
)
# Words that look like errors, and say that nothing failed or that only a level was chosen.
NOT_BAD = re.compile(
    r"=(?:WARN|ERROR|FATAL)\b|\b0 (?:failed|failures?|errors?)\b"
    r"|\b(?:failed|[Ff]ailures?|[Ee]rrors?)[=: ]+0\b(?!x)"
)
# Lines about GPUDirect RDMA have these words: names of programs, of drivers and of their devices.
TOPIC = re.compile(
    r"ibv_|mlx[45]|NET/|[Rr][Dd][Mm][Aa]|nvidia|NVRM|peer_?mem|gdr|GDR|\bUCX\b|uct_|ucp_|nvshmem"
    r"|NVSHMEM|NCCL (?:WARN|[Ee]rror|failure)|nccl[A-Z]\w+Error|libfabric|\bfi_|\b(?:EFA|efa)\b"
    r"|NIXL|nixl|Mooncake|mooncake|GPU ?Direct|[Cc]u[Ff]ile|CUFILE|nvfs|NVFS|GDS|infinistore"
    r"|\bucx|libuc[mpst]\b|mscclpp|MSCCLPP|\bUCCL\b|uccl|[Dd]eep_?[Ee][Pp]\b|mvapich|MVAPICH"
    r"|\bib_(?:write|read|send|atomic)_"
    r"|[Ii]nfini[Bb]and|OpenFabrics|openib|verbs|OFED|ofed|\bIB\b|ib_(?:core|uverbs|umem|cm|sa|mad)"
    r"|\b(?:bnxt_re|irdma|erdma|hfi1|ionic_rdma|mana_ib|hns_roce|qedr|rxe)\b"
    r"|[Dd][Mm][Aa]-?_?[Bb][Uu][Ff]|\bHCA\b|\bRoCE\b"
)


def is_bad(text: str) -> bool:
    """Returns whether a line looks like an error."""
    return bool(BAD_LINE.search(NOT_BAD.sub("", text)))


def is_error(text: str) -> bool:
    """Returns whether a line looks like an error that can be about GPUDirect RDMA."""
    return bool(TOPIC.search(text)) and is_bad(text)


class Variant(NamedTuple):
    """A message as it stands in a line: with the errors of the line, and with the conditions about
    the line that hold."""

    entry: Entry
    errors: FrozenSet[str]
    holding: FrozenSet[str]


class Hit:
    """A hit counts the lines that contain the same variant of a message."""

    def __init__(self, place: Tuple[str, int], order: int, text: str) -> None:
        self.place, self.order, self.text = place, order, text
        self.count = 0
        self.sources: Set[Source] = set()
        # The newest run in which the message stands. The value is None if the kernel printed the
        # message.
        self.run: Optional[int] = None

    def add(self, source: Source, text: str = "", run: Optional[int] = None) -> None:
        self.run = run
        repeated = REPEATED.search(text)
        self.count += int(repeated[1]) if repeated else 1
        if len(self.sources) < MOST_SOURCES:
            self.sources.add(source)


class Shape:
    """A shape stores what the first line with this shape has shown."""

    __slots__ = ("entries", "facts", "ranked", "starts", "unknown")

    def __init__(
        self,
        entries: Tuple[Entry, ...],
        facts: int,
        ranked: bool,
        starts: bool,
        unknown: Optional[Hit],
    ) -> None:
        self.entries, self.facts, self.ranked = entries, facts, ranked
        self.starts, self.unknown = starts, unknown

    def matters(self) -> bool:
        return bool(self.entries or self.facts or self.ranked or self.starts or self.unknown)


BORING = Shape((), 0, False, False, None)


def parts(line: bytes) -> Iterable[bytes]:
    """Divides a line. A progress bar ends its states with carriage returns, and a string in JSON
    ends its lines with a backslash and a letter. A long part becomes its beginning and its end."""
    line = line.rstrip()
    if len(line) <= LONGEST and b"\r" not in line and b"\\n" not in line:
        return (line,)
    return [one for part in long_lines.END.split(line) if part for one in ends(part)]


def ends(part: bytes) -> Tuple[bytes, ...]:
    """Returns a part, or its beginning and its end if it is too long."""
    return (part,) if len(part) <= LONGEST else (part[:LONGEST], part[-LONGEST:])


def as_text(message: bytes) -> str:
    """Returns a message as text. A run of blanks becomes one blank, because people who copy a line
    often change its blanks."""
    text = " ".join(message.decode("utf-8", "replace").split())
    return text.replace('\\"', '"') if '\\"' in text else text


class Scan:
    def __init__(self) -> None:
        # Hashes of shapes, because the shapes themselves would fill memory: of whole lines, whose
        # prefixes need not be taken off, and of messages.
        self.whole: Dict[int, Shape] = {}
        self.shapes: Dict[int, Shape] = {}
        self.equal: Dict[str, List[Variant]] = {}
        self.facts = LogFacts()
        self.hits: Dict[Variant, Hit] = {}
        self.unknown: Dict[int, Hit] = {}
        self.sources: Set[Source] = set()
        self.lines = 0
        self.runs = Runs()
        # The last line, if the next line has the value of its fact.
        self.asked = b""

    def read(self, name: str, stream: Iterable[bytes]) -> None:
        """Reads all lines from one file."""
        whole, sources = self.whole, self.sources
        split = prefixes.split
        number, ended = 0, True
        for line in stream:
            if ended:
                number += 1
                self.lines += 1
            # A part of a long line has no line end.
            ended = line.endswith(b"\n")
            for part in parts(line):
                if self.asked:
                    self.facts.read(as_text(self.asked + b" " + part[:LONGEST_VALUE]))
                    self.asked = b""
                key = hash(part.translate(None, DIGITS))
                shape = whole.get(key)
                if shape is BORING:
                    continue
                source, message = split(part)
                if len(sources) < MOST_SOURCES:
                    sources.add(source)
                if shape is None:
                    shape = self.shape_of(message)
                    if len(whole) < MOST_SHAPES:
                        whole[key] = shape
                if shape.facts and ASKED.search(message):
                    self.asked = message
                if shape is not BORING:
                    self.count(shape, (name, number), source, as_text(message), part)

    def shape_of(self, message: bytes) -> Shape:
        """Returns the shape of a message without prefixes. The names of hosts do not change the
        shape."""
        key = hash(message.translate(None, DIGITS))
        shape = self.shapes.get(key)
        if shape is None:
            shape = self.look(as_text(message), key)
            shape = shape if shape.matters() else BORING
            if len(self.shapes) < MOST_SHAPES:
                self.shapes[key] = shape
        return shape

    def look(self, text: str, key: int) -> Shape:
        """Looks at a line whose shape is new, and returns the shape."""
        words = set(TOKEN.findall(text))
        entries: Tuple[Entry, ...] = ()
        for word in words & WORDS:
            entries += INDEX[word]
        facts = FACTS_OF_A_SHAPE if has_facts(text) else 0
        bad = is_error(text)
        unknown = None
        if bad and len(self.unknown) < MOST_UNKNOWN:
            unknown = self.unknown.setdefault(key, Hit(("", 0), self.lines, text))
        # The order of a set changes from run to run, and decides between equal causes of one line.
        ordered = tuple(sorted(dict.fromkeys(entries), key=lambda entry: entry.number))
        starts = bool(STARTS.search(text))
        return Shape(ordered, facts, bool(RANK.search(text)), starts, unknown)

    def count(
        self, shape: Shape, place: Tuple[str, int], source: Source, text: str, line: bytes
    ) -> None:
        """Counts a line whose shape matters. TEXT is the message in LINE."""
        if shape.starts:
            self.runs.start()
        if shape.facts:
            shape.facts -= 1
            self.facts.read(text)
        if shape.ranked:
            self.note_rank(source, text)
        variants = self.known_variants(shape.entries, text) if shape.entries else []
        run = self.runs.of_line(line) if variants else None
        for variant in variants:
            hit = self.hits.get(variant)
            if not hit:
                if len(self.hits) >= MOST_HITS:
                    continue
                hit = self.hits[variant] = Hit(place, self.lines, text)
            hit.add(source, text, run)
        if shape.unknown:
            if not shape.unknown.count:
                shape.unknown.place = place
            # A line that a message explains is not unknown.
            if not variants:
                shape.unknown.add(source)

    def note_rank(self, source: Source, text: str) -> None:
        """Stores the rank that NCCL prints when a process starts. A process has a rank in each
        communicator, and the largest communicator is that of the job."""
        rank, known = RANK.search(text), self.facts.rank_of
        process = (source.host, source.process)
        if rank and source.host and (process in known or len(known) < MOST_SOURCES):
            size = int(rank[2])
            if size > self.facts.size_of.get(process, 0):
                known[process], self.facts.size_of[process] = rank[1], size

    def known_variants(self, entries: Tuple[Entry, ...], text: str) -> List[Variant]:
        """Returns the messages that the line contains, and keeps them for equal lines."""
        variants = self.equal.get(text)
        if variants is None:
            variants = self.variants(entries, text)
            if len(self.equal) < MOST_EQUAL:
                self.equal[text] = variants
        return variants

    def variants(self, entries: Tuple[Entry, ...], text: str) -> List[Variant]:
        """Returns the messages that the line contains. A message within a longer message does not
        count, and a verb of any program counts only if no other message explains the line."""
        found = []
        for entry in entries:
            match = pattern(entry.message.text).search(text)
            if match:
                found.append((entry, match.start(), match.end()))
        if not found:
            return []
        spans = [
            (entry, start, end)
            for entry, start, end in found
            if not any(
                low <= start and end <= high and (low, high) != (start, end) and not other.general
                for other, low, high in found
            )
        ]
        special = [entry for entry, _, _ in spans if not entry.general]
        explained = any(self.speaks(entry, text) for entry in special)
        # The name of a verb in a line that does not fail says nothing.
        explained = explained or not (is_bad(text) or errors(text))
        chosen = special if explained else [entry for entry, _, _ in spans]
        return [self.variant(entry, text) for entry in chosen]

    def speaks(self, entry: Entry, text: str) -> bool:
        """Returns whether a message says something about this line, so far as the line decides."""
        message = entry.message
        if message.kind in (FINE, FOLLOWS):
            return message.kind == FINE
        variant = self.variant(entry, text)
        return any(line_allows(case.when, case.unless, variant) for case in message.cases)

    def variant(self, entry: Entry, text: str) -> Variant:
        conditions = entry.line_conditions()
        found = errors(text) if any(one.startswith("errno=") for one in conditions) else frozenset()
        holding = frozenset(one for one in conditions if holds_in_line(one, found, text))
        return Variant(entry, found, holding)


def line_allows(when: Tuple[str, ...], unless: Tuple[str, ...], variant: Variant) -> bool:
    """Returns whether the conditions about the line hold."""
    return all(one in variant.holding for one in when if is_of_line(one)) and not any(
        one in variant.holding for one in unless
    )
