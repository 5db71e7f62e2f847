# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Notes for each job that passed which files it had, and names the jobs whose files have changed
since.

A move may leave behind a job that only `all` or `debug` runs, and nobody sees the job fail. A
checksum covers the programs that the job runs, the programs that every job of the kind needs, and
the line in jobs.md. The checksum leaves out the product, which nearly every commit changes."""

import re
from collections.abc import Iterable
from pathlib import Path

from layers.cache import CACHE, LAB, TOP, hash_of, named
from run.jobs import Job

PASSED = CACHE / "passed"
# For each kind of job, the directory of the programs, and the files that every such job needs.
FILES = {
    "guest": ("guest/scenarios", ["guest/lib.sh", "guest/run", "guest/init"]),
    "pair": ("guest/scenarios", ["guest/lib.sh", "guest/run", "guest/init", "guest/hosts.sh"]),
    "system": ("guest/systems", ["guest/lib.sh", "guest/run", "guest/systems/machine"]),
    "package": ("packages", ["packages/lib.sh"]),
}
# The files of the layers that not all jobs have.
LAYERS = {
    "operators": ["doubles/operators", "guest/modules/trust"],
    "programs": ["guest/cuda.sh", "guest/cuda"],
    "wheels": ["guest/wheels.sh", "guest/cuda"],
    "hosts": ["guest/hosts", "guest/openmpi.sh"],
    "mlx5": ["doubles/nic"],
    "card": ["doubles/nic"],
}


def function(text: str, name: str) -> str:
    """Returns the function of a check. One of several lines ends with a brace at its beginning."""
    found = re.search(rf"^check_{name}\(\) (\{{\n.*?^\}}|.*?$)", text, re.MULTILINE | re.DOTALL)
    return found[0] if found else ""


def files(job: Job) -> Iterable[Path]:
    tests = TOP / "tests"
    if job.kind in FILES:
        place, common = FILES[job.kind]
        yield from (tests / place / f"{name}.sh" for name in job.runs)
        yield from (tests / name for name in common)
    for layer in job.layers:
        yield from (tests / name for name in LAYERS.get(layer, []))


def state(job: Job) -> str:
    """Returns a checksum of a job's line, programs and checks."""
    check = (LAB / "checks/check.sh").read_text(encoding="utf-8")
    checks = [function(check, name) for name in job.runs] if job.kind == "check" else []
    return named("", job.machine, job.layers, job.runs, checks, hash_of(*files(job)))


def note(job: Job) -> None:
    """Notes that a job has passed. The caller runs all programs of the job."""
    PASSED.mkdir(exist_ok=True)
    (PASSED / job.name).write_text(state(job), encoding="utf-8")


def summary(jobs: Iterable[Job]) -> str:
    """Returns a line about jobs that have changed since they passed, and about jobs without a note.
    The line is empty if there is no such job."""
    changed, never = [], 0
    for job in jobs:
        kept = PASSED / job.name
        if not kept.exists():
            never += 1
        elif kept.read_text(encoding="utf-8") != state(job):
            changed.append(job.name)
    said = [f"not run since they changed: {' '.join(changed)}"] if changed else []
    said += [f"{never} jobs of jobs.md have not passed on this machine yet"] if never else []
    return "; ".join(said)
