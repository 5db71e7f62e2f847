# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CUDA memory that the CPU has mapped, as with gdrcopy, and that is registered as well. The words
say which parts, one after another."""
import errno
import fcntl
import mmap
import os
import struct

from lab import *
from rdma import *

# cpumap.h
CPUMAP_PIN = 0x40104D01

SIZE = 2 * MIB


class Map:
    """GPU memory in the address space of this process, byte for byte."""

    def __init__(self, address, size=SIZE):
        self.file = os.open("/dev/cpumap", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.ioctl(self.file, CPUMAP_PIN, struct.pack("=QQ", address, size))
        except OSError:
            os.close(self.file)
            raise
        self.bytes = mmap.mmap(self.file, size, trackfd=False)

    def put(self, data, at=0):
        self.bytes[at:at + len(data)] = data

    def get(self, size, at=0):
        return self.bytes[at:at + size]

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


def pin_error(address):
    try:
        Map(address).close()
    except OSError as found:
        return found.errno
    return 0


def both(hca, order):
    """Memory that is mapped and registered, in this order."""
    address = alloc(SIZE)
    made = {}
    for what in order:
        made[what] = Map(address) if what == "mapped" else hca.register(address, SIZE)
    return address, made["mapped"], made["registered"]


ORDERS = (("mapped", "registered"), ("registered", "mapped"))


def not_without_a_client(hca):
    """Each module serves without the other."""
    address = alloc(SIZE)
    map_ = Map(address)
    map_.put(pattern(1, 5000), 60000)
    same("the GPU sees what the CPU writes", pattern(1, 5000), get(address + 60000, 5000))
    equal("registering what is mapped", errno.EFAULT, hca.error(address, SIZE))
    map_.close()


def sharing(hca):
    length = 300001
    for order in ORDERS:
        text = " and ".join(order)
        address, map_, mr = both(hca, order)
        equal(f"{text}: pinned twice", 2, pins())
        other = alloc(SIZE)
        far, pair = hca.register(other, SIZE), hca.pair()
        map_.put(pattern(2, length), 77)
        equal(f"{text}: read by RDMA", 0, pair.read(far, other, length, mr.rkey, address + 77))
        same(f"{text}: it has read what the CPU wrote", pattern(2, length), get(other, length))
        put(other, pattern(3, length))
        equal(f"{text}: written by RDMA", 0, pair.write(far, other, length, mr.rkey, address + 99))
        same(f"{text}: the CPU reads what it wrote", pattern(3, length), map_.get(length, 99))
        one_ends(hca, text, order, address, map_, mr)
        far.close()
        free(address)
        free(other)


def one_ends(hca, text, order, address, map_, mr):
    """The first one goes, and the other goes on."""
    if order[0] == "mapped":
        map_.close()
        equal(f"{text}: unmapped, the CPU has nothing", errno.EFAULT, map_.error())
        put(address, pattern(4, 4096))
        other = alloc(SIZE)
        far = hca.register(other, SIZE)
        equal(f"{text}: unmapped, RDMA goes on", 0, hca.pair().read(far, other, 4096, mr.rkey, address))
        same(f"{text}: unmapped, with the same bytes", pattern(4, 4096), get(other, 4096))
        far.close()
        free(other)
        mr.close()
    else:
        mr.close()
        map_.put(pattern(5, 4096))
        same(f"{text}: deregistered, the CPU goes on", pattern(5, 4096), get(address, 4096))
        map_.close()
    equal(f"{text}: one pin is left, of the other buffer", 1, pins())


def revocation(hca):
    for order in ORDERS:
        text = " and ".join(order)
        address, map_, mr = both(hca, order)
        source = Source(hca, 6)
        equal(f"{text}: written before", 0, source.write(mr, address))
        same(f"{text}: and read", pattern(6, 4096), map_.get(4096))
        fired = counter("callbacks_fired")
        free(address)
        equal(f"{text}: one free revokes both", fired + 2, counter("callbacks_fired"))
        equal(f"{text}: a pin is left, of the other buffer", 1, counter("live_pins"))
        heir = next_owner(SIZE)
        equal(f"{text}: its memory and its address are another's", address, heir)
        equal(f"{text}: not read by the CPU after", errno.EFAULT, map_.error())
        equal(f"{text}: not written by RDMA after", e.IBV_WC_REM_ACCESS_ERR, source.write(mr, address))
        untouched(f"{text}: who has it now keeps it", heir)
        equal(f"{text}: who has it now may be mapped and registered", (0, 0), (pin_error(heir), hca.error(heir, SIZE)))
        for thing in (map_, mr, source):
            thing.close()
        free(heir)


def persistence(hca):
    """Registered for good, mapped revocably: the registration goes on, the mapping does not."""
    for order in ORDERS:
        text = " and ".join(order)
        address, map_, mr = both(hca, order)
        source = Source(hca, 7)
        fired = counter("callbacks_fired")
        free(address)
        equal(f"{text}: the mapping alone is revoked", fired + 1, counter("callbacks_fired"))
        equal(f"{text}: not read by the CPU after", errno.EFAULT, map_.error())
        heir = next_owner(SIZE)
        equal(f"{text}: written by RDMA after", 0, source.write(mr, address))
        untouched(f"{text}: not to who has the address now", heir)
        for thing in (map_, mr, source):
            thing.close()
        free(heir)
        equal(f"{text}: nothing is left", 0, counter("live_orphans"))


def foreign(_):
    """What is not memory of this process is not mapped: the CPU's, a hole, and another process' after fork."""
    equal("memory of the CPU", errno.EINVAL, pin_error(1 << 40))
    address = alloc(SIZE)
    child = os.fork()
    if not child:
        os._exit(pin_error(address))
    equal("memory of another process", errno.EINVAL, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def held(hca):
    """The CPU writes bytes to one buffer, RDMA takes them to another, and the host may look at both."""
    with open("/tmp/pattern", "rb") as file:
        data = file.read()
    address, map_, mr = both(hca, ORDERS[0])
    other = alloc(SIZE)
    far = hca.register(other, SIZE)
    map_.put(data)
    if hca.pair().read(far, other, len(data), mr.rkey, address):
        sys.exit("the read failed")
    print(f"written={bar_offset(address)}")
    print(f"read={bar_offset(other)}")
    hold()
    for thing in (map_, mr, far):
        thing.close()


parts = {part.__name__: part for part in (not_without_a_client, sharing, revocation, persistence, foreign, held)}
context()
hca = Hca()
for word in sys.argv[1:]:
    parts[word](hca)
hca.close()
