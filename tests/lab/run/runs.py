# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs jobs, several at a time."""

import os
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from layers.cache import Wrong, say
from layers.slowest import slowest
from run import stale
from run.guest import seconds_since
from run.jobs import Job
from run.speed import speed

# Seconds between two lines about the progress of a run.
PROGRESS = 30


def slots() -> int:
    """Returns the number of jobs that run at a time."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 30
    fitting = max(1, min(len(os.sched_getaffinity(0)), memory // 3))
    return int(os.environ.get("LAB_JOBS") or fitting)


class Run:
    """Runs jobs in the table's order. A job whose layers another job is making does not hold up the
    jobs after it. The directory KEPT notes the jobs that passed."""

    def __init__(
        self,
        title: str,
        jobs: Iterable[Job],
        kept: Path | None = None,
        whole: bool = False,
        others: Iterable[Job] = (),
    ) -> None:
        self.title, self.waiting, self.kept = title, list(jobs), kept
        # Whether the jobs run as jobs.md has them, and the jobs of jobs.md that do not run now.
        self.whole, self.others = whole, others
        self.number = len(self.waiting)
        self.running: list[Job] = []
        self.passed: list[Job] = []
        self.failed: list[Job] = []
        self.checks = 0
        self.changed = threading.Condition()

    def all(self) -> int:
        """Runs all jobs. Returns the exit status."""
        began = time.monotonic()
        self.skip_passed()
        with self.changed:
            self.run_waiting()
        if pieces := slowest():
            say(self.title, "\n".join(["the slowest pieces were:", *pieces]))
        for job in self.failed:
            say(self.title, f"failed: {job.name}")
        say(self.title, f"took {seconds_since(began)} s: {self.checks} checks; {speed()}")
        if said := stale.summary(self.others):
            say(self.title, said)
        print(f"{len(self.passed)} passed, {len(self.failed)} failed", flush=True)
        return 1 if self.failed else 0

    def note(self, job: Job) -> Path | None:
        """Returns the file that exists if the job has passed."""
        return self.kept / job.name if self.kept else None

    def skip_passed(self) -> None:
        for job in list(self.waiting):
            note = self.note(job)
            if note and note.exists():
                self.waiting.remove(job)
                self.passed.append(job)
                text = note.read_text(encoding="utf-8")
                say(job.name, f"passed before, on this commit: {text}")

    def run_waiting(self) -> None:
        spoken = time.monotonic()
        while self.waiting or self.running:
            while len(self.running) < slots() and (job := self.next()):
                self.waiting.remove(job)
                self.running.append(job)
                threading.Thread(target=self.one, args=[job], daemon=True).start()
            self.changed.wait(1)
            if time.monotonic() - spoken >= PROGRESS:
                self.progress()
                spoken = time.monotonic()

    def next(self) -> Job | None:
        made_now = {job.kernel for job in self.running if not job.ready} - {"-"}
        return next((job for job in self.waiting if job.kernel not in made_now), None)

    def one(self, job: Job) -> None:
        passed = False
        try:
            passed = job.run()
        except Wrong as wrong:
            say(job.name, f"FAILED: {wrong}")
        finally:
            with self.changed:
                self.over(job, passed)
                self.changed.notify()

    def over(self, job: Job, passed: bool) -> None:
        job.ready = True
        self.running.remove(job)
        (self.passed if passed else self.failed).append(job)
        self.checks += job.checks
        if passed and self.whole:
            stale.note(job)
        note = self.note(job)
        if passed and note:
            text = f"{job.checks} checks, {time.strftime('%F %R')}"
            note.write_text(text, encoding="utf-8")

    def progress(self) -> None:
        now = ", ".join(
            f"{job.name} ({seconds_since(job.began)} s: {job.doing[:60]})" for job in self.running
        )
        done = len(self.passed) + len(self.failed)
        say(self.title, f"{done} of {self.number} jobs done; running: {now}")
