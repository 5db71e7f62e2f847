# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CUDA memory that the CPU has mapped, as with gdrcopy, and that is registered as well. The
word is the module's setting, or `without` it."""
import fcntl
import mmap
import os
import struct
import sys

from lab import *

# cpumap.h
CPUMAP_PIN = 0x40104D01

SIZE = 2 * MIB
SOME = 300001


class Map:
    """GPU memory in the address space of this process, byte for byte."""

    def __init__(self, address):
        self.file = os.open("/dev/cpumap", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(self.file, CPUMAP_PIN, struct.pack("=QQ", address, SIZE))
        self.bytes = mmap.mmap(self.file, SIZE, trackfd=False)

    def error(self):
        """What access ends with, by the kernel's hand: by ours it would be SIGBUS."""
        reader, writer = os.pipe()
        try:
            os.write(writer, memoryview(self.bytes)[:8])
        except OSError as found:
            return found.errno
        finally:
            os.close(reader)
            os.close(writer)
        return 0

    def close(self):
        os.close(self.file)


def pins():
    return counter("live_pins") + counter("live_persistent_pins")


def both(order):
    address = alloc(SIZE)
    made = {what: Map(address) if what == "mapped" else hca.register(address, SIZE) for what in order}
    return address, made["mapped"], made["registered"]


def shared(order):
    """Each sees what the other writes. The first one goes, and the other goes on."""
    text = " and ".join(order)
    address, map_, region = both(order)
    other, pair = alloc(SIZE), hca.pair()
    far = hca.register(other, SIZE)
    equal(f"{text}: pinned twice, and the other buffer", 3, pins())
    map_.bytes[77:77 + SOME] = pattern(2, SOME)
    equal(f"{text}: read by RDMA", 0, pair.read(far, other, SOME, region.rkey, address + 77))
    check(f"{text}: it has read what the CPU wrote", get(other, SOME) == pattern(2, SOME))
    put(other, pattern(3, SOME))
    equal(f"{text}: written by RDMA", 0, pair.write(far, other, SOME, region.rkey, address + 99))
    check(f"{text}: the CPU reads what it wrote", map_.bytes[99:99 + SOME] == pattern(3, SOME))
    if order[0] == "mapped":
        map_.close()
        equal(f"{text}: unmapped, the CPU has nothing", errno.EFAULT, map_.error())
        equal(f"{text}: unmapped, RDMA goes on", 0, pair.read(far, other, SOME, region.rkey, address + 98))
        check(f"{text}: unmapped, with the same bytes", get(other, SOME)[1:] == pattern(3, SOME)[:-1])
        region.close()
    else:
        region.close()
        map_.bytes[:SOME] = pattern(5, SOME)
        check(f"{text}: deregistered, the CPU goes on", get(address, SOME) == pattern(5, SOME))
        map_.close()
    equal(f"{text}: the other buffer's pin is left", 1, pins())
    far.close()
    free(other)
    free(address)


def freed(order, persistent):
    """The memory goes, and its address is another's. A pin that is persistent keeps it."""
    text = " and ".join(order)
    address, map_, region = both(order)
    other, pair = alloc(SIZE), hca.pair()
    put(other, pattern(6, SOME))
    far = hca.register(other, SIZE)
    fired = counter("callbacks_fired")
    free(address)
    equal(f"{text}: what one free revokes", 1 if persistent else 2, counter("callbacks_fired") - fired)
    equal(f"{text}: the memory is kept", int(persistent), counter("live_orphans"))
    heir = alloc(SIZE)
    put(heir, pattern(7, SOME))
    equal(f"{text}: its address is another's", address, heir)
    equal(f"{text}: not read by the CPU after", errno.EFAULT, map_.error())
    equal(f"{text}: written by RDMA after", 0 if persistent else e.IBV_WC_REM_ACCESS_ERR,
          pair.write(far, other, SOME, region.rkey, address))
    check(f"{text}: who has the address now keeps his bytes", get(heir, SOME) == pattern(7, SOME))
    equal(f"{text}: and may register them", 0, hca.error(heir, SIZE))
    for thing in (map_, region, far):
        thing.close()
    free(heir)
    free(other)
    equal(f"{text}: nothing is left", (0, 0), (pins(), counter("live_allocations") + counter("live_orphans")))


context()
hca = Hca()
if sys.argv[1] == "without":
    mapped = alloc(SIZE)
    map_ = Map(mapped)
    equal("registering what is mapped", errno.EFAULT, hca.error(mapped, SIZE))
else:
    for order in (("mapped", "registered"), ("registered", "mapped")):
        shared(order)
        freed(order, sys.argv[1] == "persistent")
