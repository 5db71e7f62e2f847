#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""sweep.py AREA [--seed N] [--count N] [--files WORD...] [--kind WORD] [--again] [--thought]: makes
mistakes in the area's files, and says which of them no test notices.

Takes COUNT mistakes, by SEED, of all that the rules can make (mistakes.py), or of those of one
kind; without a number 100. With --files, takes those in the files whose names contain one of the
words.
--again takes only mistakes that were not noticed, and --thought those that people thought of
(thought.py). With one of these three and without a number, takes all. Results are kept
(results.py).

The mistakes in `judged` are left out: each names the reason why the program stays the same.

First each mistake is tried alone with the area's quick tests, which notice most of them. The slow
tests notice few of the rest. So the rest is put into one copy in groups, each mistake in another
file. If the slow tests pass, no mistake of the group is noticed; else each half is tried again."""

import argparse
import os
import random
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from areas import AREAS, TOP, Area, copied
from mistakes import Mistake, mistakes_in
from results import KEPT, NO_PROGRAM, NOTICED, UNNOTICED, Results
from thought import Made, thoughts
from trial import Copy

HERE = Path(__file__).resolve().parent
GROUP = 20


def judged() -> dict[str, str]:
    """Returns the mistakes that change nothing, each with the reason."""
    lines = (HERE / "judged").read_text(encoding="utf-8").splitlines()
    pairs = [line.rpartition(" # ") for line in lines if line and not line.startswith("#")]
    return {name.strip(): reason for name, _, reason in pairs}


def possible(area: Area) -> list[Mistake]:
    """Returns the mistakes that the rules make and nobody has judged to change nothing."""
    same = judged()
    texts = {file: (TOP / file).read_text(encoding="utf-8") for file in area.files()}
    made = [one for file, text in texts.items() for one in mistakes_in(file, text, area.language)]
    unique = {one.name(): one for one in made}
    return [one for name, one in unique.items() if name not in same]


def chosen(area: Area, results: Results, options: argparse.Namespace) -> list[Made]:
    every: list[Made] = [*(thoughts(options.area) if options.thought else possible(area))]
    if options.again:
        every = [one for one in every if results.was_missed(one)]
    if options.files:
        every = [one for one in every if any(word in one.file for word in options.files)]
    if options.kind:
        every = [one for one in every if options.kind in one.place]
    are_all = options.again or options.files or options.thought
    count = options.count or (len(every) if are_all else 100)
    return random.Random(options.seed).sample(every, min(count, len(every)))


def groups(mistakes: list[Made]) -> Iterator[list[Made]]:
    """Returns groups of mistakes that are in different files."""
    left = list(mistakes)
    while left:
        first = {one.file: one for one in reversed(left)}
        group = list(first.values())[:GROUP]
        yield group
        left = [one for one in left if one not in group]


class Sweep:
    """Tries mistakes in several copies at the same time. There are as many copies as threads, so
    each thread finds one."""

    def __init__(self, area: Area, results: Results) -> None:
        self.area, self.results = area, results
        self.outcomes: Counter[str] = Counter()
        self.copies: list[Copy] = []
        self.left: list[Made] = []
        self.lock = threading.Lock()

    def says(self, mistake: Made, outcome: str) -> None:
        with self.lock:
            self.outcomes[outcome] += 1
            count = self.outcomes.total()
            print(f"{count} {outcome}: {mistake.place}: {mistake.name()}", flush=True)

    def found(self, mistake: Made, outcome: str) -> None:
        self.results.keep(mistake, outcome)
        self.says(mistake, outcome)

    def makes_copies(self, directory: Path, number: int) -> None:
        first = Copy(self.area, directory / "0")
        copied(self.area.needs, first.directory)
        if warm := os.environ.get("SWEEP_TARGET"):
            subprocess.run(["cp", "-a", warm, first.directory / "target"], check=True)
            first.forgets_other_copies()
        first.prove([*self.area.builds, *self.area.tests])
        self.copies.append(first)
        for each in range(1, number):
            other = Copy(self.area, directory / str(each), first.seconds)
            subprocess.run(["cp", "-a", first.directory, other.directory], check=True)
            other.forgets_other_copies()
            self.copies.append(other)

    def tries_alone(self, mistake: Made) -> None:
        copy = self.copies.pop()
        try:
            if not copy.compiles([mistake]):
                self.found(mistake, NO_PROGRAM)
            elif copy.notices(self.area.tests, mistake.file):
                self.found(mistake, NOTICED)
            elif self.area.slow:
                self.left.append(mistake)
                print(f"left for the slow tests: {mistake.name()}", flush=True)
            else:
                self.found(mistake, UNNOTICED)
        finally:
            copy.put_right()
            self.copies.append(copy)

    def tries_together(self, group: list[Made]) -> None:
        copy = self.copies.pop()
        try:
            # A group may not compile although each of its mistakes does. It is halved, too.
            fails = not copy.compiles(group) or copy.notices(self.area.slow, "")
        finally:
            copy.put_right()
            self.copies.append(copy)
        if fails and len(group) > 1:
            half = len(group) // 2
            self.tries_together(group[:half])
            self.tries_together(group[half:])
        else:
            for mistake in group:
                self.found(mistake, NOTICED if fails else UNNOTICED)

    def tries_all(self, mistakes: list[Made]) -> None:
        new = []
        for mistake in mistakes:
            if outcome := self.results.of(mistake):
                self.says(mistake, outcome)
            else:
                new.append(mistake)
        if not new:
            return
        number = os.cpu_count() or 1
        with tempfile.TemporaryDirectory(prefix="sweep.") as directory:
            self.makes_copies(Path(directory), number)
            with ThreadPoolExecutor(number) as several:
                list(several.map(self.tries_alone, new))
                print(f"{len(self.left)} are left for the slow tests", flush=True)
                if self.left:
                    self.copies[0].prove(self.area.slow)
                list(several.map(self.tries_together, groups(self.left)))


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="tests/run sweep")
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--seed", type=int, default=random.randrange(10000))
    parser.add_argument("--count", type=int)
    parser.add_argument("--files", nargs="+")
    parser.add_argument("--kind", default="")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--thought", action="store_true")
    options = parser.parse_args()
    area = AREAS[options.area]
    KEPT.mkdir(parents=True, exist_ok=True)
    results = Results(options.area, area)
    mistakes = chosen(area, results, options)
    print(f"{len(mistakes)} mistakes in {options.area}, seed {options.seed}", flush=True)
    sweep = Sweep(area, results)
    sweep.tries_all(mistakes)
    outcomes = sweep.outcomes
    compiled = outcomes[NOTICED] + outcomes[UNNOTICED]
    print(f"made {compiled}, noticed {outcomes[NOTICED]}, not compiled {outcomes[NO_PROGRAM]}")
    return f"{outcomes[UNNOTICED]} mistakes were not noticed" if outcomes[UNNOTICED] else None


if __name__ == "__main__":
    sys.exit(main())
