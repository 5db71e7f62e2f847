# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares nv_peer_mem with an ideal client and with nvidia-peermem, in guests whose clock counts
instructions (../guest/bench.py). Stores the measurements, and prints the report of bench_report.py.
"""

import json
import subprocess
import time
from typing import Any

from bench import THREADS
from layers.cache import CACHE, TOP, Wrong, say
from layers.making import in_layers
from layers.stack import Layers, layers
from reports import bench_report
from run.guest import Guest
from run.jobs import Job
from run.qemu import Options

RESULTS = CACHE / "bench/results.json"
REPORT = TOP / "docs/performance/results.md"


def measure(job: Job) -> tuple[Layers, list[Any]]:
    """Runs the guest of a job. Returns the guest's layers and measurements. The seed is fixed, so
    that two runs have the same result."""
    made = layers(job.name, "guest", job.machine, *job.layers)
    words = f"lab.seed=1 lab.job={job.name}"
    cpus = max(THREADS) if job.name == "bench-threads" else 1
    guest = Guest(job.name, made, job.runs, words, Options(cpus=cpus, clock="instructions"))
    result = guest.scenarios()[0]
    guest.forget()
    if result.failures:
        raise Wrong(f"{job.name}: {'; '.join(result.failures)}")
    measurements = [json.loads(line) for line in guest.heard.get("metrics", [])]
    console = f"{CACHE}/log/{job.name}.console"
    say(job.name, f"{len(measurements)} measurements; console: {console}")
    return made, measurements


def module_version(made: Layers, module: str) -> str:
    command = ["modinfo", "-k", made.kver, "-F", "version", module]
    version: str = in_layers(made.stack, *command, stdout=subprocess.PIPE, text=True).stdout
    return version.strip()


def qemu_version() -> str:
    command = ["qemu-system-x86_64", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[3]


def facts_of(made: Layers) -> dict[str, str]:
    versions = {name: module_version(made, name) for name in ("nv_peer_mem", "nvidia-peermem")}
    date = time.strftime("%F", time.gmtime())
    return {"date": date, "kernel": made.kver, "qemu": qemu_version(), **versions}


def kept() -> bench_report.Run:
    """Returns the last run. It is complete, unless it measured only some of the jobs."""
    if not RESULTS.exists():
        raise Wrong("nothing was measured yet: tests/run bench.")
    run = bench_report.Run(**json.loads(RESULTS.read_text(encoding="utf-8")))
    if missing := run.missing():
        raise Wrong(
            f"{len(missing)} measurements are missing, the first is {missing[0]}: tests/run bench "
            "without names of jobs makes all."
        )
    return run


def main(jobs: list[Job], words: list[str]) -> int:
    if words == ["--docs"]:
        REPORT.write_text(bench_report.report(kept())[0], encoding="utf-8")
        say("bench", f"{REPORT.relative_to(TOP)} is written")
        return 0
    names = [job.name for job in jobs]
    if set(words) - set(names):
        raise Wrong(f"what can be measured is: {' '.join(names)}")
    measured = [measure(job) for job in jobs if not words or job.name in words]
    measurements = [one for _, some in measured for one in some]
    text = json.dumps({"facts": facts_of(measured[0][0]), "measurements": measurements}, indent=1)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(text, encoding="utf-8")
    say("bench", f"the measurements are in {RESULTS}")
    if words:
        return 0
    printed, missed = bench_report.report(kept())
    print(printed)
    return 1 if missed else 0
