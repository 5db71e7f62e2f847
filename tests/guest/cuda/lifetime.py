# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""CUDA memory that is registered, and what ends it. The word says which part."""
import errno
import os
import signal
import subprocess
import sys

from lab import *
from rdma import *


def made(size, p2p):
    """Memory of cuMemCreate, mapped: its address and its handle."""
    prop = (U32 * 8)(1, 0, 1, 0, 0, 0, int(p2p) << 8, 0)
    handle = result(U64, "cuMemCreate", size, prop, 0)
    address = result(U64, "cuMemAddressReserve", size, 0, 0, 0)
    call("cuMemMap", address, size, 0, handle, 0)
    call("cuMemSetAccess", address, size, (U32 * 3)(1, 0, 3), 1)
    return address, handle


def not_without_a_client(hca):
    equal("a device pointer", errno.EFAULT, hca.error(alloc(4096), 4096))


def what_may_be_registered(hca):
    equal("a device pointer", 0, hca.error(alloc(4096), 4096))
    equal("mapped memory", 0, hca.error(made(2 * MIB, True)[0], 2 * MIB))
    equal("mapped memory that nobody may pin", errno.EFAULT, hca.error(made(2 * MIB, False)[0], 2 * MIB))
    two, handle = made(4 * MIB, True)
    equal("a part of it, across pages", 0, hca.error(two + 65000, 3 * MIB))
    call("cuMemUnmap", two, 4 * MIB)
    equal("memory that was unmapped", errno.EFAULT, hca.error(two, 4096))
    first, second = alloc(3 * MIB), alloc(3 * MIB)
    equal("across two allocations", errno.EFAULT, hca.error(first + 3 * MIB, second - first))


def neighbours(hca):
    for size in (100, MIB + 1):
        neighbours_of(hca, size)


def neighbours_of(hca, size):
    """A free of one does not end the registration of another."""
    fired = counter("callbacks_fired")
    one, other = alloc(100), alloc(size)
    equal(f"both are in one page, with {size} bytes", one // 65536, other // 65536)
    mr, neighbour = hca.register(one, 100), hca.register(other, size)
    equal("pinned twice", 2, pins())
    free(one)
    equal("a neighbour lives: nothing is revoked", (fired, 2), (counter("callbacks_fired"), pins()))
    put(other, pattern(7, 100))
    taken = alloc(100)
    equal("the next buffer takes its place", one, taken)
    equal("which the old registration reaches", 0,
          hca.pair().write(neighbour, other, 100, mr.rkey, taken))
    same("as it does with CUDA", pattern(7, 100), get(taken, 100))
    free(taken)
    free(other)
    equal("with the last one both are revoked", (fired + 2, 0), (counter("callbacks_fired"), pins()))
    mr.close()
    neighbour.close()


def revoked_at(hca, text, end):
    """A write before, to what `end` takes away, and one after."""
    source = Source(hca, 8)
    target, take_away = end()
    to, pair = hca.register(target, 2 * MIB), hca.pair()
    equal(f"{text}: written before", 0, source.write(to, target, pair))
    before = counter("callbacks_fired")
    take_away()
    equal(f"{text}: revoked", (before + 1, 1), (counter("callbacks_fired"), pins()))
    heir = next_owner(2 * MIB)
    equal(f"{text}: its memory and its address are another's", target, heir)
    check(f"{text}: not written after", source.write(to, target, pair) != 0)
    untouched(f"{text}: who has it now keeps it", heir)
    to.close()
    free(heir)
    source.close()


def revocation(hca):
    def by_free():
        address = alloc(2 * MIB)
        return address, lambda: free(address)

    def by_context():
        end = context()
        address = alloc(2 * MIB)
        call("cuCtxPopCurrent_v2", None)
        return address, lambda: call("cuCtxDestroy_v2", end)

    def by_unmap():
        address, handle = made(2 * MIB, True)

        def unmap():
            call("cuMemUnmap", address, 2 * MIB)
            call("cuMemRelease", handle)
            call("cuMemAddressFree", address, 2 * MIB)
        return address, unmap

    revoked_at(hca, "cuMemFree", by_free)
    revoked_at(hca, "cuCtxDestroy", by_context)
    revoked_at(hca, "cuMemUnmap", by_unmap)


def persistence(hca):
    """Pinned memory stays where it is until the registration ends."""
    frames = counter("live_frames")
    source, target = Source(hca, 9), alloc(2 * MIB)
    to = hca.register(target, 2 * MIB)
    free(target)
    equal("freed, and still there", 1, counter("live_orphans"))
    heir = next_owner(2 * MIB)
    equal("its address is another's", target, heir)
    equal("written after", 0, source.write(to, target))
    untouched("to the old memory, not to the new", heir)
    to.close()
    equal("gone with the registration", 0, counter("live_orphans"))
    free(heir)
    source.close()
    equal("no memory is lost", frames, counter("live_frames"))


def holding(hca):
    """Registered and connected, until it is ended from outside."""
    address = alloc(2 * MIB)
    put(address, pattern(int(sys.argv[2]), 65536))
    mr = hca.register(address, 2 * MIB)
    print("holding", hex(address), flush=True)
    sys.stdin.readline()
    same("its memory is its own", pattern(int(sys.argv[2]), 65536), get(address, 65536))
    if sys.argv[3:] == ["leave"]:
        sys.stdout.flush()
        os._exit(0)
    mr.close()


def two_processes(_):
    """The same address in both, and memory of each. Two processes end with registrations of
    theirs; how many callbacks that makes is the second word."""
    def start(seed, *words):
        process = subprocess.Popen([sys.executable, __file__, "holding", str(seed), *words], text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return process, process.stdout.readline()

    fired = counter("callbacks_fired")
    (one, first), (two, second) = start(11), start(12)
    check("the same address", first == second and first.startswith("holding 0x"))
    equal("pins of both", 2, pins())
    one.kill()
    equal("killed", -signal.SIGKILL, one.wait())
    equal("the other is untouched", 1, pins())
    print(two.communicate("\n")[0], end="")
    equal("nothing is left", (0, 0), (pins(), counter("live_allocations")))
    three, _ = start(13, "leave")
    three.communicate("\n")
    equal("nothing is left by exit", (0, 0, 0), (pins(), counter("live_allocations"), counter("live_orphans")))
    equal("revoked", int(sys.argv[2]), counter("callbacks_fired") - fired)


parts = {part.__name__: part for part in (not_without_a_client, what_may_be_registered, neighbours, revocation,
                                          persistence, holding, two_processes)}
chosen = parts[sys.argv[1]]
if chosen is two_processes:
    chosen(None)
else:
    context()
    hca = Hca()
    chosen(hca)
    hca.close()
