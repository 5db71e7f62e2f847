# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The steps in which memory, a process or the module ends at the wrong time."""

import time

import machine
import traces
import undo
from context import BLOCK, KIB, MIB, PERSISTENT, REVOCABLE, Context
from talk import Client, Loop

# A completion with one of these is no refusal, because nobody has answered.
SILENCE = ("RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR", "RESP_TIMEOUT_ERR")
MANY = 1000


def refused(status: str) -> bool:
    return status != "ok" and status not in SILENCE


def freed(c: Context) -> None:
    """Memory freed while it is registered: pinned until the end, or refused to the device."""
    for far_is_freed in (False, True):
        with c.client() as client:
            text = "freed at the {} end".format("far" if far_is_freed else "near")
            before = traces.statistic("revocations")
            loop = set_up(client, "device", "device")
            c.equal(text + ": a write before", "ok", loop.do("write", 0, 0, BLOCK, 1))
            client.sure("free", 1 if far_is_freed else 0)
            # The device reads what was freed. It must not write there: somebody else may own it.
            said = loop.do("read" if far_is_freed else "write", 0, 0, 4096, 1)
            judge_freed(c, text, said)
            revoked = traces.statistic("revocations") - before
            c.equal(text + ": revocations", 1 if c.mode == REVOCABLE else 0, revoked)
            c.equal(text + ": its end", "ok", client.ask("dereg", 1 if far_is_freed else 0))
            c.equal(text + ": the other's end", "ok", client.ask("dereg", int(not far_is_freed)))


def judge_freed(c: Context, text: str, said: str) -> None:
    if c.mode == PERSISTENT:
        c.equal(text + ": the device still reads it", "ok", said)
    else:
        c.check(text + f": the device is refused ({said})", refused(said))


def set_up(client: Client, near: str, far: str, length: int = BLOCK) -> Loop:
    """Makes two registered buffers and a loop between them."""
    loop = Loop(client, client)
    for buffer, kind in enumerate((near, far)):
        client.sure("alloc", buffer, kind, length)
        client.sure("fill", buffer, 0, length, buffer + 1)
        client.sure("reg", buffer, buffer, 0, length)
    return loop


def freed_meanwhile(c: Context) -> None:
    """Memory freed while a transfer runs: the transfers go on, or are refused; nothing hangs."""
    with c.client() as client:
        loop = set_up(client, "device", "host", 8 * MIB)
        loop.begin("write", 0, 8 * MIB, 1)
        time.sleep(0.5)
        client.sure("free", 0)
        time.sleep(0.5)
        said = loop.end()
        if c.mode == PERSISTENT:
            c.equal("the transfers go on", "ok", said[0])
        else:
            c.check(f"the transfers are refused ({said[0]})", refused(said[0]))
        c.check("transfers were made before", int(said[1]) > 0)
        for region in (0, 1):
            c.equal(f"the end of registration {region}", "ok", client.ask("dereg", region))


def killed(c: Context) -> None:
    """A process killed in mid-transfer, and one killed while it registers, leave nothing."""
    client = c.client()
    loop = set_up(client, "device", "device", 8 * MIB)
    loop.begin("write", 0, 8 * MIB, 1)
    time.sleep(0.5)
    client.kill()
    c.check("a process in mid-transfer is killed", client.process.returncode == -9)
    client = c.client()
    client.sure("alloc", 0, "device", BLOCK)
    client.process.stdin.write(  # type: ignore[union-attr]
        f"time 0 {BLOCK} 1000000 4 pointer\n".encode()
    )
    client.process.stdin.flush()  # type: ignore[union-attr]
    time.sleep(1)
    client.kill()
    c.check("a process that registers is killed", client.process.returncode == -9)


def forked(c: Context) -> None:
    """A child of fork() cannot register the parent's memory, and the parent does not notice."""
    with c.client() as client:
        loop = set_up(client, "device", "device")
        c.answers("a child registers it", ("EFAULT",), client.ask("child", 0, BLOCK))
        client.sure("fill", 1, 0, BLOCK, 0)
        c.equal("a write of the parent after that", "ok", loop.do("write", 0, 0, BLOCK, 1))
        c.equal("its bytes", "ok", client.ask("compare", 1, 0, BLOCK, 1))


def many(c: Context) -> None:
    """A thousand registrations at once, made and ended by eight threads."""
    with c.client() as client:
        client.sure("alloc", 0, "device", MANY * 64 * KIB)
        said = client.ask("storm", 0, 8, MANY, 64 * KIB)
        c.equal(f"{MANY} registrations by 8 threads", "ok", said)
        if said == "ok":
            c.equal("that the module counts", MANY, traces.statistic("reachable_regions"))
        c.equal("their ends", "ok", client.ask("calm"))


def in_use(c: Context) -> None:
    """A module in use is not unloaded, and goes on."""
    with c.client() as client:
        loop = set_up(client, "device", "device")
        done = machine.run(["rmmod", "nv_peer_mem"], undo.LIMIT)
        c.check("rmmod is refused", done.code != 0 and undo.loaded("nv_peer_mem"), done.output)
        c.equal("a write after that", "ok", loop.do("write", 0, 0, BLOCK, 1))
