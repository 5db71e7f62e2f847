# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests which jobs count as changed since they passed."""

from pathlib import Path

import pytest

from layers.cache import hash_of
from run import stale
from run.jobs import Job


@pytest.fixture
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Makes a checkout with two scenarios and two checks, and returns the jobs that run them."""
    for name, text in (
        ("tests/guest/scenarios/first.sh", "one\n"),
        ("tests/guest/scenarios/second.sh", "two\n"),
        ("tests/guest/lib.sh", ""),
        ("tests/guest/run", ""),
        ("tests/guest/init", ""),
        ("tests/lab/checks/check.sh", "check_a() { one; }\n\ncheck_b() {\n\ttwo\n}\n"),
    ):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(stale, "TOP", tmp_path)
    monkeypatch.setattr(stale, "LAB", tmp_path / "tests/lab")
    monkeypatch.setattr(stale, "PASSED", tmp_path / "passed")
    lines = (("g1", "guest", "first"), ("g2", "guest", "second"), ("a", "check", "a"))
    made = [Job(name, "all", kind, "stock", [], [run], "") for name, kind, run in lines]
    return [*made, Job("b", "all", "check", "-", [], ["b"], "")]


def change(tmp_path: Path, name: str, old: str, new: str) -> None:
    file = tmp_path / name
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")
    # A run computes the hash of a file once.
    hash_of.cache_clear()


def test_nothing_has_changed(jobs: list[Job]) -> None:
    assert stale.summary(jobs) == "4 jobs of jobs.md have not passed on this machine yet"
    for job in jobs:
        stale.note(job)
    assert stale.summary(jobs) == ""


def test_a_program_a_check_and_a_line(jobs: list[Job], tmp_path: Path) -> None:
    for job in jobs[1:]:
        stale.note(job)
    change(tmp_path, "tests/guest/scenarios/second.sh", "two", "three")
    change(tmp_path, "tests/lab/checks/check.sh", "\ttwo", "\tthree")
    never = "1 jobs of jobs.md have not passed on this machine yet"
    assert stale.summary(jobs) == f"not run since they changed: g2 b; {never}"
    jobs[2].machine = "6.1"
    assert stale.summary(jobs[1:]) == "not run since they changed: g2 a b"


def test_what_all_scenarios_have(jobs: list[Job], tmp_path: Path) -> None:
    for job in jobs:
        stale.note(job)
    change(tmp_path, "tests/guest/lib.sh", "", "changed")
    assert stale.summary(jobs) == "not run since they changed: g1 g2"
