# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What libgdsync has in GPU memory: buffers, and the queues and doorbells of a network card. The
words say which parts, one after another; after `=` stand the names of clients that must serve."""
import errno
import os
import struct

from lab import *
from rdma import *

PEERS = "/sys/kernel/mm/memory_peers/"
# Of what can and what cannot be revoked, in the words of the RDMA core's file.
REVOCABLE, FIXED = "revocable", "fixed"

# cuda.h
CU_STREAM_NON_BLOCKING = 1


class Umem:
    """A driver's use of GPU memory: what the lab's RDMA core has it for is in peer_consumer.c."""

    def __init__(self, way, address, length):
        self.file = os.open(CORE + "umem", os.O_RDWR)
        try:
            os.write(self.file, f"register {address} {length} {way}".encode())
        except OSError:
            os.close(self.file)
            raise

    def revoked(self):
        os.lseek(self.file, 0, os.SEEK_SET)
        return "revoked 1" in os.read(self.file, 4096).decode()

    def close(self):
        os.write(self.file, b"deregister")
        os.close(self.file)


def refusal(*what):
    """The errno that registering ends with; 0 if it does not."""
    try:
        Umem(*what).close()
    except OSError as found:
        return found.errno
    return 0


def served(*what):
    """The registrations that each client has served during this one."""
    def counts():
        for name in sorted(os.listdir(PEERS)):
            with open(f"{PEERS}{name}/num_alloc_mrs") as file:
                yield name, int(file.read())
    before = dict(counts())
    umem = Umem(*what)
    return umem, [name for name, count in counts() if count > before[name]]


def not_without_a_client():
    for way in (REVOCABLE, FIXED):
        equal(f"{way} memory is refused", errno.EFAULT, refusal(way, alloc(4096), 4096))


def objects(may_go, must_stay):
    """By whom what can be revoked is served, and by whom what cannot."""
    # As in libgdsync they are small and lie together, all in one page of the GPU.
    queue, completions, doorbell = alloc(32768), alloc(4096), alloc(8)
    equal("all of them lie in one page", {queue // 65536}, {at // 65536 for at in (queue, completions, doorbell)})
    owned = []
    for name, address, length in (("a send queue", queue, 32768), ("a completion queue", completions, 4096),
                                  ("a doorbell", doorbell, 8)):
        umem, clients = served(FIXED, address, length)
        equal(f"{name} is served by {must_stay}", [must_stay], clients)
        owned.append(umem)
    umem, clients = served(REVOCABLE, queue, 32768)
    equal(f"what can be revoked is served by {may_go}", [may_go], clients)
    umem.close()
    equal("pins of queues are persistent", (3, 0), (counter("live_persistent_pins"), counter("live_pins")))
    freed_under(owned, (queue, completions, doorbell))


def freed_under(owned, buffers):
    """The network card works on with what the program frees."""
    fired = counter("callbacks_fired")
    for buffer in buffers:
        free(buffer)
    equal("freed: nothing is revoked", fired, counter("callbacks_fired"))
    equal("freed: nor is any of them told so", [False] * 3, [umem.revoked() for umem in owned])
    equal("freed: the memory stays", 1, counter("live_orphans"))
    for umem in owned:
        umem.close()
    equal("it goes with the last of them", (0, 0), (counter("live_orphans"), counter("live_persistent_pins")))


def without_persistent_pins(client):
    """The driver has none to give, as with some GPUs."""
    address = alloc(2 * MIB)
    with open(NVIDIA + "fail", "w") as file:
        file.write("get_pages_persistent ENOTSUPP 1 0")
    umem, clients = served(REVOCABLE, address, 2 * MIB)
    equal(f"what can be revoked is pinned revocably, by {client}", [client], clients)
    equal("what cannot is refused, with the driver's reason", errno.EOPNOTSUPP, refusal(FIXED, address, 2 * MIB))
    equal("and nothing of it is left", (1, 0), (counter("live_pins"), counter("live_persistent_pins")))
    free(address)
    check("freed: what can be revoked is", umem.revoked())
    umem.close()
    with open(NVIDIA + "fail", "w") as file:
        file.write("clear")


def number(address):
    return struct.unpack("<I", get(address, 4))[0]


def stream():
    """The GPU waits for what a network card writes into its memory, and goes on by itself."""
    hca = Hca()
    pair = hca.pair()
    source, target, flags = alloc(3 * MIB), alloc(3 * MIB), alloc(4096)
    data = pattern(21, 3 * MIB)
    put(source, data)
    call("cuMemsetD8_v2", target, 0, 3 * MIB)
    call("cuMemsetD8_v2", flags, 0, 4096)
    put(flags + 8, struct.pack("<I", 1))
    from_, to, both = (hca.register(*what) for what in ((source, 3 * MIB), (target, 3 * MIB), (flags, 4096)))
    arrived, copied, ready = flags, flags + 4, flags + 8

    # One that the copies of number() do not wait for.
    waiting = ctypes.c_void_p(result(ctypes.c_void_p, "cuStreamCreate", CU_STREAM_NON_BLOCKING))
    place = alloc(3 * MIB)
    call("cuStreamWaitValue32_v2", waiting, arrived, 1, 0)
    call("cuMemcpyDtoDAsync_v2", place, target, 3 * MIB, waiting)
    call("cuStreamWriteValue32_v2", waiting, copied, 7, 0)
    waits = ("CUDA_ERROR_NOT_READY", 0)
    equal("the stream waits", waits, (error("cuStreamQuery", waiting), number(copied)))
    equal("the data are written", 0, pair.write(from_, source, 3 * MIB, to.rkey, target))
    equal("it waits for the flag", waits, (error("cuStreamQuery", waiting), number(copied)))
    equal("the flag is written", 0, pair.write(both, ready, 4, both.rkey, arrived))
    call("cuStreamSynchronize", waiting)
    same("the stream has copied what came before the flag", data, get(place, 3 * MIB))
    equal("the stream has written its own", 7, number(copied))
    call("cuStreamDestroy_v2", waiting)
    for thing in (from_, to, both, hca):
        thing.close()
    for address in (source, target, flags, place):
        free(address)


parts = {part.__name__: part for part in (not_without_a_client, objects, without_persistent_pins, stream)}
context()
for part in sys.argv[1:]:
    name, _, clients = part.partition("=")
    parts[name](*filter(None, clients.split(",")))
