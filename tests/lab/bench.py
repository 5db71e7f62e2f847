# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measurements beside nvidia-peermem, and of each way to compile Rust beside the others, in guests whose time
counts instructions (../guest/bench.py). What they say is kept in results.json; ../bench makes the
report of it, whose exit status is that of tests/run bench.
"""

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

from guest import Guest
from cache import CACHE, TOP, Wrong, say
from layers import layers
from making import in_layers

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SIZES = [int(size[:-1]) * UNITS[size[-1]] for size in os.environ.get("LAB_SIZES", "64K,1M,16M,256M,4G,64G").split(",")]
KEPT = Path(os.environ.get("LAB_BENCH", CACHE / "bench"))


def report(stack, *words, out=KEPT):
    binds = [f"{TOP}/tests:/tests:ro", f"{KEPT}:/kept", f"{TOP}/docs:/docs", f"{out}:/out"]
    return in_layers(stack, "python3", "-B", "/tests/bench/report.py", *words, binds=binds).returncode


def measure(job):
    """What one guest measures. Nothing is left to chance, or two runs could not agree."""
    facts, words = layers(job.name, "guest", job.machine, *job.layers), f"lab.seed=1 lab.job={job.name} lab.sizes={','.join(map(str, SIZES))}"
    guest = Guest(job.name, facts, job.runs, words, cpus=4 if job.name == "bench-threads" else 1, clock="instructions")
    result = guest.scenarios()[0]
    guest.forget()
    for text in result.failures:
        say(job.name, f"not ok: {text}")
    measurements = list(map(json.loads, guest.heard.get("metrics", [])))
    say(job.name, f"{len(measurements)} measurements; console: {CACHE}/log/{job.name}.console")
    return facts, not result.failures, measurements


def version(facts, module):
    return in_layers(facts["stack"], "modinfo", "-k", facts["kver"], "-F", "version", module,
                     stdout=subprocess.PIPE, text=True).stdout.strip()


def draw(directory=None, *more):
    """The plots of docs/performance, into a directory."""
    if directory is None or more:
        raise Wrong("where? tests/run bench --draw DIR")
    out = Path(directory).resolve()
    out.mkdir(parents=True, exist_ok=True)
    if report(layers("bench", "tools", "python")["stack"], "--draw", "/docs/performance", "/out", out=out):
        raise Wrong("the plots could not be drawn: the lines above say why.")
    say("bench", f"the plots of docs/performance/results.md are in {out}")
    return 0


def main(jobs, words):
    KEPT.mkdir(exist_ok=True)
    if words == ["--docs"]:
        if report(layers("bench", "tools", "python")["stack"], "/kept", "/docs/performance"):
            raise Wrong("docs/performance is as it was: tests/run bench makes complete results.")
        say("bench", "docs/performance/results.md is written, and what its plots are drawn from; docs/performance.md must agree with it")
        return 0
    if words[:1] == ["--draw"]:
        return draw(*words[1:])
    if set(words) - {job.name for job in jobs}:
        raise Wrong(f"what can be measured is: {' '.join(job.name for job in jobs)}")
    jobs = [job for job in jobs if not words or job.name in words]
    measured = [measure(job) for job in jobs]
    stack, names, program = measured[0][0]["stack"], [job.name for job in jobs], (TOP / "tests/guest/bench.py").read_text(encoding="utf-8")
    facts = {"date": time.strftime("%F", time.gmtime()), "kernel": measured[0][0]["kver"], "sizes": SIZES, "jobs": names,
             "qemu": subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout.split()[3],
             # Two runs with the same of these should agree.
             "inputs": hashlib.sha256(f"{stack} {names} {SIZES} {program}".encode()).hexdigest()}
    facts |= {module: version(measured[0][0], module) for module in ("nv_peer_mem", "nvidia-peermem")}
    results, before = KEPT / "results.json", KEPT / "before.json"
    if results.exists():
        results.replace(before)
    measurements = [one for *_, those in measured for one in those]
    results.write_text(json.dumps({"facts": facts, "measurements": measurements}, indent=1), encoding="utf-8")
    reported = report(stack, "/kept")
    say("bench", f"results.json, results.md and plots (*.svg) are in {KEPT}")
    return reported if all(well for _, well, _ in measured) else 1
