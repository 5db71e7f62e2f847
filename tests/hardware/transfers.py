# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The steps that transfer data by an RDMA device, and compare every byte."""

from typing import Tuple

from context import BLOCK, MIB, Context
from talk import Broken, Client, Loop, NotHere

# Lengths and offsets as in the scenario `layouts`.
RANGES = ((65536, 0), (1, 65535), (4096, 4095), (300001, 7), (3 * MIB + 17, 65000))


def transfers(c: Context) -> None:
    """Write, read and send move exactly the bytes, at odd offsets, in GPU and host memory."""
    with c.client() as client:
        loop = Loop(client, client)
        for near, far in (("device", "device"), ("host", "device"), ("device", "host")):
            client.sure("alloc", 0, near, 8 * MIB)
            client.sure("alloc", 1, far, 8 * MIB)
            for seed, (length, skip) in enumerate(RANGES, 1):
                for operation in ("write", "read", "send"):
                    moved(c, client, loop, operation, (near, far), (length, skip, seed))
            client.sure("free", 0)
            client.sure("free", 1)
        loop.close()


def moved(
    c: Context,
    client: Client,
    loop: Loop,
    operation: str,
    kinds_of: Tuple[str, str],
    what: Tuple[int, int, int],
) -> None:
    """Moves bytes from one buffer to the other, and compares both, and the bytes around them."""
    length, skip, seed = what
    text = "{} from {} to {}, {} bytes at {}".format(operation, *kinds_of, length, skip)
    around = min(64, skip)
    client.sure("fill", 0, skip, length, seed)
    client.sure("fill", 1, skip - around, length + around + 64, 0)
    client.sure("reg", 0, 0, skip, length)
    client.sure("reg", 1, 1, skip, length)
    # A read is made by the target's side, so the local region is the target.
    local, remote = (1, 0) if operation == "read" else (0, 1)
    said = loop.do(operation, local, 0, length, remote)
    if said != "ok":
        raise Broken(f"{text}: {said}")
    there = client.ask("compare", 1, skip, length, seed)
    here = client.ask("compare", 0, skip, length, seed)
    before = client.ask("compare", 1, skip - around, around, 0) if around else "ok"
    behind = client.ask("compare", 1, skip + length, 64, 0)
    c.equal(text, ["ok"] * 4, [there, here, before, behind])
    client.sure("dereg", 0)
    client.sure("dereg", 1)


def atomics(c: Context) -> None:
    """Two atomic additions to GPU memory return the old values, and add up."""
    with c.client() as client:
        client.sure("atomics")
        loop = Loop(client, client)
        for buffer in (0, 1):
            client.sure("alloc", buffer, "device", BLOCK)
            client.sure("fill", buffer, 0, 64, 0)
            client.sure("reg", buffer, buffer, 0, BLOCK)
        for before in (0, 7):
            c.equal("an addition", "ok", loop.do("atomic", 0, 0, 8, 1, 7))
            c.equal("the old value", [str(before)], client.sure("word", 0, 0))
            c.equal("the new value", [str(before + 7)], client.sure("word", 1, 0))


def dma_buf(c: Context) -> None:
    """A dma-buf is registered beside the module, and moves the same bytes."""
    with c.client() as client:
        for buffer in (0, 1):
            client.sure("alloc", buffer, "device", BLOCK)
        said = client.ask("regbuf", 0, 0, BLOCK)
        if said in ("EOPNOTSUPP", "EPROTONOSUPPORT"):
            raise NotHere(f"the RDMA device takes no dma-buf ({said})")
        if c.answers("a dma-buf", ("ok",), said):
            loop = Loop(client, client)
            client.sure("fill", 0, 0, BLOCK, 5)
            client.sure("fill", 1, 0, BLOCK, 0)
            client.sure("reg", 1, 1, 0, BLOCK)
            c.equal("write from it to a pointer's memory", "ok", loop.do("write", 0, 0, BLOCK, 1))
            c.equal("its bytes", "ok", client.ask("compare", 1, 0, BLOCK, 5))
