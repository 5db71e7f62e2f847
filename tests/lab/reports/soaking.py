# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Runs the soak: registrations of one module, in rounds, until there were as many as are wanted.
There are two kinds (KINDS of soak_report.py): rare registrations on the debug kernel, and many on
Debian's own. Guests of both kinds take turns.

A guest asks for one round after another (../guest/scenarios/soak.sh). A round is noted as soon as
it is over, in a file that is named after the module's source. A run that is cut off loses only the
rounds that were not over, and the next run goes on after the noted rounds. A round that has failed
is noted for good; its registrations do not count, and the next run repeats it. To put the cause of
the failure into the report, add it to the round's line in the file, as "why".
"""

import gzip
import hashlib
import itertools
import json
import os
import re
import subprocess
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

from layers.cache import CACHE, LAB, TOP, Wrong, locked, say
from reports.soak_report import KINDS, Kind, Round, page, report, total
from run.jobs import Job
from run.qemu import TIMEOUT
from run.runs import Run, slots

# The number of rounds of a guest. The guests take turns with the RDMA devices, and a guest with
# more rounds shows better whether memory in use grows.
ROUNDS_OF_A_GUEST = 10

# The first file has the rounds from other machines, and names their module. The second file is the
# page with the report of all rounds.
ELSEWHERE, PAGE = LAB / "reports/soak.json.gz", TOP / "docs/proof.md"


def module() -> str:
    """Returns a name for the module's source, because a soak says nothing about changed source.
    Files that a build leaves there make no difference."""
    listed = ["git", "-C", str(TOP), "ls-files", "-co", "--exclude-standard", "src", "Kbuild"]
    names = subprocess.run(listed, capture_output=True, text=True, check=False).stdout.split()
    if not names:
        raise Wrong("a soak wants a git checkout, to know which files are the module's source.")
    found = hashlib.sha256()
    for name in sorted(names):
        content = (TOP / name).read_bytes()
        found.update(f"{name} {len(content)} ".encode() + content)
    return found.hexdigest()[:12]


# ---- the record -------------------------------------------------------------------------


class Record:
    """The finished rounds of a module, on other machines and on this one."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.path = CACHE / "soak" / f"{module}.jsonl"
        self.path.parent.mkdir(exist_ok=True)
        # A last line without a newline was cut off, so it is removed.
        if self.path.exists() and not (text := self.path.read_text("utf-8")).endswith("\n"):
            self.path.write_text(text[: text.rfind("\n") + 1], encoding="utf-8")

    def add(self, one: Round) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
        except OSError as error:
            raise Wrong(f"cannot write to {self.path}: {error.strerror}. Make room.") from error

    def rounds(self) -> list[Round]:
        """Returns all failed rounds, and each good round once, in the order in which they ended."""
        # When there was only one kind, the rounds did not name it.
        found = [{"kind": KINDS[0].name, **one} for one in (*self.elsewhere(), *self.here())]
        good = {(one["kind"], one["number"]): one for one in found if "failed" not in one}
        bad = {(one["kind"], one["number"], one["guest"]): one for one in found if "failed" in one}
        return sorted([*good.values(), *bad.values()], key=lambda one: one["ended"])

    def here(self) -> Iterator[Round]:
        if not self.path.exists():
            return
        for number, line in enumerate(self.path.read_text("utf-8").splitlines(), 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                text = f"{self.path}, line {number}, is no round: take the line out."
                raise Wrong(text) from error

    def elsewhere(self) -> list[Round]:
        if not ELSEWHERE.exists():
            return []
        kept = json.loads(gzip.decompress(ELSEWHERE.read_bytes()))
        return kept["rounds"] if kept["module"] == self.module else []


def write_docs(module: str) -> int:
    rounds = Record(module).rounds()
    if not rounds:
        raise Wrong("nothing has run with the module as it is: tests/run soak.")
    text = json.dumps({"module": module, "rounds": rounds}, indent=0)
    for path, content in (
        (ELSEWHERE, gzip.compress(text.encode(), mtime=0)),
        (PAGE, page(PAGE.read_text("utf-8"), report(module, rounds)).encode()),
    ):
        new = path.with_suffix(".new")
        new.write_bytes(content)
        new.replace(path)
    say("soak", f"docs/{PAGE.name} has the report of {total(rounds):,} registrations")
    return 0


# ---- the next round -----------------------------------------------------------------------


class Soak:
    """The finished rounds of one kind, and the rounds that are under way, by guest. On each device,
    GOAL registrations are wanted."""

    def __init__(self, module: str, kind: Kind, goal: int) -> None:
        self.kind, self.goal, self.record = kind, goal, Record(module)
        self.over = [one for one in self.record.rounds() if one["kind"] == kind.name]
        self.under_way: dict[str, Round] = {}
        # Guests ask at any time, so this lock protects both lists of rounds.
        self.asked = threading.Lock()

    def next_round(self, guest: str, device: str, threads: str) -> str:
        """Answers a guest with SEED REGISTRATIONS, or `enough` if no round is left for it."""
        with self.asked:
            under_way = list(self.under_way.values())
            there = [one for one in under_way if one["device"] == device]
            if self.registrations(device) + total(there) >= self.goal:
                return "enough"
            if sum(one["guest"] == guest for one in self.over) >= ROUNDS_OF_A_GUEST:
                return "enough"
            good = [one for one in self.over if "failed" not in one]
            taken = {one["number"] for one in [*good, *under_way]}
            number = next(number for number in itertools.count() if number not in taken)
            seed = zlib.crc32(f"{self.record.module} {self.kind.name} {number}".encode())
            self.under_way[guest] = {
                "kind": self.kind.name,
                "number": number,
                "guest": guest,
                "device": device,
                "threads": threads,
                "seed": seed,
                "registrations": self.kind.round,
                "began": now(),
            }
            return f"{seed} {self.kind.round}"

    def round_ended(self, guest: str, seed: str, *figures: str) -> str:
        with self.asked:
            one = self.under_way.pop(guest)
            if one["seed"] != int(seed):
                raise Wrong(f"{guest} has ended a round of seed {seed}, not {one['seed']}")
            for name, value in (figure.split("=") for figure in figures):
                one[name] = int(value) if value.isdecimal() else value
            self.note(one)
            self.say_done("have run")
            return "noted"

    def say_done(self, when: str) -> None:
        parts = (
            f"{self.registrations(device):,} of {self.goal:,} on {device}"
            for device in self.kind.devices
        )
        say("soak", f"{self.kind.name}: {', '.join(parts)} registrations {when}")

    def missing(self) -> list[str]:
        """Returns the devices with too few registrations."""
        return [one for one in self.kind.devices if self.registrations(one) < self.goal]

    def note(self, one: Round) -> None:
        one["ended"] = now()
        self.record.add(one)
        self.over.append(one)

    def note_failed(self, job: Job, guest: str) -> None:
        """Notes the round of a guest that failed. A round that was cut off is not noted."""
        one = self.under_way.pop(guest, None)
        if one and job.failures:
            self.note({**one, "failed": job.failures})

    def registrations(self, device: str) -> int:
        """Returns the number of registrations that have run in guests with DEVICE."""
        return total([one for one in self.over if one["device"] == device])

    def answers(self, guest: str, device: str, threads: str) -> dict[str, Callable[..., str]]:
        return {
            "next_round": lambda: self.next_round(guest, device, threads),
            "round_ended": lambda seed, *figures: self.round_ended(guest, seed, *figures),
        }


def now() -> str:
    return time.strftime("%F %R", time.gmtime())


# ---- a run ----------------------------------------------------------------------------------


class SoakRun(Run):
    """A run that notes a failed round at once, because the run may be cut off at any time."""

    def __init__(self, soak: Soak, jobs: dict[str, Job]) -> None:
        super().__init__("soak", list(jobs.values()))
        self.soak, self.guests = soak, {job.name: guest for guest, job in jobs.items()}

    def over(self, job: Job, passed: bool) -> None:
        super().over(job, passed)
        self.soak.note_failed(job, self.guests[job.name])


def guests() -> tuple[int, str]:
    """Returns the number of guests, and the threads of each. A guest has a thread for each of its
    processors, because races are rare otherwise."""
    if threads := os.environ.get("LAB_THREADS"):
        return slots(), threads
    return max(1, slots() // 2), "multi"


def device_of(job: Job) -> str:
    return "mlx5" if "mlx5" in job.layers else "rxe"


def next_guests(jobs: list[Job], soak: Soak) -> dict[str, Job]:
    """Returns a job for each guest of SOAK that runs next, by the guest's name. The device with the
    fewest registrations so far comes first, so that the devices' parts differ by one guest at
    most."""
    number, threads = guests()
    began = time.strftime("%m%d%H%M%S", time.gmtime())
    missing = soak.missing()
    those = [job for job in jobs if job.machine == soak.kind.machine and device_of(job) in missing]
    if not those:
        raise Wrong(
            f"tests/lab/jobs.md has no soak on {soak.kind.machine} for {' '.join(missing)}."
        )
    fewest_first = sorted(those, key=lambda job: soak.registrations(device_of(job)))
    found = {}
    for index, job in zip(range(number), itertools.cycle(fewest_first)):
        guest, device = f"{soak.kind.name}-{began}-{index}", device_of(job)
        found[guest] = replace(
            job,
            name=f"soak-{guest}",
            again=f"job {job.name}",
            words="lab.rounds=asked",
            options=replace(job.options, threads=threads, timeout=2 * TIMEOUT),
            answers=soak.answers(guest, device, threads),
        )
    return found


def chosen(words: list[str]) -> list[tuple[Kind, int]]:
    """Returns the kinds that WORDS name, each with its number of registrations: [KIND] [NUMBER]."""
    kinds = {kind.name: kind for kind in KINDS}
    name = words[0] if words and words[0] in kinds else ""
    rest = words[1:] if name else words
    if len(rest) > 1 or not all(re.fullmatch("[1-9][0-9]*", word) for word in rest):
        raise Wrong(
            f"soak takes {' or '.join(kinds)}, and a number of registrations on each device, or "
            f"--docs, not '{' '.join(words)}'."
        )
    return [
        (kind, int(rest[0]) if rest else kind.goal) for kind in KINDS if name in ("", kind.name)
    ]


def run(jobs: list[Job], module: str, kinds: list[tuple[Kind, int]]) -> int:
    """Runs guests of these kinds in turns, until each kind has its registrations or a guest fails.
    Returns the exit status."""
    # Two runs at a time would run the same rounds.
    with locked(CACHE / "soak.lock", busy="a soak is running already."):
        soaks = [Soak(module, kind, goal) for kind, goal in kinds]
        for soak in soaks:
            soak.say_done(f"have run before, with module {module}")
        status = 0
        while not status and (waiting := [soak for soak in soaks if soak.missing()]):
            for soak in waiting:
                status = status or SoakRun(soak, next_guests(jobs, soak)).all()
        record = Record(module)
        path = record.path.with_suffix(".md")
        path.write_text(report(module, record.rounds()), encoding="utf-8")
        say("soak", f"the report: {path}")
        return status
