# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The report of a soak's rounds, a part of docs/proof.md."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

# The record of a round that is over: its description, and its figures by their names.
Round = dict[str, Any]


class Kind(NamedTuple):
    """A kind of soak: the machine (../lab/kernels) and the devices of its guests, the number of
    registrations that are wanted on each device, the number in a round, by how many KiB the memory
    in use may grow (../guest/scenarios/soak.sh), and a text for the report."""

    name: str
    machine: str
    devices: tuple[str, ...]
    goal: int
    round: int
    growth: int
    text: str


# An emulated machine prints nothing during a round, and each round takes some minutes. The checks
# after a round of the debug kernel take as long as a thousand registrations there.
KINDS = (
    Kind(
        "rare",
        "debug",
        ("rxe", "mlx5"),
        100_000,
        10_000,
        128,
        "On a kernel with KASAN, lockdep, kmemleak and DMA-API debug, which report one mistake.",
    ),
    Kind(
        "many",
        "stock",
        ("rxe",),
        10_000_000,
        50_000,
        256,
        "On Debian's kernel, where registrations are fast, for mistakes that only add up.",
    ),
)

DEVICES = {
    "rxe": "the kernel's software device, rxe",
    "mlx5": "an emulated ConnectX with NVIDIA's driver mlx5",
}

# The report stands between these lines in the page. The text around them is written by hand.
BEGIN = "<!-- tests/run soak --docs writes the report from here on. -->"
END = "<!-- The report ends here. -->"

HEAD = """\
These registrations have run with the module whose source has the hash `{module}`:

| kind | device | wanted | have run | missing | rounds | failed rounds | guests | kernel |
|---|---|---|---|---|---|---|---|---|
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

# Sorts of rounds, by the words with which the report describes their registrations.
# ../guest/scenarios/soak.sh explains the seed's last bits.
SORTS: dict[str, Callable[[Round], bool]] = {
    "in rounds with persistent pins": lambda one: one["seed"] % 2 == 1,
    "in rounds with revocable pins, which end when memory is freed": lambda one: (
        one["seed"] % 2 == 0
    ),
    "in rounds in which the driver also takes memory away": lambda one: one["seed"] // 2 % 2 == 1,
    "in guests whose processors really run at once": lambda one: one["threads"] == "multi",
}

MEMORY = """\
**Memory in use**

The figures are the bytes that the kernel has allocated in slabs, from vmalloc and for each
processor, after it has freed all memory that it can free at any time. A guest makes and ends two
thousand registrations before its first round, which are not counted, because some memory of the
first registrations is kept for good. A round fails if afterwards {growth} KiB more are in use than
the lowest figure so far, or if there are 32 MiB less of free pages than at first.

| guest | device | threads | tried | at first | lowest | highest | last | difference | free pages |
|---|---|---|---|---|---|---|---|---|---|
"""

CURVE = """\

**The longest guest, round by round**

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
    yield "**Events**"
    yield ""
    yield "| number | event |"
    yield "|---|---|"
    for name, text in HAPPENED.items():
        yield f"| {sum(one[name] for one in rounds):,} | {text} |"
    for text, is_one in SORTS.items():
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
    yield "**Rounds that have failed**"
    yield ""
    for one in rounds:
        place = f"{one['device']}, {one['threads']}, {one['ended']}"
        yield f"* seed {one['seed']}, {place}: {'; '.join(one['failed'])}"
        if why := one.get("why"):
            yield f"  Why: {why}"
    yield ""


def done(kind: Kind, rounds: list[Round]) -> Iterator[str]:
    """Yields a line for each device: how many registrations have run, and how many are missing."""
    for device in kind.devices:
        those = [one for one in rounds if one["device"] == device]
        good = [one for one in those if "failed" not in one]
        run, guests = total(good), len(by_guest(good))
        kernels = ", ".join(sorted({one["kernel"] for one in good}))
        numbers = (
            kind.goal,
            run,
            max(0, kind.goal - run),
            len(good),
            len(those) - len(good),
            guests,
        )
        cells = [kind.name, DEVICES[device], *(f"{one:,}" for one in numbers), kernels]
        yield f"| {' | '.join(cells)} |"


def about(kind: Kind, rounds: list[Round]) -> Iterator[str]:
    """Yields the lines of the report about one kind."""
    good = [one for one in rounds if "failed" not in one]
    yield f"### {kind.name.capitalize()}"
    yield ""
    yield kind.text
    yield ""
    yield from failures([one for one in rounds if "failed" in one])
    if not good:
        yield "No round has passed."
        yield ""
        return
    begin, end = min(one["began"] for one in good), max(one["ended"] for one in good)
    yield f"The registrations ran between {begin} and {end} (UTC)."
    yield ""
    yield from happenings(good)
    guests = by_guest(good)
    yield MEMORY.format(growth=kind.growth) + "\n".join(
        line_of_guest(*one) for one in guests.items()
    )
    yield CURVE + "\n".join(curve(max(guests.values(), key=total)))
    yield ""


def report(module: str, rounds: list[Round]) -> str:
    those = {kind: [one for one in rounds if one["kind"] == kind.name] for kind in KINDS}
    table = [line for kind, found in those.items() for line in done(kind, found)]
    lines = [line for kind, found in those.items() for line in about(kind, found)]
    return HEAD.format(module=module) + "\n".join([*table, "", *lines]).rstrip("\n") + "\n"


def page(old: str, text: str) -> str:
    """Returns the page with TEXT in place of its report."""
    before, rest = old.split(BEGIN)
    after = rest.split(END)[1]
    return "".join([before, BEGIN, "\n\n", text, "\n", END, after])
