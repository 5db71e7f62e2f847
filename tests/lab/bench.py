# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measurements beside nvidia-peermem, and of each ground beside the others, in guests whose time
counts instructions: what they report is kept in the file metrics, and tests/bench makes the
report of it.

Exit status: 0 if everything was measured and all bounds of it are met; 2 if bounds are
missed, all for known reasons (tests/bench/src/reasons.rs); 1 if anything else is wrong.
"""

import hashlib
import os
import subprocess
import time
from pathlib import Path

from guest import Guest
from layer import CACHE, TOP, Wrong, in_layers, say
from layers import layers

# What is registered (tests/guest/bench/lib.sh).
SIZES = os.environ.get("LAB_SIZES", "64K,1M,16M,256M,4G,64G")
KEPT = Path(os.environ.get("LAB_BENCH", CACHE / "bench"))


def program(facts, binds, *words):
    return in_layers(facts["bench_stack"], "bench-report", *words, binds=binds).returncode


def measure(job, metrics):
    """What one guest measures. Nothing is left to chance, or two runs could not agree."""
    label, facts = f"{job.runs[0]}@{job.machine}", layers(job.name, "guest", job.machine, *job.layers)
    guest = Guest(label, facts, job.runs, f"lab.seed=1 lab.sizes={SIZES}", cpus=4 if "threads" in label else 1, clock="instructions")
    result = guest.scenarios()[0]
    for line in guest.heard.get("metrics", []):
        metrics.write(f"{line}\n")
    guest.forget()
    for text in result.failures:
        say(label, f"not ok: {text}")
    say(label, f"{len(guest.heard.get('metrics', []))} measurements; console: {CACHE}/log/{label}.console")
    return facts, not result.failures


def version(facts, module):
    return in_layers(facts["stack"], "modinfo", "-k", facts["kver"], "-F", "version", module,
                     stdout=subprocess.PIPE, text=True).stdout.strip()


def main(jobs, words):
    KEPT.mkdir(exist_ok=True)
    tools = layers("bench", "tools", "bench")
    if words == ["--docs"]:
        if program(tools, [f"{KEPT}:/bench:ro", f"{TOP}/docs:/docs"], "docs", "/bench", "/docs/performance"):
            raise Wrong("docs/performance is as it was: tests/run bench makes complete results.")
        say("bench", "docs/performance/results.md and its plots are written; docs/performance.md must agree with them")
        return 0
    if set(words) - {job.name for job in jobs}:
        raise Wrong(f"what can be measured is: {' '.join(job.name for job in jobs)}")
    jobs = [job for job in jobs if not words or job.name in words]
    with open(KEPT / "metrics", "w", encoding="utf-8") as metrics:
        measured = [measure(job, metrics) for job in jobs]
    facts, guests = measured[0][0], ",".join(f"{job.runs[0]}@{job.machine}" for job in jobs)
    units = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
    sizes = ",".join(str(int(size[:-1]) * units[size[-1]]) for size in SIZES.split(","))
    qemu = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout.split()[3]
    # Two runs with the same of these should agree.
    inputs = hashlib.sha256(f"{facts['stack']} {guests} {SIZES}".encode()).hexdigest()[:12]
    reported = program(tools, [f"{KEPT}:/bench"], "report", "/bench", guests, sizes, f"date={time.strftime('%F', time.gmtime())}",
                       f"kernel={facts['kver']}", f"sizes={SIZES}", f"qemu={qemu}", f"nv_peer_mem={version(facts, 'nv_peer_mem')}",
                       f"nvidia-peermem={version(facts, 'nvidia-peermem')}", f"inputs={inputs}")
    say("bench", f"results.json and plots (*.svg) are in {KEPT}")
    return reported if all(well for _, well in measured) else 1
