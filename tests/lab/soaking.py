# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The soak: registrations of one module, in rounds, until there were as many as are wanted.

A guest of the debug kernel asks for one round after another (../guest/scenarios/soak.sh). Each that
has ended well is noted at once, in a file that is named after the module's source: so whatever ends
a run costs the rounds that were not over, and the next run goes on behind them.
"""

import gzip
import itertools
import json
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from cache import CACHE, TOP, Wrong, hash_of, say
from jobs import Job
from qemu import TIMEOUT, Options
from runs import Run, slots

GOAL = 1_000_000

# Registrations of a round: minutes of an emulated machine. A guest's first one is short, for only
# behind it is the memory in use compared.
ROUND, FIRST_ROUND = 5000, 2500

RECORD, REPORT = TOP / "docs/soak.json.gz", TOP / "docs/soak.md"

Round = dict[str, Any]


def module() -> str:
    """A name for the module's source. What was changed has not been soaked."""
    return hash_of(TOP / "src", TOP / "Kbuild")[:12]


class Record:
    """The rounds that have ended well, of this module: here, or before that elsewhere."""

    def __init__(self) -> None:
        self.path = CACHE / "soak" / f"{module()}.jsonl"
        self.path.parent.mkdir(exist_ok=True)
        if not self.path.exists() and RECORD.exists():
            kept = json.loads(gzip.decompress(RECORD.read_bytes()))
            if kept["module"] == module():
                self.add(*kept["rounds"])

    def add(self, *rounds: Round) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in rounds)

    def rounds(self) -> list[Round]:
        if not self.path.exists():
            return []
        return [json.loads(line) for line in self.path.read_text(encoding="utf-8").splitlines()]


class Soak:
    """Which rounds are over, and which are under way in which guest."""

    def __init__(self, goal: int) -> None:
        self.goal, self.record = goal, Record()
        self.over = self.record.rounds()
        self.under_way: dict[str, Round] = {}
        # Guests ask at any time.
        self.asked = threading.Lock()

    def registrations(self) -> int:
        return sum(one["registrations"] for one in self.over)

    def next_round(self, guest: str, threads: str) -> str:
        with self.asked:
            under_way = sum(one["registrations"] for one in self.under_way.values())
            left = self.goal - self.registrations() - under_way
            if left <= 0:
                return "enough"
            taken = {one["number"] for one in [*self.over, *self.under_way.values()]}
            number = next(number for number in itertools.count() if number not in taken)
            is_first = guest not in {one["guest"] for one in self.over}
            size = min(left, FIRST_ROUND if is_first else ROUND)
            seed = seed_of(number)
            self.under_way[guest] = {
                "number": number,
                "guest": guest,
                "threads": threads,
                "seed": seed,
                "registrations": size,
            }
            return f"{seed} {size}"

    def round_ended(self, guest: str, seed: str, *figures: str) -> str:
        with self.asked:
            one = self.under_way.pop(guest)
            if one["seed"] != int(seed):
                raise Wrong(f"{guest} has ended a round of seed {seed}, not {one['seed']}")
            one["ended"] = time.strftime("%F %R", time.gmtime())
            for name, value in (figure.split("=") for figure in figures):
                one[name] = int(value)
            self.record.add(one)
            self.over.append(one)
            say("soak", f"{self.registrations():,} of {self.goal:,} registrations were tried")
            return "noted"

    def answers(self, guest: str, threads: str) -> dict[str, Callable[..., str]]:
        return {
            "next_round": lambda: self.next_round(guest, threads),
            "round_ended": lambda seed, *figures: self.round_ended(guest, seed, *figures),
        }


def seed_of(number: int) -> int:
    """Of a round: the last two bits say how (../guest/scenarios/soak.sh), so that each guest of two
    that take turns meets all four ways."""
    return zlib.crc32(f"{module()} {number}".encode()) & ~3 | number // 2 % 4


def run(job: Job, goal: int) -> int:
    """As many guests as there is room for, until the goal is reached. Returns the exit status."""
    soak = Soak(goal)
    before = soak.registrations()
    if before:
        say("soak", f"{before:,} of {goal:,} registrations were tried in earlier runs")
    status = 0
    if before < goal:
        status = Run("soak", list(guests(job, soak))).all()
    path = soak.record.path.with_suffix(".md")
    path.write_text(report(soak.over), encoding="utf-8")
    say("soak", f"the report: {path}")
    return status


def guests(job: Job, soak: Soak) -> Iterator[Job]:
    """With a thread for each processor where the machine has so many: races are better then."""
    number, began = slots(), time.strftime("%Y%m%d%H%M%S", time.gmtime())
    room = len(os.sched_getaffinity(0)) >= 2 * number
    threads = os.environ.get("LAB_THREADS") or ("multi" if room else "single")
    for index in range(number):
        guest = f"{began}-{index}"
        yield replace(
            job,
            name=f"soak-{index}",
            options=Options(threads=threads, timeout=2 * TIMEOUT),
            answers=soak.answers(guest, threads),
        )


# ---- the report ------------------------------------------------------------------------

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->
<!-- Written by tests/run soak --docs: do not edit. -->
# A million registrations

**{registrations:,} of {goal:,} registrations have run** without a report, a violation of a
contract or an object that is lost; {registered:,} of them succeeded. They ran on the debug kernel
(KASAN, lockdep, kmemleak, DMA-API debug), in {rounds} rounds between {begin} and {end}
(UTC), in {guests} guests, with the module whose source has the hash `{module}`.

In a round the module is loaded, four processes at a time register memory and misbehave in every
way that a program can, and the module is unloaded: with persistent pins in half of the rounds, and
with frees by the driver at any moment in half of them. Behind each round nothing is pinned, mapped
or registered, kmemleak finds nothing, all checkers are still on, and the memory in use is what it
was.

`tests/run soak` goes on where the last run was cut off.

"""

# What a round says of itself, and what it means.
HAPPENED = {
    "registrations": "registrations tried",
    "registered": "of them successful; the others met memory that had been freed, or none was left",
    "freed_under": "pieces of memory freed under their registrations",
    "freed_while_registering": "pieces freed while they were being registered",
    "freed_while_deregistering": "pieces freed while a registration of them ended",
    "transfers": "RDMA transfers",
    "workers": "processes that registered",
    "workers_killed": "of them killed in mid-work",
    "forks": "children that inherited everything",
    "children_killed": "of them killed",
    "deregistered_by_child": "registrations that a child ended first",
}

MEMORY = """\
## Memory in use

In bytes: what the kernel has given away in slabs, from vmalloc and for each processor, after it has
taken back what it can have at any time. A guest's first round, of {first:,} registrations, leaves
what is kept for good, such as the last 1,024 pins of the simulated driver, which it knows again if
they are used. The other rounds are compared with that.

| guest | threads | rounds | registrations | after the first | highest | at the end | difference |
|---|---|---|---|---|---|---|---|
"""

CURVE = """\

### The longest guest, round by round

| registrations so far | in use | difference | free, of all memory |
|---|---|---|---|
"""

# So many lines of the curve are enough to see whether it rises.
LINES = 20


def table_of_happenings(rounds: list[Round]) -> str:
    lines = ["| number | what |", "|---|---|"]
    for name, text in HAPPENED.items():
        lines.append(f"| {sum(one[name] for one in rounds):,} | {text} |")
    return "\n".join(lines) + "\n\n"


def by_guest(rounds: list[Round]) -> dict[str, list[Round]]:
    """Of each guest its rounds, in their order."""
    found: dict[str, list[Round]] = {}
    for one in rounds:
        found.setdefault(one["guest"], []).append(one)
    return found


def total(rounds: list[Round]) -> int:
    return sum(one["registrations"] for one in rounds)


def line_of_guest(guest: str, rounds: list[Round]) -> str:
    used = [one["in_use"] for one in rounds]
    cells = [
        guest,
        rounds[0]["threads"],
        str(len(rounds)),
        *(f"{number:,}" for number in (total(rounds), used[0], max(used), used[-1])),
        f"{used[-1] - used[0]:+,}",
    ]
    return f"| {' | '.join(cells)} |\n"


def curve(rounds: list[Round]) -> Iterator[str]:
    """Every round, or as many as are enough; the last one always."""
    step = -(-len(rounds) // LINES)
    for index, one in enumerate(rounds):
        if index % step == 0 or index == len(rounds) - 1:
            so_far = total(rounds[: index + 1])
            difference = one["in_use"] - rounds[0]["in_use"]
            yield f"| {so_far:,} | {one['in_use']:,} | {difference:+,} | {one['free']:,} |\n"


def report(rounds: list[Round]) -> str:
    if not rounds:
        return "No round has ended well.\n"
    found = by_guest(rounds)
    head = HEAD.format(
        registrations=total(rounds),
        goal=GOAL,
        registered=sum(one["registered"] for one in rounds),
        rounds=len(rounds),
        begin=min(one["ended"] for one in rounds),
        end=max(one["ended"] for one in rounds),
        guests=len(found),
        module=module(),
    )
    memory = MEMORY.format(first=FIRST_ROUND)
    lines = "".join(line_of_guest(*one) for one in found.items())
    longest = max(found.values(), key=total)
    return head + table_of_happenings(rounds) + memory + lines + CURVE + "".join(curve(longest))


def write_docs() -> int:
    record = Record()
    rounds = record.rounds()
    if not rounds:
        raise Wrong("nothing has run with the module as it is: tests/run soak.")
    text = json.dumps({"module": module(), "rounds": rounds}, indent=0)
    RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))
    REPORT.write_text(report(rounds), encoding="utf-8")
    say("soak", f"{REPORT.relative_to(TOP)} is written, of {total(rounds):,} registrations")
    return 0
