# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The commands of the image: `serve` keeps the module, `unload` lets the module go, and `probe`
tells whether GPU memory can be registered."""

from __future__ import annotations

import os
import subprocess
import sys

from . import kernel, metrics, report
from .cache import Cache, Unsafe
from .node import Node
from .owners import owners, who
from .serve import serve
from .settings import CACHE, Wrong, settings

USAGE = """\
Usage: nv-peer-mem serve | unload | probe [--selftest] | metrics
  serve    waits for NVIDIA's driver and the RDMA core, builds the module for them, loads it, and
           does so again when one of them is replaced; unloads it when the container ends
  unload   unloads the module, and has serve leave it unloaded until the container starts again
  probe    exits with 0 if the module is registered with the RDMA core, and prints the state
           --selftest  also registers GPU memory; the container needs a GPU and RDMA devices
  metrics  prints what the port of serve gives to Prometheus
Environment of serve:
  NVPM_NAME=         nvidia_peermem or nv_peer_mem: the module's name  (default: nvidia_peermem)
  NVPM_PARAMETERS=   parameters of the module                          (default: none)
  NVPM_METRICS_PORT= port for Prometheus, /metrics; 0: none            (default: 9989)
"""


def unload(node: Node) -> int:
    """Unloads the module, and asks `serve` not to load it again."""
    asked = report.asked()
    asked.parent.mkdir(parents=True, exist_ok=True)
    asked.touch()
    own = node.own()
    if not own:
        report.say("no module of this project is loaded.")
        return 0
    try:
        kernel.unload(own.name)
    except kernel.Refused as refused:
        report.say(f"{refused}: {who(own.references, owners())}. It is unloaded when they end.")
        return 1
    report.say(f"{own.name} {own.version} is unloaded.")
    return 0


def probe(node: Node, words: list[str]) -> int:
    """Returns 0 if `serve` has reached its aim, and the module is still registered."""
    status = report.read()
    if not status:
        report.say("serve has not begun.")
        return 1
    own = node.own()
    registered = own is not None and node.registered(own.name)
    ready = status.ready and not status.stale and registered
    if ready:
        report.say(f"{status.state}: {status.reason}")
    elif status.stale and status.ready:
        report.say(f"serve has not looked at the node for a minute; it was {status.state}")
    elif status.ready:
        report.say("the module was unloaded a moment ago")
    else:
        report.say(f"{status.state}: {status.reason}")
    if ready and words == ["--selftest"]:
        return subprocess.run(["nvpm", "selftest"], check=False).returncode
    return 0 if ready else 1


def main(words: list[str]) -> int:
    node = Node()
    if words == ["unload"]:
        return unload(node)
    if words in (["probe"], ["probe", "--selftest"]):
        return probe(node, words[1:])
    if words == ["metrics"]:
        sys.stdout.write(metrics.metrics(node, report.read()))
        return 0
    if words == ["serve"]:
        try:
            chosen = settings(os.environ)
            return serve(chosen, node, Cache(CACHE), report.Report())
        except (Unsafe, Wrong) as wrong:
            report.say(f"{wrong}.")
            return 2
    sys.stderr.write(USAGE)
    return 0 if words in (["--help"], ["-h"]) else 2


sys.exit(main(sys.argv[1:]))
