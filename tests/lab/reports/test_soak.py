# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests with made-up guests that a soak goes on where it was cut off, and forgets no round."""

import json
import os
import tempfile
from types import SimpleNamespace
from typing import Any

# The cache is imported after the variable is set.
os.environ["LAB_CACHE"] = tempfile.mkdtemp()
os.environ.pop("LAB_THREADS", None)

from layers.cache import CACHE, Wrong, locked
from reports import soaking
from reports.soak_report import HAPPENED, KINDS, page, report, total
from reports.soaking import Record, Soak, SoakRun
from run.jobs import Job

RARE, MANY = KINDS
ROUND = RARE.round

# A guest's figures of a round.
FIGURES = [f"{name}=1" for name in HAPPENED if name != "registrations"]
FIGURES += [f"registrations={ROUND + 1}", "kernel=7.3", "in_use=2000", "free=900"]
FIGURES += ["in_use_at_first=1000", "free_at_first=1000"]

MODULE, GUEST = "abc", "guest"


def soak(goal: int = 4 * ROUND) -> Soak:
    """Returns a run that reads the record of earlier runs. GOAL is for each device."""
    return Soak(MODULE, RARE, goal)


def one_round(run: Soak, guest: str = GUEST) -> str:
    """Runs one round, which passes. Returns the seed of the round."""
    seed = run.next_round(guest, "rxe", "multi").split()[0]
    assert run.round_ended(guest, seed, *FIGURES) == "noted"
    return seed


def begin_anew() -> None:
    Record(MODULE).path.unlink(missing_ok=True)


def rounds_are_not_run_twice() -> None:
    run = soak()
    first, other = run.next_round("a", "rxe", "multi"), run.next_round("b", "mlx5", "multi")
    assert first != other
    run.round_ended("a", first.split()[0], *FIGURES)
    # The round of b was cut off: only that round is run again.
    again = soak()
    assert total(again.over) == ROUND + 1 and again.next_round("a", "rxe", "multi") == other


def it_is_enough_at_the_goal() -> None:
    run = soak(2 * ROUND)
    one_round(run)
    run.next_round("a", "rxe", "multi")
    assert run.next_round("b", "rxe", "multi") == "enough"
    # The other device has a goal of its own.
    assert run.next_round("b", "mlx5", "multi") != "enough"
    run.round_ended("a", str(run.under_way["a"]["seed"]), *FIGURES)
    again = soak(2 * ROUND)
    assert again.next_round("a", "rxe", "multi") == "enough" and again.missing() == ["mlx5"]


def what_failed_is_noted_at_once_and_for_good() -> None:
    run = soak()
    seed = run.next_round(GUEST, "rxe", "multi").split()[0]
    failed: Any = SimpleNamespace(name="soak-1", failures=["a leak"], checks=1)
    guests = SoakRun(run, {GUEST: failed})
    guests.running.append(failed)
    guests.over(failed, passed=False)
    again = soak()
    assert one_round(again) == seed
    text = report(MODULE, again.over)
    assert f"seed {seed}, rxe, multi" in text and "a leak" in text
    # One device has a good round and a failed one, and no other row of the table has any.
    assert "| 100,000 | 10,001 | 89,999 | 1 | 1 | 1 | 7.3 |" in text
    assert "| 100,000 | 0 | 100,000 | 0 | 0 | 0 |  |" in text
    assert "| 10,000,000 | 0 | 10,000,000 | 0 | 0 | 0 |  |" in text
    again.record.path.write_text(json.dumps({**again.over[0], "why": "a mistake"}) + "\n", "utf-8")
    assert "Why: a mistake" in report(MODULE, [*again.over[1:], *soak().over])
    assert total(again.over) == ROUND + 1


def what_was_cut_off_has_not_failed() -> None:
    run = soak()
    run.next_round(GUEST, "rxe", "multi")
    well: Any = SimpleNamespace(failures=[])
    run.note_failed(well, GUEST)
    assert not soak().over


def guests_of(kind: type[Job]) -> list[Job]:
    """Returns the three lines of jobs.md."""
    lines: dict[str, tuple[str, list[str]]] = {
        "soak": ("debug", []),
        "soak-mlx5": ("debug", ["mlx5"]),
        "soak-many": ("stock", []),
    }
    return [kind(name, "soak", "guest", *line, ["soak"], "") for name, line in lines.items()]


def a_guest_ends_and_the_other_device_is_next() -> None:
    run = soak(100 * ROUND)
    for _ in range(soaking.ROUNDS_OF_A_GUEST):
        one_round(run)
    assert run.next_round(GUEST, "rxe", "multi") == "enough"
    assert run.next_round("other", "mlx5", "multi") != "enough"
    jobs = guests_of(Job)
    os.environ["LAB_JOBS"] = "2"
    (first,) = soaking.next_guests(jobs, run).values()
    assert soaking.device_of(first) == "mlx5" and first.options.threads == "multi"
    assert first.command_for("soak") == "job soak-mlx5"
    # The record of an earlier run counts, too.
    os.environ["LAB_JOBS"] = "4"
    both = soaking.next_guests(jobs, soak(100 * ROUND)).values()
    assert [soaking.device_of(job) for job in both] == ["mlx5", "rxe"]


class Made(Job):
    """A guest that runs all rounds that it gets. With GIVES_UP, the guest fails instead."""

    gives_up = False

    def run(self) -> bool:
        while (said := self.answers["next_round"]()) != "enough":
            if self.gives_up:
                self.failures = ["a leak"]
                return False
            self.answers["round_ended"](said.split()[0], *FIGURES)
        return True


def guests_follow_until_the_goal_or_a_failure() -> None:
    os.environ["LAB_JOBS"] = "1"
    jobs = guests_of(Made)
    # A round has one registration more than ROUND, so 15 rounds on each device are 4 guests.
    assert soaking.run(jobs, MODULE, [(RARE, 15 * ROUND)]) == 0
    over = Record(MODULE).rounds()
    devices = [one["device"] for one in over]
    assert devices == ["rxe"] * 10 + ["mlx5"] * 10 + ["rxe"] * 5 + ["mlx5"] * 5
    Made.gives_up = True
    assert soaking.run(jobs, MODULE, [(RARE, 50 * ROUND)]) == 1
    assert "failed" in Record(MODULE).rounds()[-1]
    Made.gives_up = False


def kinds_take_turns_and_do_not_share_rounds() -> None:
    os.environ["LAB_JOBS"] = "1"
    jobs = guests_of(Made)
    assert soaking.run(jobs, MODULE, [(RARE, ROUND), (MANY, 12 * ROUND)]) == 0
    found = [(one["kind"], one["device"], one["number"]) for one in Record(MODULE).rounds()]
    # After ten rounds, the guest of the second kind ends, and the first kind has its turn.
    many = [("many", "rxe", number) for number in range(12)]
    assert found == [("rare", "rxe", 0), *many[:10], ("rare", "mlx5", 1), *many[10:]]
    seeds = [one["seed"] for one in Record(MODULE).rounds()]
    assert len(set(seeds)) == len(seeds)
    # Each kind goes on by itself.
    assert soaking.run(jobs, MODULE, [(MANY, 13 * ROUND)]) == 0
    assert [one["kind"] for one in Record(MODULE).rounds()].count("rare") == 2
    assert Record(MODULE).rounds()[-1]["number"] == 12


def words_choose_the_kind() -> None:
    assert soaking.chosen([]) == [(RARE, 100_000), (MANY, 10_000_000)]
    assert soaking.chosen(["many"]) == [(MANY, 10_000_000)]
    assert soaking.chosen(["rare", "500"]) == [(RARE, 500)]
    assert soaking.chosen(["500"]) == [(RARE, 500), (MANY, 500)]
    for words in (["some"], ["0"], ["rare", "many"], ["rare", "5", "5"]):
        try:
            soaking.chosen(words)
        except Wrong as wrong:
            assert "rare or many" in str(wrong)
        else:
            raise AssertionError(f"{words} were taken")


def half_a_line_is_no_round() -> None:
    run = soak()
    one_round(run)
    with run.record.path.open("a", encoding="utf-8") as file:
        file.write('{"number": 1, "gu')
    again = soak()
    one_round(again)
    assert len(soak().over) == 2


def a_line_that_is_no_round_is_named() -> None:
    Record(MODULE).path.write_text("{}\nnonsense\n", encoding="utf-8")
    try:
        list(Record(MODULE).here())
    except Wrong as wrong:
        assert "line 2" in str(wrong)
    else:
        raise AssertionError("nobody was told")


def what_ran_elsewhere_counts_once() -> None:
    # The first page is the one that `soak --docs` writes.
    old = page(soaking.PAGE.read_text("utf-8"), "old")
    soaking.ELSEWHERE, soaking.PAGE = CACHE / "elsewhere.json.gz", CACHE / "page.md"
    soaking.PAGE.write_text(old, encoding="utf-8")
    one_round(soak())
    soaking.write_docs(MODULE)
    assert soaking.PAGE.read_text("utf-8") == page(old, report(MODULE, soak().over)) != old
    assert len(soak().over) == 1
    begin_anew()
    one_round(soak())
    assert len(soak().over) == 2 and not Soak("def", RARE, ROUND).over


def two_runs_are_refused() -> None:
    with locked(CACHE / "soak.lock"):
        try:
            soaking.run([], MODULE, [(RARE, ROUND)])
        except Wrong as wrong:
            assert "already" in str(wrong)
        else:
            raise AssertionError("there were two")


CASES = (
    rounds_are_not_run_twice,
    it_is_enough_at_the_goal,
    what_failed_is_noted_at_once_and_for_good,
    what_was_cut_off_has_not_failed,
    a_guest_ends_and_the_other_device_is_next,
    guests_follow_until_the_goal_or_a_failure,
    kinds_take_turns_and_do_not_share_rounds,
    words_choose_the_kind,
    half_a_line_is_no_round,
    a_line_that_is_no_round_is_named,
    what_ran_elsewhere_counts_once,
    two_runs_are_refused,
)


def main() -> None:
    for case in CASES:
        begin_anew()
        case()
        print("ok", case.__name__.replace("_", " "))


if __name__ == "__main__":
    main()
