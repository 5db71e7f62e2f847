# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Compares nv_peer_mem with nvidia-peermem, and the ways to compile Rust with each other, in guests
whose clock counts instructions (../guest/bench.py). Stores the measurements in results.json.
../bench makes the report, whose exit status is also that of this program.
"""

import hashlib
import json
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cache import CACHE, TOP, Wrong, say
from guest import Guest
from jobs import Job
from layers import Layers, layers
from making import in_layers
from qemu import Options

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
WANTED = os.environ.get("LAB_SIZES", "64K,1M,16M,256M,4G,64G").split(",")
SIZES = [int(size[:-1]) * UNITS[size[-1]] for size in WANTED]
KEPT = Path(os.environ.get("LAB_BENCH", CACHE / "bench"))


def report(stack: str, *words: str, out: Path = KEPT) -> int:
    """Runs ../bench/report.py. Returns its exit status."""
    binds = [f"{TOP}/tests:/tests:ro", f"{KEPT}:/kept", f"{TOP}/docs:/docs", f"{out}:/out"]
    command = ["env", "PYTHONPATH=/tests/guest", "python3", "-B", "/tests/bench/report.py", *words]
    status: int = in_layers(stack, *command, binds=binds).returncode
    return status


def report_stack() -> str:
    return layers("bench", "tools", "python").stack


# ---- measuring -----------------------------------------------------------------------


@dataclass
class Measured:
    """The measurements of one guest, its layers, and whether the run succeeded."""

    made: Layers
    passed: bool
    measurements: list[Any]


def measure(job: Job) -> Measured:
    """Runs one guest, and returns its measurements. The seed is fixed, so that two runs have the
    same result."""
    made = layers(job.name, "guest", job.machine, *job.layers)
    words = f"lab.seed=1 lab.job={job.name} lab.sizes={','.join(map(str, SIZES))}"
    cpus = 4 if job.name == "bench-threads" else 1
    guest = Guest(job.name, made, job.runs, words, Options(cpus=cpus, clock="instructions"))
    result = guest.scenarios()[0]
    guest.forget()
    for text in result.failures:
        say(job.name, f"not ok: {text}")
    measurements = [json.loads(line) for line in guest.heard.get("metrics", [])]
    console = f"{CACHE}/log/{job.name}.console"
    say(job.name, f"{len(measurements)} measurements; console: {console}")
    return Measured(made, not result.failures, measurements)


def module_version(made: Layers, module: str) -> str:
    command = ["modinfo", "-k", made.kver, "-F", "version", module]
    version: str = in_layers(made.stack, *command, stdout=subprocess.PIPE, text=True).stdout
    return version.strip()


def qemu_version() -> str:
    command = ["qemu-system-x86_64", "--version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[3]


def facts_of(made: Layers, names: list[str]) -> dict[str, object]:
    """Returns the programs and layers with which the jobs NAMES have measured."""
    program = (TOP / "tests/guest/bench.py").read_text(encoding="utf-8")
    inputs = f"{made.stack} {names} {SIZES} {program}"
    return {
        "date": time.strftime("%F", time.gmtime()),
        "kernel": made.kver,
        "sizes": SIZES,
        "jobs": names,
        "qemu": qemu_version(),
        # Two runs with the same inputs should have the same results.
        "inputs": hashlib.sha256(inputs.encode()).hexdigest(),
        "nv_peer_mem": module_version(made, "nv_peer_mem"),
        "nvidia-peermem": module_version(made, "nvidia-peermem"),
    }


def measure_all(jobs: list[Job]) -> int:
    """Measures, stores the result next to that of the previous run, and makes the report."""
    measured = [measure(job) for job in jobs]
    made = measured[0].made
    facts = facts_of(made, [job.name for job in jobs])
    measurements = [one for guest in measured for one in guest.measurements]
    results = KEPT / "results.json"
    if results.exists():
        results.replace(KEPT / "before.json")
    text = json.dumps({"facts": facts, "measurements": measurements}, indent=1)
    results.write_text(text, encoding="utf-8")
    reported = report(made.stack, "/kept")
    say("bench", f"results.json, results.md and plots (*.svg) are in {KEPT}")
    return reported if all(guest.passed for guest in measured) else 1


# ---- commands --------------------------------------------------------------------------


def write_docs() -> int:
    if report(report_stack(), "/kept", "/docs/performance"):
        raise Wrong("docs/performance is as it was: tests/run bench makes complete results.")
    say(
        "bench",
        "docs/performance/results.md is written, and what its plots are drawn from; "
        "docs/performance.md must agree with it",
    )
    return 0


def draw(words: list[str]) -> int:
    """Draws the plots of docs/performance, into the directory that WORDS names."""
    if len(words) != 1:
        raise Wrong("where? tests/run bench --draw DIR")
    out = Path(words[0]).resolve()
    out.mkdir(parents=True, exist_ok=True)
    if report(report_stack(), "--draw", "/docs/performance", "/out", out=out):
        raise Wrong("the plots could not be drawn: the lines above say why.")
    say("bench", f"the plots of docs/performance/results.md are in {out}")
    return 0


def main(jobs: list[Job], words: list[str]) -> int:
    KEPT.mkdir(exist_ok=True)
    if words == ["--docs"]:
        return write_docs()
    if words[:1] == ["--draw"]:
        return draw(words[1:])
    names = [job.name for job in jobs]
    if set(words) - set(names):
        raise Wrong(f"what can be measured is: {' '.join(names)}")
    return measure_all([job for job in jobs if not words or job.name in words])
