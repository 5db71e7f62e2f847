# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The steps that register memory of each size and kind, and transfer nothing."""

from typing import Tuple

import gpus
import traces
from context import BLOCK, KIB, MIB, Context
from talk import Broken, NotHere

# The kinds of memory (gpus.TEXTS) that the driver pins for nobody.
NOT_PINNED = ("vmm-plain", "pool", "managed")


def room(c: Context) -> Tuple[int, int]:
    """Returns how many bytes of BAR1 the pair's GPU has, and how many of them are free."""
    assert c.pair
    total, used = traces.bar1().get(traces.short(c.pair.pci), [0, 0])
    return total * MIB, (total - used) * MIB


def sizes(c: Context) -> None:
    """Memory of 4 KiB to as much as BAR1 has room for is registered; more is refused."""
    total, free = room(c)
    largest = free - free // 8 if total else 16 * MIB
    wanted = [4 * KIB, 64 * KIB, MIB, 16 * MIB]
    while wanted[-1] * 4 <= largest:
        wanted.append(wanted[-1] * 4)
    if total and largest > wanted[-1]:
        wanted.append(largest // BLOCK * BLOCK)
    with c.client() as client:
        client.sure("cuda")
        for size in wanted:
            said = client.ask("alloc", 0, "device", size)
            if said == gpus.NO_ROOM:
                c.no(f"{size} bytes: the GPU has no such room")
                continue
            if said != "ok":
                raise Broken(f"cudaMalloc of {size} bytes: {said}")
            if c.answers(f"{size} bytes", ("ok",), client.ask("reg", 0, 0, 0, size)):
                c.equal(f"{size} bytes, its end", "ok", client.ask("dereg", 0))
            client.sure("free", 0)
        if not total:
            c.no("more than 16 MiB: nvidia-smi does not say how large BAR1 is")
        elif client.ask("alloc", 0, "device", total) != "ok":
            c.no("more than BAR1 has: the GPU has no such memory, or has it all in BAR1")
        else:
            # With static BAR1 all memory is in BAR1 already.
            said = client.ask("reg", 0, 0, 0, total)
            if c.answers("more than BAR1 has free", ("ENOMEM", "ok"), said):
                client.sure("dereg", 0)
            client.sure("free", 0)


def kinds(c: Context) -> None:
    """Each kind of memory is registered, or refused with the errno of docs/troubleshooting.md."""
    with c.client() as client:
        for kind, text in gpus.TEXTS.items():
            if not gpus.allocated(c, client, kind, BLOCK, [gpus.NOT_SUPPORTED]):
                continue
            expected = "EFAULT" if kind in NOT_PINNED else "ok"
            if c.answers(text, (expected,), client.ask("reg", 0, 0, 0, BLOCK)):
                c.equal(f"{text}, its end", "ok", client.ask("dereg", 0))
            client.sure("free", 0)
        client.sure("alloc", 0, "device", BLOCK)
        where = int(client.sure("where", 0)[0])
        client.sure("free", 0)
        c.answers("freed memory", ("EFAULT",), client.ask("regraw", 0, where, BLOCK))


def across(c: Context) -> None:
    """A range over two allocations is refused; each by itself is registered."""
    with c.client() as client:
        places = {}
        for buffer in range(16):
            client.sure("alloc", buffer, "device", BLOCK)
            places[int(client.sure("where", buffer)[0])] = buffer
        together = [start for start in places if start + BLOCK in places]
        if not together:
            raise NotHere("CUDA places no two allocations side by side")
        start = together[0]
        said = client.ask("regraw", 0, start + BLOCK - 1, 2)
        c.answers("two bytes, of two allocations", ("EFAULT",), said)
        said = client.ask("regraw", 0, start, 2 * BLOCK)
        c.answers("all of two allocations", ("EFAULT",), said)
        for at in (start, start + BLOCK):
            c.answers("an allocation by itself", ("ok",), client.ask("regraw", 0, at, BLOCK))
            client.sure("dereg", 0)
