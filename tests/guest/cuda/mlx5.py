# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs for scenarios on a ConnectX: calls that the software HCA does not have. NAME WORD...
runs one program."""

import errno
import sys

import pyverbs.enums as e
import pyverbs.providers.mlx5.mlx5_enums as m
from pyverbs.mr import MW, MWBindInfo
from pyverbs.providers.mlx5.mlx5dv import Mlx5Context, Mlx5DVContextAttr, Mlx5UMEM
from pyverbs.wr import SendWR

from verbs_on_cuda import (
    ALL,
    HCA,
    MIB,
    alloc,
    check,
    connected,
    context,
    counters,
    equal,
    error,
    free,
    get,
    pattern,
    put,
)

WRITE = e.IBV_WR_RDMA_WRITE
REFUSED = e.IBV_WC_REM_ACCESS_ERR


def rereg():
    """Gives a registration other memory, and other rights."""
    context()
    here, there = connected()
    source, first, second = alloc(MIB), alloc(MIB), alloc(MIB)
    mine, theirs = here.register(source, MIB), there.register(first, MIB)
    put(source, pattern(1, MIB))
    for memory in (first, second):
        put(memory, bytes(MIB))
    theirs.rereg(e.IBV_REREG_MR_CHANGE_TRANSLATION, addr=second, length=MIB)
    free(first)
    status = here.post(WRITE, mine, source, MIB, theirs.rkey, second)
    equal("after the change, a write succeeds", 0, status)
    check("and reaches the new memory", get(second, MIB) == pattern(1, MIB))
    theirs.rereg(e.IBV_REREG_MR_CHANGE_ACCESS, access=e.IBV_ACCESS_REMOTE_READ)
    status = here.post(WRITE, mine, source, MIB, theirs.rkey, second)
    equal("without the right to write, a write is refused", REFUSED, status)
    for region in (mine, theirs):
        region.close()
    free(source)
    free(second)
    equal("nothing stays pinned", [0, 0], counters("live_pins", "live_persistent_pins"))


def window(way):
    """Opens a memory window on a part of GPU memory. In the way `revocable` the memory is then
    freed."""
    context()
    here, there = connected()
    source, target = alloc(MIB), alloc(MIB)
    mine = here.register(source, MIB)
    theirs = there.register(target, MIB, ALL | e.IBV_ACCESS_MW_BIND)
    put(source, pattern(2, MIB))
    put(target, bytes(MIB))
    opened = MW(there.pd, e.IBV_MW_TYPE_2)
    bind = SendWR(opcode=e.IBV_WR_BIND_MW)
    bind.set_bind_wr(opened, MWBindInfo(theirs, target + 4096, 8192, e.IBV_ACCESS_REMOTE_WRITE))
    there.qp.post_send(bind)
    equal(f"{way}: the window opens", 0, there.wait())
    key = bind.rkey
    status = here.post(WRITE, mine, source, 8192, key, target + 4096)
    equal(f"{way}: a write into the window", 0, status)
    expected = bytes(4096) + pattern(2, MIB)[:8192] + bytes(4096)
    check(f"{way}: reaches the memory, and no byte beside", get(target, 16384) == expected)
    if way == "revocable":
        free(target)
        status = here.post(WRITE, mine, source, 8192, key, target + 4096)
        equal("a write into a window on memory that was freed is refused", REFUSED, status)
    else:
        status = here.post(WRITE, mine, source, 8192, key, target + 4097)
        equal("a write that ends a byte behind the window is refused", REFUSED, status)
    opened.close()
    for region in (mine, theirs):
        region.close()


def umem(expected):
    """Registers GPU memory for queues of DevX. Such memory cannot be revoked."""
    context()
    verbs = Mlx5Context(Mlx5DVContextAttr(flags=m.MLX5DV_CONTEXT_FLAGS_DEVX), name=HCA)
    target = alloc(MIB)
    found = error(lambda: Mlx5UMEM(verbs, MIB, addr=target, access=e.IBV_ACCESS_LOCAL_WRITE))
    equal(f"GPU memory as memory of DevX: {expected}", getattr(errno, expected, 0), found)
    free(target)
    equal("nothing stays pinned", [0, 0], counters("live_pins", "live_persistent_pins"))


globals()[sys.argv[1]](*sys.argv[2:])
