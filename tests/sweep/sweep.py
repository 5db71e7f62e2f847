#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""sweep.py AREA [--seed N] [--count N] [--files WORD...] [--again]: makes mechanical mistakes in
the area's files, one at a time, and says which of them no test notices.

Without --files, takes COUNT mistakes (default 100) of all that the rules can make, by SEED. With
--files, takes all mistakes of the files whose names contain one of the words. The result of each
mistake is kept: one that was noticed is not tried again until its file changes, and one that was
not is tried again when anything has changed that the area's tests need. --again tries only mistakes
that were not noticed.

The mistakes in `judged` are left out: each names the reason why the program stays the same.

A group of several mistakes in one copy would save time only where nearly all of them go unnoticed.
Where eight of ten are noticed, each group fails, so the mistakes are tried one by one, but several
copies work at the same time."""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from areas import AREAS, MADE, TOP, Area, copied
from mistakes import Mistake, mistakes_in, put_in

HERE = Path(__file__).resolve().parent
# What the sweeps keep between runs.
KEPT = Path(os.environ.get("SWEEP_KEPT", "/tmp/sweep"))
NOTICED, UNNOTICED, NO_PROGRAM = "noticed", "NOT NOTICED", "does not compile"
# A test that takes so many times longer than without a mistake hangs.
PATIENCE, LEAST_SECONDS = 4, 120


def digest(*texts: bytes) -> str:
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


def paths_of(path: Path) -> list[Path]:
    """Returns a file, or the files of a directory."""
    return [path] if path.is_file() else [one for one in sorted(path.rglob("*")) if one.is_file()]


def judged() -> dict[str, str]:
    """Returns the mistakes that change nothing, each with the reason."""
    lines = (HERE / "judged").read_text(encoding="utf-8").splitlines()
    pairs = [line.rpartition(" # ") for line in lines if line and not line.startswith("#")]
    return {name.strip(): reason for name, _, reason in pairs}


@dataclass
class Copy:
    """A copy of the files of an area, in which one mistake at a time is tried."""

    area: Area
    directory: Path
    seconds: float = field(default=0, init=False)

    def run(self, command: str, limit: float | None) -> str:
        """Runs a command. Returns an empty text if it ends with 0, else its last lines."""
        environment = {**os.environ, "CARGO_TARGET_DIR": str(self.directory / "target")}
        with subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        ) as child:
            try:
                said, _ = child.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, 9)
                return "no end"
        return "" if not child.returncode else "\n".join(said.splitlines()[-15:]) or "failed"

    def prove(self) -> None:
        """Runs all commands without a mistake, and measures how long they take."""
        began = time.monotonic()
        for command in (*self.area.builds, *self.area.tests):
            if problem := self.run(command, None):
                sys.exit(f"sweep: without a mistake, this fails: {command}\n{problem}")
        self.seconds = time.monotonic() - began

    def outcome(self, mistake: Mistake) -> str:
        path = self.directory / mistake.file
        good = path.read_text(encoding="utf-8")
        path.write_text(put_in(mistake, good), encoding="utf-8")
        limit = max(LEAST_SECONDS, PATIENCE * self.seconds)
        try:
            if any(self.run(command, limit) for command in self.area.builds):
                return NO_PROGRAM
            return (
                NOTICED
                if any(self.run(command, limit) for command in self.area.tests)
                else UNNOTICED
            )
        finally:
            path.write_text(good, encoding="utf-8")


class Results:
    """The results that are kept, by the names of the mistakes."""

    def __init__(self, name: str, area: Area) -> None:
        self.path = KEPT / f"{name}.json"
        self.known: dict[str, tuple[str, str, str]] = {}
        if self.path.exists():
            self.known = json.loads(self.path.read_text(encoding="utf-8"))
        self.sums = {file: digest((TOP / file).read_bytes()) for file in area.files()}
        needed = [path for name in area.needs for path in paths_of(TOP / name)]
        read = [path.read_bytes() for path in needed if not set(MADE) & set(path.parts)]
        self.all = digest(*read)
        self.lock = threading.Lock()

    def of(self, mistake: Mistake) -> str | None:
        outcome, file, every = self.known.get(mistake.name(), ("", "", ""))
        fits = every == self.all if outcome == UNNOTICED else file == self.sums[mistake.file]
        return outcome if outcome and fits else None

    def was_missed(self, mistake: Mistake) -> bool:
        return self.known.get(mistake.name(), ("", "", ""))[0] == UNNOTICED

    def keep(self, mistake: Mistake, outcome: str) -> None:
        with self.lock:
            self.known[mistake.name()] = (outcome, self.sums[mistake.file], self.all)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.known, indent=0), encoding="utf-8")
            new.replace(self.path)


def possible(area: Area) -> list[Mistake]:
    """Returns the mistakes that the rules make and nobody has judged to change nothing."""
    same = judged()
    texts = {file: (TOP / file).read_text(encoding="utf-8") for file in area.files()}
    made = [one for file, text in texts.items() for one in mistakes_in(file, text, area.language)]
    unique = {one.name(): one for one in made}
    return [one for name, one in unique.items() if name not in same]


def chosen(area: Area, results: Results, options: argparse.Namespace) -> list[Mistake]:
    every = possible(area)
    if options.again:
        return [one for one in every if results.was_missed(one)]
    if options.files:
        return [one for one in every if any(word in one.file for word in options.files)]
    return random.Random(options.seed).sample(every, min(options.count, len(every)))


def try_all(area: Area, mistakes: list[Mistake], results: Results) -> Counter[str]:
    outcomes: Counter[str] = Counter()
    done = 0
    lock = threading.Lock()
    # There are as many copies as threads, so each thread finds one.
    copies: list[Copy] = []

    def tried(mistake: Mistake) -> None:
        nonlocal done
        outcome = results.of(mistake)
        if outcome is None:
            copy = copies.pop()
            outcome = copy.outcome(mistake)
            copies.append(copy)
            results.keep(mistake, outcome)
        with lock:
            done += 1
            outcomes[outcome] += 1
            place = f"{done}/{len(mistakes)} {outcome}: line {mistake.line}, {mistake.kind}"
            print(f"{place}: {mistake.name()}", flush=True)

    with tempfile.TemporaryDirectory(prefix="sweep.") as directory:
        if any(results.of(mistake) is None for mistake in mistakes):
            first = Copy(area, Path(directory) / "0")
            copied(area.needs, first.directory)
            if warm := os.environ.get("SWEEP_TARGET"):
                subprocess.run(["cp", "-a", warm, first.directory / "target"], check=True)
            first.prove()
            print(f"without a mistake, the tests pass in {first.seconds:.0f} s", flush=True)
            copies.append(first)
            for number in range(1, os.cpu_count() or 1):
                other = Copy(area, Path(directory) / str(number))
                subprocess.run(["cp", "-a", first.directory, other.directory], check=True)
                other.seconds = first.seconds
                copies.append(other)
        with ThreadPoolExecutor(os.cpu_count()) as several:
            for _ in several.map(tried, mistakes):
                pass
    return outcomes


def main() -> str | None:
    parser = argparse.ArgumentParser(prog="tests/run sweep")
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--seed", type=int, default=random.randrange(10000))
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--files", nargs="+")
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    area = AREAS[options.area]
    KEPT.mkdir(parents=True, exist_ok=True)
    results = Results(options.area, area)
    mistakes = chosen(area, results, options)
    print(f"{len(mistakes)} mistakes in {options.area}, seed {options.seed}", flush=True)
    outcomes = try_all(area, mistakes, results)
    compiled = outcomes[NOTICED] + outcomes[UNNOTICED]
    print(f"made {compiled}, noticed {outcomes[NOTICED]}, not compiled {outcomes[NO_PROGRAM]}")
    return f"{outcomes[UNNOTICED]} mistakes were not noticed" if outcomes[UNNOTICED] else None


if __name__ == "__main__":
    sys.exit(main())
