# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Reads the table in jobs.md, checks its contents, and finds the jobs that a command runs."""

import re
from collections.abc import Iterable
from dataclasses import replace

from layers.cache import LAB, TOP, Wrong
from layers.machines import machines
from layers.stack import Layers
from run.jobs import Job, headers

# For each command, the words of the column "in" that select its jobs.
COMMANDS = {
    "test": {"test"},
    "all": {"test", "all"},
    "debug": {"debug"},
    "soak": {"soak"},
    "bench": {"bench"},
}

# The directory of the files that each kind of job runs.
PLACES = {
    "guest": "guest/scenarios",
    "pair": "guest/scenarios",
    "system": "guest/systems",
    "package": "packages",
}

# Checks that can run a single test: `tests/run host models::freed`.
TESTED = {"models", "arithmetic", "kernel_crate", "c_half"}

# The headers that a scenario's comment may have.
HEADERS = {"Shows": ".+", "Clock": "instructions, .*|instructions"}
HEADERS |= dict.fromkeys(("Cards", "Gpu", "Nics"), "[0-9]+")


def names_of(functions: Iterable[str], prefix: str) -> set[str]:
    return {name.removeprefix(prefix) for name in functions if name.startswith(prefix)}


def known_words() -> dict[str, set[str]]:
    """Returns the permitted values of each column, and the names that each kind of job may run."""
    check = (LAB / "checks/check.sh").read_text(encoding="utf-8")
    known = {
        "where": set().union(*COMMANDS.values()),
        "machine": {*machines(), "-"},
        "layers": names_of(vars(Layers), "extra_")
        | {"base", "host", "hostsweep", "client", "debian11"},
        "check": set(re.findall(r"^check_(\w+)\(\)", check, re.MULTILINE)),
        "compile": set(machines()),
    }
    for kind, place in PLACES.items():
        known[kind] = {path.stem for path in (TOP / "tests" / place).glob("*.sh")}
    # lib.sh is not a test: it has the functions that all tests of packages share.
    known["package"].discard("lib")
    return known


def wrong(what: str) -> Wrong:
    return Wrong(f"tests/lab/jobs.md: {what}")


def read_line(line: str, known: dict[str, set[str]]) -> Job:
    """Returns the job that a line describes. Raises Wrong if a word of the line is not
    permitted."""
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if len(cells) != 7 or not cells[0]:
        raise wrong(f"seven columns are wanted: {line}")
    name, where, kind, machine, layers, runs, why = cells
    job = Job(name, where, kind, machine, layers.split(), runs.split(), why)
    if one := machines().get(machine):
        job.kernel = f"{one.kernel} {one.packages} {one.release} {one.flavour}"
    if kind not in known:
        raise wrong(f"{name}: '{kind}' is no kind")
    columns = {
        "where": [where],
        "machine": [machine],
        "layers": job.layers,
        kind: job.runs or ["nothing"],
    }
    for column, words in columns.items():
        for word in words:
            if word not in known[column]:
                raise wrong(f"{name}: there is no '{word}' ({column})")
    return job


def read_table() -> list[Job]:
    """Returns all jobs. Raises Wrong if a scenario belongs to no job."""
    known = known_words()
    text = (TOP / "tests/lab/jobs.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("|")][2:]
    jobs = [read_line(row, known) for row in rows]
    names = [job.name for job in jobs]
    for name in names:
        if names.count(name) > 1:
            raise wrong(f"the name {name} is there twice")
    for scenario in known["guest"]:
        check_headers(scenario)
    check_all_used(jobs, known)
    return jobs


def check_headers(scenario: str) -> None:
    """Refuses unknown headers, because a misspelt header would have no effect and nobody would
    notice."""
    path = f"tests/guest/scenarios/{scenario}.sh"
    found = headers(scenario)
    for name, value in found.items():
        if name not in HEADERS or not re.fullmatch(HEADERS[name], value):
            there = ", ".join(HEADERS)
            raise Wrong(f"{path}: '# {name}: {value}' means nothing; there are: {there}")
    if "Shows" not in found:
        raise Wrong(f"{path}: a line '# Shows: ...' is missing")


def check_all_used(jobs: list[Job], known: dict[str, set[str]]) -> None:
    """Checks that each file of a kind belongs to a job. If several kinds have the same directory, a
    file may belong to a job of any of these kinds."""
    for kind, place in PLACES.items():
        used = {name for job in jobs if PLACES.get(job.kind) == place for name in job.runs}
        if idle := known[kind] - used:
            raise wrong(f"in no job: {' '.join(sorted(idle))} ({kind})")


# ---- the jobs of a command ----------------------------------------------------------


def all_runs(jobs: list[Job]) -> str:
    return " ".join(sorted({name for job in jobs for name in job.runs}))


def chosen(jobs: list[Job], kinds: list[str], words: list[str]) -> list[Job]:
    """Returns the jobs of these kinds that run one of WORDS, reduced to that run. Without WORDS,
    returns all jobs of these kinds."""
    those = [job for job in jobs if job.kind in kinds and job.where != "bench"]
    return [job_of(word, those) for word in words] if words else those


def job_of(text: str, jobs: list[Job]) -> Job:
    """Returns the job that NAME, NAME@MACHINE or NAME::TEST describes. Without MACHINE, returns the
    first job that runs NAME."""
    word, _, tests = text.partition("::")
    name, _, machine = word.partition("@")
    those = [job for job in jobs if name in job.runs]
    if not those:
        raise Wrong(f"there is no '{name}' here, only: {all_runs(jobs)}")
    if tests and name not in TESTED:
        raise Wrong(f"'{name}' has no tests to choose from; these have: {' '.join(sorted(TESTED))}")
    if machine and machine not in machines():
        raise Wrong(f"there is no machine '{machine}', only: {' '.join(machines())}")
    job = next((job for job in those if job.machine == machine), those[0])
    machine = machine or job.machine
    label = name if job.machine == "-" else f"{name}@{machine}"
    return replace(job, name=label, machine=machine, runs=[name], tests=tests)
