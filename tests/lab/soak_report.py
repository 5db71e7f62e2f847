# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The report of a soak's rounds, docs/soak.md."""

from collections.abc import Callable, Iterator
from typing import Any

# The record of a round that is over: its description, and its figures by their names.
Round = dict[str, Any]

HEAD = """\
<!-- SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause -->
<!-- Written by tests/run soak --docs: do not edit. -->
# A million registrations

**{registrations:,} of {goal:,} wanted registrations have run, {outcome}.**
`tests/run soak` goes on where the last run was cut off. The registrations ran between {begin}
and {end} (UTC): {rounds} rounds in {guests} guests, on kernel {kernels} with KASAN,
lockdep, kmemleak and DMA-API debug. The module's source has the hash `{module}`.

In a round the module is loaded, four processes at a time register memory and misbehave in every
way that a program can, and the module is unloaded. A round passes only if afterwards nothing is
pinned, mapped or registered, no contract was violated, no checker has reported anything or has
turned itself off, kmemleak finds nothing, and no more memory is in use than before.

"""

# The figures that a round reports, and their meaning.
HAPPENED = {
    "registrations": "registrations tried",
    "registered": "registrations that succeeded; the memory of the others had been freed",
    "freed_under": "pieces of memory freed under their registrations",
    "freed_while_registering": "pieces freed while they were being registered",
    "freed_while_deregistering": "pieces freed while a registration of them ended",
    "transfers": "RDMA transfers",
    "workers": "processes that registered",
    "workers_killed": "processes that were killed while they registered",
    "forks": "children that inherited all registrations",
    "children_killed": "children that were killed",
    "deregistered_by_child": "registrations that a child ended first",
}

# Kinds of rounds, by the words with which the report describes their registrations.
# ../guest/scenarios/soak.sh explains the seed's last bits.
KINDS: dict[str, Callable[[Round], bool]] = {
    "in rounds with persistent pins": lambda one: one["seed"] % 2 == 1,
    "in rounds with revocable pins, which end when memory is freed": lambda one: (
        one["seed"] % 2 == 0
    ),
    "in rounds in which the driver also takes memory away": lambda one: one["seed"] // 2 % 2 == 1,
    "in guests whose processors really run at once": lambda one: one["threads"] == "multi",
    "in guests with an emulated ConnectX and NVIDIA's driver mlx5": lambda one: (
        one["device"] == "mlx5"
    ),
    "in guests with the kernel's software device, rxe": lambda one: one["device"] == "rxe",
}

MEMORY = """\
## Memory in use

The figures are the bytes that the kernel has allocated in slabs, from vmalloc and for each
processor, after it has freed all memory that it can free at any time. A guest makes and ends two
thousand registrations before its first round, which are not counted, because some memory of the
first registrations is kept for good. A round fails if afterwards 128 KiB more are in use than the
lowest figure so far, or if there are 32 MiB less of free pages than at first.

| guest | device | threads | tried | at first | lowest | highest | last | difference | free pages |
|---|---|---|---|---|---|---|---|---|---|
"""

CURVE = """\

### The longest guest, round by round

| registrations so far | in use | difference | free pages |
|---|---|---|---|
"""

# The most lines of the curve: enough to see whether the curve rises.
LINES = 25


def total(rounds: list[Round]) -> int:
    """Returns the number of registrations in rounds that have passed."""
    return sum(one["registrations"] for one in rounds if "failed" not in one)


def by_guest(rounds: list[Round]) -> dict[str, list[Round]]:
    """Returns the rounds of each guest, in order."""
    found: dict[str, list[Round]] = {}
    for one in rounds:
        found.setdefault(one["guest"], []).append(one)
    return found


def happenings(rounds: list[Round]) -> Iterator[str]:
    yield "## What has happened"
    yield ""
    yield "| number | what |"
    yield "|---|---|"
    for name, text in HAPPENED.items():
        yield f"| {sum(one[name] for one in rounds):,} | {text} |"
    for text, is_one in KINDS.items():
        number = total([one for one in rounds if is_one(one)])
        yield f"| {number:,} | registrations {text} |"
    yield ""


def line_of_guest(guest: str, rounds: list[Round]) -> str:
    used = [one["in_use"] for one in rounds]
    first, last = rounds[0]["in_use_at_first"], used[-1]
    figures = [total(rounds), first, min(first, *used), max(first, *used), last]
    free = f"{rounds[-1]['free'] - rounds[0]['free_at_first']:+,}"
    cells = [guest, rounds[0]["device"], rounds[0]["threads"], *(f"{one:,}" for one in figures)]
    return f"| {' | '.join([*cells, f'{last - first:+,}', free])} |"


def curve(rounds: list[Round]) -> Iterator[str]:
    """Yields a line for each round, or for at most LINES rounds and the last round."""
    first, free = rounds[0]["in_use_at_first"], rounds[0]["free_at_first"]
    yield f"| 0 | {first:,} | | {free:,} |"
    step = -(-len(rounds) // LINES)
    for index, one in enumerate(rounds, 1):
        if index % step == 0 or index == len(rounds):
            so_far, used = total(rounds[:index]), one["in_use"]
            yield f"| {so_far:,} | {used:,} | {used - first:+,} | {one['free'] - free:+,} |"


def failures(rounds: list[Round]) -> Iterator[str]:
    if not rounds:
        return
    yield "## Rounds that have failed"
    yield ""
    for one in rounds:
        place = f"{one['device']}, {one['threads']}, {one['ended']}"
        yield f"* seed {one['seed']}, {place}: {'; '.join(one['failed'])}"
        if why := one.get("why"):
            yield f"  Why: {why}"
    yield ""


def report(module: str, goal: int, rounds: list[Round]) -> str:
    good = [one for one in rounds if "failed" not in one]
    bad = [one for one in rounds if "failed" in one]
    if not good:
        return "\n".join(["No round has ended well.", "", *failures(bad)]) + "\n"
    found = by_guest(good)
    head = HEAD.format(
        registrations=total(good),
        goal=goal,
        outcome=f"and rounds have failed: {len(bad)}" if bad else "and no round has failed",
        begin=min(one["began"] for one in good),
        end=max(one["ended"] for one in good),
        rounds=len(good),
        guests=len(found),
        kernels=", ".join(sorted({one["kernel"] for one in good})),
        module=module,
    )
    longest = max(found.values(), key=total)
    lines = [*failures(bad), *happenings(good)]
    memory = MEMORY + "\n".join(line_of_guest(*one) for one in found.items()) + "\n"
    return head + "\n".join(lines) + "\n" + memory + CURVE + "\n".join(curve(longest)) + "\n"
