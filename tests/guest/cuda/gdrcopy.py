# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CUDA memory that the CPU has mapped, as with gdrcopy, and that is registered as well. The
word is the module's setting."""
import mmap
import os
import struct
import sys

from lab import *

SIZE = 2 * MIB
SOME = 300001


class Map:
    """GPU memory in the address space of this process, byte for byte."""

    def __init__(self, address):
        self.file = os.open("/dev/cpumap", os.O_RDWR | os.O_CLOEXEC)
        os.write(self.file, struct.pack("=QQ", address, SIZE))
        self.bytes = mmap.mmap(self.file, SIZE, trackfd=False)

    def error(self):
        """What access ends with, by the kernel's hand: by ours it would be SIGBUS."""
        with open(os.memfd_create("copy"), "wb", buffering=0) as copy:
            try:
                copy.write(memoryview(self.bytes)[:8])
            except OSError as found:
                return found.errno
        return 0

    def close(self):
        self.bytes.close()
        os.close(self.file)


def pinned():
    return sum(counters("live_pins", "live_persistent_pins"))


def program(order, persistent):
    """Each sees what the other writes, and goes on when the other goes; then the memory goes,
    and its address is another's. A pin that is persistent keeps it."""
    def told(what, expected, found):
        equal(f"{' and '.join(order)}: {what}", expected, found)

    def rdma(opcode, at):
        return queue.post(opcode, far, other, SOME, made["registered"].rkey, address + at)

    make = {"mapped": lambda: Map(address), "registered": lambda: queue.register(address, SIZE)}
    address, other = alloc(SIZE), alloc(SIZE)
    far = queue.register(other, SIZE)
    made = {what: make[what]() for what in order}
    told("pinned twice, and the other buffer", 3, pinned())
    made["mapped"].bytes[77:77 + SOME] = pattern(2, SOME)
    told("read by RDMA", 0, rdma(e.IBV_WR_RDMA_READ, 77))
    told("it has read what the CPU wrote", True, get(other, SOME) == pattern(2, SOME))
    put(other, pattern(3, SOME))
    told("written by RDMA", 0, rdma(e.IBV_WR_RDMA_WRITE, 99))
    told("the CPU reads what it wrote", True, made["mapped"].bytes[99:99 + SOME] == pattern(3, SOME))
    made[order[0]].close()
    if order[0] == "mapped":
        told("unmapped, one pin is left", 2, pinned())
        told("unmapped, RDMA goes on", 0, rdma(e.IBV_WR_RDMA_READ, 99))
        told("unmapped, with the same bytes", True, get(other, SOME) == pattern(3, SOME))
    else:
        made["mapped"].bytes[:SOME] = pattern(5, SOME)
        told("deregistered, the CPU goes on", True, get(address, SOME) == pattern(5, SOME))
    made[order[0]] = make[order[0]]()
    fired = counters("callbacks_fired")[0]
    free(address)
    told("what one free revokes", 1 if persistent else 2, counters("callbacks_fired")[0] - fired)
    told("the memory is kept", [int(persistent)], counters("live_orphans"))
    heir = alloc(SIZE)
    put(heir, pattern(7, SOME))
    told("its address is another's", address, heir)
    told("not read by the CPU after", errno.EFAULT, made["mapped"].error())
    told("written by RDMA after", 0 if persistent else e.IBV_WC_REM_ACCESS_ERR, rdma(e.IBV_WR_RDMA_WRITE, 0))
    told("who has the address now keeps his bytes", True, get(heir, SOME) == pattern(7, SOME))
    told("and may register them", 0, error(queue.register, heir, SIZE))
    for thing in (*made.values(), far):
        thing.close()
    free(heir)
    free(other)
    told("nothing is left", [0] * 4, counters("live_pins", "live_persistent_pins", "live_allocations", "live_orphans"))


context()
for order in (("mapped", "registered"), ("registered", "mapped")):
    queue = Queue()
    peer = Queue().connect(queue.number)
    queue.connect(peer.number)
    program(order, sys.argv[1] == "persistent")
