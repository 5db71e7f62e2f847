# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests how `nvpm explain` orders causes, and what it says of a log as a whole. The messages here
are not those of the table, so that each of several equal things can come first."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from nvpm.explain import here
from nvpm.explain.answer import nodes_of, ranks_of, who
from nvpm.explain.judge import Found, Proof, Verdict, ranked
from nvpm.explain.lines import Source
from nvpm.explain.log_facts import LogFacts
from nvpm.explain.main import is_older
from nvpm.explain.model import FITS, NAMED, POSSIBLE, Case, Cause
from nvpm.facts.fact import BAD, GOOD, Fact

CAUSES = [Cause(f"cause {number}", "do") for number in range(3)]


def proof(order: int, sure: int = NAMED, number: int = 0, cases: int = 1, when: Any = ()) -> Proof:
    """Returns a proof from the line ORDER, by the message NUMBER, which has so many cases."""
    message = SimpleNamespace(cases=range(cases), do="")
    variant: Any = SimpleNamespace(entry=SimpleNamespace(number=number, message=message))
    hit: Any = SimpleNamespace(order=order)
    return Proof(variant, hit, Case(CAUSES[0], when=when), sure)


def found(cause: int, *proofs: Proof) -> Found:
    one = Found(CAUSES[cause])
    one.proofs += proofs
    return one


def order(*causes: Found) -> list[str]:
    return [one.cause.says[-1] for one in ranked(causes)]


def test_equal_causes() -> None:
    """The earliest line decides between equal causes, whichever was found first."""
    assert order(found(0, proof(9)), found(1, proof(3)), found(2, proof(5))) == ["1", "2", "0"]
    assert order(found(0, proof(9), proof(4)), found(1, proof(8), proof(5))) == ["0", "1"]


def test_surer_causes() -> None:
    assert order(found(0, proof(1, FITS)), found(1, proof(9, NAMED))) == ["1", "0"]
    assert order(found(0, proof(1, POSSIBLE)), found(1, proof(9, FITS))) == ["1", "0"]


def test_as_likely() -> None:
    """A cause is as likely as the first one if it is as sure and has the same score. Further
    messages raise the score of a less sure cause, but do not make it as sure."""
    sure, other = found(0, proof(1)), found(1, proof(2))
    less = found(2, *(proof(9 + number, FITS, number=number) for number in range(1, 4)))
    assert sure.score() == less.score() and sure.sure() > less.sure()
    verdict = Verdict(ranked([less, sure, other]), [], [])
    assert verdict.equals() == [sure, other]


def test_several_messages() -> None:
    """A second message makes a cause surer, but the same message in another line does not. More
    than two further messages do not count."""
    twice = [proof(9, number=1), proof(10, number=1)]
    assert order(found(0, proof(5)), found(1, *twice)) == ["0", "1"]
    two = [proof(9, number=1), proof(10, number=2)]
    assert order(found(0, proof(5)), found(1, *two)) == ["1", "0"]
    assert found(0, proof(5)).score() == NAMED
    assert [
        found(0, *[proof(1, number=at) for at in range(many)]).score() for many in (2, 3, 4)
    ] == [
        NAMED + 0.5,
        NAMED + 1,
        NAMED + 1,
    ]
    assert found(0, proof(5, when=("gpu",))).score() == NAMED + 0.5
    assert found(0, proof(5, when=("errno=ENOMEM",))).score() == NAMED


def test_best_proof() -> None:
    """The surest proof is the best. Then the earliest line counts, and then the message with fewer
    causes."""
    late, early = proof(9, NAMED), proof(3, NAMED)
    assert found(0, late, proof(1, FITS), early).best() is early
    many, few = proof(3, NAMED, 1, cases=4), proof(3, NAMED, 2, cases=2)
    assert found(0, many, few).best() is few and found(0, few, many).best() is few


@pytest.mark.parametrize(
    ("causes", "is_certain"),
    [
        ([found(0, proof(1, NAMED))], True),
        ([found(0, proof(1, FITS))], False),
        ([found(0, proof(1, NAMED)), found(1, proof(2, NAMED))], False),
        # The first cause has a score that is higher by 1, or by less.
        ([found(0, *[proof(1, NAMED, at) for at in range(3)]), found(1, proof(2, NAMED))], True),
        ([found(0, *[proof(1, NAMED, at) for at in range(2)]), found(1, proof(2, NAMED))], False),
        ([found(0, proof(1, NAMED)), found(1, proof(2, FITS))], True),
    ],
)
def test_certain(causes: list[Found], is_certain: bool) -> None:
    assert Verdict(ranked(causes), [], []).certain() == is_certain


def test_largest_numbers() -> None:
    """A log may name the number of nodes or of ranks several times, and may have lines of more or
    of fewer nodes or ranks."""
    facts = LogFacts()
    for line in ("nnodes=2", "nnodes=4", "nnodes=3", "nranks 8", "nranks 16", "nranks 2"):
        facts.read(line)
    assert (facts.nodes, facts.ranks) == (4, 16)
    few = {Source("a", "", "0"), Source("b", "", "1")}
    many = {Source(f"n{at}", "", str(at)) for at in range(20)}
    assert (nodes_of(facts, few), ranks_of(facts, few)) == (4, 16)
    assert (nodes_of(facts, many), ranks_of(facts, many)) == (20, 20)


def test_who() -> None:
    sources = {Source(f"n{at}", "", str(at)) for at in range(12)}
    some = {one for one in sources if one.rank in ("2", "10", "9")}
    words = who(some, sources, LogFacts())
    assert words == "only on ranks 2,9,10 of 12; only on n[2,9,10], and not on 9 other nodes"
    assert who(sources, sources, LogFacts()) == "on all 12 nodes"
    one = {Source("n1", "", "1")}
    assert who(one, sources, LogFacts()).startswith(
        "only on rank 1 of 12; only on n1, and not on 11"
    )


def test_line_of_a_cause() -> None:
    """If several lines of the status are about a cause, one that confirms it is shown."""
    cause = Cause("x", "do", status="GPUs: `BAR1`")
    facts = [
        Fact("GPU 0000:03:00.0", "BAR1", GOOD, "32 GiB"),
        Fact("GPU 0000:05:00.0", "BAR1", BAD, "256 MiB", "x"),
    ]
    for several in (facts, facts[::-1]):
        line, confirms = here.word(Found(cause), several)
        assert (line, confirms) == ("GPU 0000:05:00.0, BAR1: 256 MiB", True)
    assert here.word(Found(cause), facts[:1])[1] is False


def test_older_logs(tmp_path: Any) -> None:
    """The logs show an earlier state of the node only if all files were written before the node
    booted."""

    old, at_boot, new = (tmp_path / name for name in ("old", "at_boot", "new"))
    for file, time in ((old, 1000), (at_boot, 2000), (new, 3000)):
        file.write_text("x\n")
        os.utime(file, (time, time))
    machine: Any = SimpleNamespace(lines=lambda _: ["cpu 1 2", "btime 2000"])
    names = {file: str(file) for file in (old, at_boot, new)}
    assert is_older(machine, [names[old]])
    assert not is_older(machine, [names[at_boot]])
    assert not is_older(machine, [names[new], names[old]])
    assert not is_older(machine, [names[old], names[new]])
    assert not is_older(machine, ["-"])
