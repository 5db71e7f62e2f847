# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A case of the table of `nvpm explain` may be certain or probable only if a log whose cause was
written down independently of the table proves it, so a wrong cause in such a case is noticed."""

import random

import proofs
import pytest
from logged import DISPUTED, Log, answered, logs, may_be_sure, planted, proven_by, wrong

from nvpm.explain.answer import Answer
from nvpm.explain.messages import ours
from nvpm.explain.model import Cause
from nvpm.explain.proven import PROVEN
from nvpm.explain.table import CAUSES, ENTRIES, Entry

SEED, PLANTED, NOTICED = 64, 200, 180
Pair = tuple[Entry, int]


@pytest.fixture(scope="module")
def answers() -> list[tuple[Log, Answer]]:
    return [(log, answered(log.text())) for log in logs()]


def sure_cases() -> list[Pair]:
    """Returns the cases of messages of other programs that may be certain or probable. test_own.py
    is about nv_peer_mem's own messages."""
    return [
        (entry, place)
        for entry in ENTRIES
        for place, case in enumerate(entry.message.cases)
        if may_be_sure(entry, case) and entry.message not in ours.SECTION.messages
    ]


def test_each_log_names_its_source(answers: list[tuple[Log, Answer]]) -> None:
    """A log of an independent writer says whether the writer took it from a thread."""
    for log, _ in answers:
        sources = [one for one in log.expected if one.startswith("from ")]
        assert len(sources) == 1, f"{log.file}.txt: {log.title} needs one line => from SOURCE"


def test_titles_are_unique(answers: list[tuple[Log, Answer]]) -> None:
    titles = [(log.file, log.title) for log, _ in answers]
    assert len(titles) == len(set(titles))


def test_each_sure_case_is_proven(answers: list[tuple[Log, Answer]]) -> None:
    found = {pair for log, answer in answers for pair in proven_by(log, answer)}
    missing = [
        (entry.message.text, entry.message.cases[place].when)
        for entry, place in sure_cases()
        if (entry, place) not in found
    ]
    assert not missing, f"run tests/nvpm/proofs.py: {missing}"


def test_proven_cases_exist() -> None:
    cases = {entry.message.text: len(entry.message.cases) for entry in ENTRIES}
    assert proofs.proven() == PROVEN, "run tests/nvpm/proofs.py"
    for text, places in PROVEN.items():
        assert max(places) < cases[text], text


def test_no_sure_answer_is_disputed(answers: list[tuple[Log, Answer]]) -> None:
    disputed = [(log, answer) for log, answer in answers if log.file == DISPUTED]
    assert len(disputed) > 50
    for log, answer in disputed:
        said = wrong(log, answer)
        assert not said, (log.title, said)


def noticed(pair: Pair, cause: Cause, answers: list[tuple[Log, Answer]]) -> bool:
    """Returns whether a log fails if the case of a message has another cause."""
    entry, place = pair
    return any(
        wrong(log, planted(answer, entry, place, cause))
        for log, answer in answers
        if any(one.entry == entry for one in answer.scan.hits)
    )


def test_wrong_causes_are_noticed(answers: list[tuple[Log, Answer]]) -> None:
    print(f"seed {SEED}")
    chance = random.Random(SEED)
    missed = []
    for pair in chance.sample(sure_cases(), PLANTED):
        entry, place = pair
        own = {case.cause for case in entry.message.cases}
        cause = chance.choice([one for one in CAUSES if one not in own])
        if not noticed(pair, cause, answers):
            missed.append((entry.message.text, entry.message.cases[place].when, CAUSES[cause]))
    assert PLANTED - len(missed) >= NOTICED, missed
