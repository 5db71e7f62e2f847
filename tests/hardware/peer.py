# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Transfers between this machine and another one, `--peer HOST`. The client also runs there, at the
end of an ssh connection. That machine needs a module for GPU memory, which is not loaded from here;
nothing but the client's file is written there, and it is removed at the end."""

import re
import shlex
import subprocess
import time
from typing import List

import machine
import measure
from context import MIB, Context
from talk import Broken, Client, Loop, NotHere, Pair

SSH = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"]
HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@:-]*\Z")
DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")
# What mktemp answers. The word goes into commands for the other machine.
DIRECTORY = re.compile(r"/tmp/nv_peer_mem-hardware\.[A-Za-z0-9]+\Z")
PLACE = "umask 077 && d=$(mktemp -d /tmp/nv_peer_mem-hardware.XXXXXXXX) && cat >$d/client"
LENGTHS = (65536, 1, 4096, 300001, 3 * MIB + 17)


def on_peer(host: str, command: str, limit: float = 60) -> machine.Ended:
    return machine.run([*SSH, host, command], limit)


def carry(c: Context) -> None:
    """The client is copied to the other machine, which is reached by ssh without a password."""
    with open(str(c.client_file), "rb") as file:
        done = subprocess.run(
            [*SSH, c.options.peer, PLACE + " && chmod 700 $d/client && echo $d"],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=60,
            check=False,
        )
    said = done.stdout.decode(errors="replace").strip()
    place = said.split("\n")[-1]
    if done.returncode or not DIRECTORY.match(place):
        raise NotHere(f"{c.options.peer} is not reached by ssh: {said}")
    c.journal.undo("remove", c.options.peer, place)
    c.journal.write("peer", place=place)
    c.ok("the client is there")


def remove(words: List[str]) -> str:
    """Removes the client from the other machine."""
    host, place = words
    if not HOST.match(host) or not DIRECTORY.match(place):
        return "the journal names no such machine and directory"
    done = on_peer(host, "rm -rf " + shlex.quote(place))
    return f"{host}:{place} stays: {done.output}" if done.code else ""


def far_client(c: Context) -> Client:
    """Starts the client on the other machine, with its first GPU and a device."""
    place = [record["place"] for record in c.journal.records() if record["is"] == "peer"][-1]
    program = place + "/client"
    gpus = on_peer(c.options.peer, f"echo gpus | {shlex.quote(program)}").output.split(";")
    if gpus[0] != "ok" or len(gpus) < 2:
        raise NotHere("no GPU there: " + gpus[0].replace("not ", "", 1))
    pair = Pair(0, gpus[1].split(" ")[0], c.options.peer_device or "", 1)
    words = [shlex.quote(word) for word in (program, "--gpu", pair.pci)]
    words += ["--device", shlex.quote(pair.device)] if pair.device else []
    return Client("", pair, c.journal, [*SSH, c.options.peer, " ".join(words)])


def registered(near: Client, far: Client, length: int) -> None:
    """Registers a buffer of GPU memory at each end."""
    for client, who in ((near, "here"), (far, "there")):
        client.sure("alloc", 0, "device", length)
        said = client.ask("reg", 0, 0, 0, length)
        if said != "ok" and client is far:
            raise NotHere(
                f"the other machine registers no GPU memory ({said}): load a module there"
            )
        if said != "ok":
            raise Broken(f"GPU memory is not registered {who}: {said}")


def transfers(c: Context) -> None:
    """Write, read and send between GPUs of two machines; the bytes are compared at both ends."""
    with c.client() as near, far_client(c) as far:
        loop = Loop(near, far)
        registered(near, far, 8 * MIB)
        for seed, length in enumerate(LENGTHS, 1):
            for operation in ("write", "read", "send"):
                source, target = (far, near) if operation == "read" else (near, far)
                source.sure("fill", 0, 0, length, seed)
                target.sure("fill", 0, 0, length + 64, 0)
                said = loop.do(operation, 0, 0, length, 0)
                text = f"{operation}, {length} bytes"
                c.equal(text, "ok", said)
                if said != "ok":
                    return
                got = [
                    target.ask("compare", 0, 0, length, seed),
                    target.ask("compare", 0, length, 64, 0),
                    source.ask("compare", 0, 0, length, seed),
                ]
                c.equal(text + ", the bytes at both ends", ["ok"] * 3, got)


def killed(c: Context) -> None:
    """The process here is killed in mid-transfer; the other machine's registration ends well."""
    with far_client(c) as far:
        near = c.client()
        loop = Loop(near, far)
        registered(near, far, 8 * MIB)
        loop.begin("write", 0, 8 * MIB, 0)
        time.sleep(0.5)
        near.kill()
        c.check("the process here is killed", near.process.returncode == -9)
        c.equal("the end of the registration there", "ok", far.ask("dereg", 0))


def measured(c: Context) -> None:
    """Bandwidth and latency between the GPUs of two machines."""
    with c.client() as near, far_client(c) as far:
        loop = Loop(near, far)
        registered(near, far, 8 * MIB)
        measure.transfers(c, loop, 0, "to the peer")
        loop.close()
        c.ok("measured")


OF_PEER = (
    ("peer-transfers", transfers, 300, 20, "hosts"),
    ("peer-killed", killed, 180, 10, "hosts"),
    ("peer-measure", measured, 300, 15, ""),
)
