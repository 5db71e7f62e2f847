# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the logs in tests/nvpm/logs, whose causes were written down independently of the table of
`nvpm explain`, and explains them. tests/nvpm/logs/README.md describes their form."""

import copy
import io
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from nvpm.explain import causes as c
from nvpm.explain import here, show
from nvpm.explain.answer import CODES, Answer
from nvpm.explain.judge import judged
from nvpm.explain.model import POSSIBLE, Case, Cause
from nvpm.explain.scan import Scan
from nvpm.explain.table import NAMES, Entry
from nvpm.facts.fact import Fact

LOGS = Path(__file__).parent / "logs"
# The writer of these logs names another cause than the table does.
DISPUTED = "disputed"
# Causes that can stand in any log, whatever NIC or GPU the log names.
NEUTRAL = (c.RDMA_OFF, c.DISTANCE, c.DESCRIPTORS)


class Log(NamedTuple):
    """A log with the expectations that its writer has of an answer."""

    file: str
    title: str
    lines: list[str]
    expected: list[str]

    def text(self) -> bytes:
        return "\n".join(self.lines).encode()

    def cause(self) -> str:
        """Returns the key of the cause that the writer names, or an empty text."""
        word = self.expected[0].partition(" ")[0]
        return "" if word in CODES or word in ("says", "silent", "also", "from") else word


def logs() -> Iterator[Log]:
    """Yields each log of each file. An empty line ends a log."""
    for file in sorted(LOGS.glob("*.txt")):
        for block in file.read_text(encoding="utf-8").split("\n\n"):
            # A comment stands before a title. A line of a log can begin with the same sign.
            lines = list(itertools.dropwhile(lambda line: line[:1] in ("", "#"), block.split("\n")))
            lines = [line for line in lines if line]
            if lines:
                yield of_block(file.stem, lines)


def of_block(file: str, lines: list[str]) -> Log:
    title, rest = lines[0], lines[1:]
    is_title = title.startswith("[") and title.endswith("]")
    assert is_title, (
        f"{file}.txt: a block begins with [TITLE], and a log has no empty line: {title}"
    )
    expected = [line[3:] for line in rest if line.startswith("=> ")]
    shown = [line for line in rest if not line.startswith("=> ")]
    assert expected and shown, f"{file}.txt: {title} needs lines of the log, and then lines with =>"
    return Log(file, title[1:-1], shown, expected)


def answered(*texts: bytes, facts: list[Fact] | None = None) -> Answer:
    """Returns the answer about logs. FACTS are those of this node, if the logs are of this node."""
    scan = Scan()
    for number, text in enumerate(texts):
        scan.read(f"file{number}", io.BytesIO(text))
    verdict = judged(scan)
    if facts is not None:
        verdict = here.compared(verdict, facts)
    return Answer([f"file{number}" for number in range(len(texts))], scan, verdict, facts)


def wrong(log: Log, answer: Answer) -> str:
    """Returns the first expectation that an answer does not meet, or an empty text."""
    causes = [NAMES[one.cause] for one in answer.verdict.causes]
    text = " ".join(" ".join(show.Text(answer).brief()).split())
    for one in log.expected:
        word, _, rest = one.partition(" ")
        if word == "from":
            fits = bool(rest)
        elif word == "says":
            fits = rest in text
        elif word == "silent":
            fits = rest not in text
        elif word == "also":
            fits = rest in causes[1:]
        elif word in CODES:
            fits = answer.kind() == word
        elif log.file == DISPUTED:
            # The table need not be sure about a disputed log.
            fits = causes[:1] == [word] or not causes or answer.kind() == "perhaps"
        else:
            assert word in NAMES.values(), f"{log.file}.txt: {log.title}: there is no cause {word}"
            # If another cause is as likely, the first cause is no answer, unless the log says so.
            alone = bool(rest) or (bool(causes) and len(answer.verdict.equals()) == 1)
            fits = causes[:1] == [word] and alone and rest in ("", sureness(answer))
        if not fits:
            return f"=> {one}\nanswer: {causes}\n{text}"
    return ""


def sureness(answer: Answer) -> str:
    """Returns the word that an answer uses for its first cause."""
    if answer.kind() == "perhaps":
        return "possible"
    return "certain" if answer.verdict.certain() else "probable"


def planted(answer: Answer, entry: Entry, place: int, cause: Cause) -> Answer:
    """Returns the answer that nvpm would give if CAUSE were the cause of the case at PLACE of a
    message."""
    cases = list(entry.message.cases)
    cases[place] = cases[place]._replace(cause=cause)
    changed = entry._replace(message=entry.message._replace(cases=tuple(cases)))
    scan = copy.copy(answer.scan)
    scan.hits = {
        one._replace(entry=changed) if one.entry == entry else one: hit
        for one, hit in answer.scan.hits.items()
    }
    return answer._replace(scan=scan, verdict=judged(scan))


def proven_by(log: Log, answer: Answer) -> list[tuple[Entry, int]]:
    """Returns the cases that a log proves, each with its message and its place. If such a case had
    another cause, the answer would not have the cause that the writer expects."""
    causes = answer.verdict.causes
    if log.file == DISPUTED or not causes or NAMES[causes[0].cause] != log.cause():
        return []
    other = next(one for one in NEUTRAL if one not in {found.cause for found in causes})
    found = {
        (proof.variant.entry, proof.variant.entry.message.cases.index(proof.case))
        for proof in causes[0].proofs
        if may_be_sure(proof.variant.entry, proof.case)
        and proof.case in proof.variant.entry.message.cases
    }
    return [
        (entry, place) for entry, place in found if wrong(log, planted(answer, entry, place, other))
    ]


def contradicted_by(log: Log, answer: Answer) -> list[tuple[Entry, int]]:
    """Returns the cases by which the answer is sure of another cause than the writer of the log."""
    causes = answer.verdict.causes
    if log.file != DISPUTED or not causes or NAMES[causes[0].cause] == log.cause():
        return []
    return [
        (proof.variant.entry, proof.variant.entry.message.cases.index(proof.case))
        for proof in causes[0].proofs
        if may_be_sure(proof.variant.entry, proof.case)
    ]


def may_be_sure(entry: Entry, case: Case) -> bool:
    """Returns whether an answer by this case may be certain or probable."""
    return entry.message.sure_of(case) > POSSIBLE
