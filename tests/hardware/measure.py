# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Measures what a registration and its end take, and what transfers reach, by each way: this
module in both modes, nvidia-peermem, dma-buf. The page compares the figures."""

from pathlib import Path
from typing import Tuple

import machine
import undo
from context import KIB, MIB, Context
from talk import Client, Loop, NotHere

SIZES = (64 * KIB, MIB, 16 * MIB)
THREADS = (1, 4)
ROUNDS = 200
SECONDS = 2
# A message of the bandwidth, and one of the latency.
LARGE, SMALL = MIB, 8


def ours(c: Context) -> None:
    """The time of a registration and its end, bandwidth and latency, by the loaded module."""
    measured(c, "pointer")


def by_dma_buf(c: Context) -> None:
    """The same by dma-buf."""
    measured(c, "dmabuf")


def measured(c: Context, how: str) -> None:
    with c.client() as client:
        client.sure("alloc", 0, "device", max(SIZES))
        client.sure("alloc", 1, "device", max(SIZES))
        registered = "reg" if how == "pointer" else "regbuf"
        said = client.ask(registered, 0, 0, *([0] if how == "pointer" else []), max(SIZES))
        if how == "dmabuf" and said != "ok":
            raise NotHere("no dma-buf: " + said)
        c.equal("a registration", "ok", said)
        if said != "ok":
            return
        for size in SIZES:
            timed(c, client, size, ("registration", "its end"), "time", how)
        client.sure(registered, 1, 1, *([0] if how == "pointer" else []), max(SIZES))
        loop = Loop(client, client)
        transfers(c, loop, 1, "loopback")
        loop.close()
        c.ok("measured")


def timed(
    c: Context, client: Client, size: int, names: Tuple[str, str], command: str, *how: str
) -> None:
    """Measures how long a command of the client takes, by threads: its beginning and its end, which
    have these names."""
    for threads in THREADS:
        times = client.sure(command, 0, size, ROUNDS, threads, *how, limit=300)
        text = "{} KiB, {} thread{}".format(size // KIB, threads, "s"[: threads > 1])
        for name, time in zip(names, times):
            c.figure(f"{name}, {text}", int(time) / 1000, "us")


def transfers(c: Context, loop: Loop, remote: int, name: str) -> None:
    """Measures bandwidth and latency from the region 0 here to the region REMOTE there."""
    key = loop.there.sure("key", remote)
    for operation in ("write", "read"):
        words = (loop.first, operation, 0, 0)
        rate = loop.here.sure("rate", SECONDS, *words, LARGE, *key)
        c.figure(f"{operation}, 1 MiB, {name}", int(rate[0]) / 1e9, "GB/s")
        time = loop.here.sure("latency", 1000, *words, SMALL, *key)
        c.figure(f"{operation}, 8 bytes, {name}", int(time[0]) / 1000, "us")


def load_theirs(c: Context) -> None:
    """NVIDIA's nvidia-peermem is loaded, to be measured in the same run."""
    found = machine.run(["modinfo", "-n", "nvidia-peermem"], 30)
    if found.code or not found.output:
        raise NotHere("there is no nvidia-peermem")
    marker = machine.run(["modinfo", "-F", "description", "nvidia-peermem"], 30).output
    if Path(found.output).name.startswith("nv_peer_mem") or "marker" in marker:
        raise NotHere("the file of this name is the marker of nv_peer_mem")
    c.journal.undo("unload", "nvidia_peermem")
    done = machine.run(["modprobe", "nvidia-peermem"], undo.LIMIT)
    c.check("nvidia-peermem is loaded", undo.loaded("nvidia_peermem"), done.output)
