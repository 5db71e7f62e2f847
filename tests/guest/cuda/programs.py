# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Programs that use GPU memory like well-known programs do. They use CUDA and pyverbs. NAME WORD...
runs one program."""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys

import pyverbs.enums as e

from verbs_on_cuda import (
    ALL,
    MIB,
    NVIDIA,
    Queue,
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
    process,
    put,
)

# ---- KIRO: a server sends its client the address of memory. The client can then read this memory
# into its GPU at any time, without the server's help. One server has host memory, and another
# server has GPU memory.


def kiro_server(pipe, kind, length):
    if kind == "gpu":
        context()
        address, write = alloc(length), put
    else:
        own = ctypes.create_string_buffer(length)
        address, write = ctypes.addressof(own), lambda _, data: ctypes.memmove(own, data, len(data))
    queue = Queue()
    region = queue.register(address, length)
    pipe.send((queue.number, region.rkey, address))
    queue.connect(pipe.recv())
    # The client sends a seed to request new contents.
    while seed := pipe.recv():
        write(address, pattern(seed, length))
        pipe.send("there")


def kiro():
    length = MIB + 8
    # The servers start before the parent makes a CUDA context, because a child cannot use its
    # parent's context.
    servers = [(kind, *process(kiro_server, kind, length)) for kind in ("host", "gpu")]
    context()
    for kind, pipe, server in servers:
        number, *there = pipe.recv()
        queue, target = Queue(), alloc(length)
        region = queue.register(target, length)
        pipe.send(queue.number)
        queue.connect(number)
        put(target, before := bytes(length))
        for seed in 1, 2:
            pipe.send(seed)
            pipe.recv()
            check(f"{kind}: nothing comes before it is synced", get(target, length) == before)
            equal(
                f"{kind}: synced", 0, queue.post(e.IBV_WR_RDMA_READ, region, target, length, *there)
            )
            before = pattern(seed, length)
            check(
                f"{kind}: the server's memory {seed} is in this GPU", get(target, length) == before
            )
        pipe.send(None)
        region.close()
        server.join()
        equal(f"{kind}: the server ends well", 0, server.exitcode)


# ---- ib_gpudirect: as in its README, a program announces buffers to the kernel by an ioctl,
# registers them with a special flag, and sends them to another process. The word `unaided` runs
# the program without the preloaded library.

# ib_gpudirect's patched verbs.h had this flag.
IBV_ACCESS_GPU_MEMORY = 1 << 5


def announce(address, length):
    """Announces a buffer to the kernel before its registration, with CUDA's tokens for the
    buffer."""
    with open("/dev/infiniband/uverbs0", "r+b", buffering=0) as uverbs:
        # The request may have any number, because the preloaded library answers every number.
        fcntl.ioctl(uverbs, 11, struct.pack("=16sQii", bytes(16), address, length, 0))
        return uverbs


def exchange(pipe, sends):
    """Registers buffers, and sends or receives their contents."""
    context()
    queue, length, seeds = Queue(), 1500001, (1, 2)
    buffers, regions = [alloc(length) for _ in seeds], []
    for address, seed in zip(buffers, seeds, strict=True):
        put(address, pattern(seed, length) if sends else bytes(length))
        announce(address, length)
        regions.append(queue.register(address, length, ALL | IBV_ACCESS_GPU_MEMORY))
    pipe.send((queue.number, buffers))
    number, others = pipe.recv()
    queue.connect(number)
    if sends:
        sys.exit(
            sum(
                queue.post(e.IBV_WR_SEND, *what, length)
                for what in zip(regions, buffers, strict=True)
            )
        )
    for what in zip(regions, buffers, strict=True):
        queue.receive(*what, length)
    equal("both have them at the same addresses", others, buffers)
    equal("received", [0, 0], [queue.wait() for _ in seeds])
    for address, seed in zip(buffers, seeds, strict=True):
        check(f"the bytes of buffer {seed}", get(address, length) == pattern(seed, length))


def ib_gpudirect(how):
    if how == "unaided":
        context()
        address = alloc(MIB)
        equal("its ioctl is none of today's", errno.ENOTTY, error(announce, address, MIB))
        equal(
            "its flag means something else",
            errno.EOPNOTSUPP,
            error(Queue().register, address, MIB, ALL | IBV_ACCESS_GPU_MEMORY),
        )
    else:
        pipe, sender = process(exchange, True)
        exchange(pipe, False)
        sender.join()
        equal("sent", 0, sender.exitcode)


# ---- libgdsync: buffers, and the queues and doorbells of a network card. The words on the command
# line name clients. The first client must claim revocable memory, the second one fixed memory, and
# the third one revocable memory if the driver has no persistent pins. Without words, no client must
# claim memory.

CORE = "/sys/kernel/debug/peer_mem_lab/"
PEERS = "/sys/kernel/mm/memory_peers/"
# With these words, the RDMA core's file distinguishes memory that can be revoked from memory that
# cannot be revoked.
REVOCABLE, FIXED = "revocable", "fixed"


class Umem:
    """Registers GPU memory like the driver of an RDMA device, through the core's file umem
    (peer_consumer.c)."""

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


def served(text, client, *what):
    """Registers memory. Checks that `client` claims the memory, and that no other client does."""

    def counts():
        return {
            name: int(open(f"{PEERS}{name}/num_alloc_mrs").read()) for name in os.listdir(PEERS)
        }

    before = counts()
    umem = Umem(*what)
    equal(
        f"{text} is served by {client}",
        [client],
        [name for name, count in counts().items() if count > before[name]],
    )
    return umem


def gdsync_objects(revocable, fixed):
    # As in libgdsync, the buffers are small, and all of them are in one page of the GPU.
    address = alloc(65536)
    sizes = {"a send queue": 32768, "a completion queue": 4096, "a doorbell": 8}
    owned = [served(name, fixed, FIXED, address + size, size) for name, size in sizes.items()]
    served("what can be revoked", revocable, REVOCABLE, address, 32768).close()
    equal("pins of queues are persistent", [3, 0], counters("live_persistent_pins", "live_pins"))
    # The program frees memory that the network card still uses.
    fired = counters("callbacks_fired")
    free(address)
    equal("freed: nothing is revoked", fired, counters("callbacks_fired"))
    equal("freed: nor is any of them told so", [False] * 3, [umem.revoked() for umem in owned])
    equal("freed: the memory stays", [1], counters("live_orphans"))
    for umem in owned:
        umem.close()
    equal("it goes with the last of them", [0, 0], counters("live_orphans", "live_persistent_pins"))


def gdsync_without_persistent_pins(client):
    """Checks memory that the driver cannot pin persistently, as on some GPUs."""
    address = alloc(2 * MIB)
    with open(NVIDIA + "fail", "w") as file:
        file.write("get_pages_persistent ENOTSUPP 1 0")
    umem = served(
        "what can be revoked, without persistent pins,", client, REVOCABLE, address, 2 * MIB
    )
    equal(
        "what cannot is refused, with the driver's reason",
        errno.EOPNOTSUPP,
        error(Umem, FIXED, address, 2 * MIB),
    )
    equal("and nothing of it is left", [1, 0], counters("live_pins", "live_persistent_pins"))
    free(address)
    check("freed: what can be revoked is", umem.revoked())
    umem.close()
    with open(NVIDIA + "fail", "w") as file:
        file.write("clear")


def libgdsync(*clients):
    context()
    if clients:
        gdsync_objects(*clients[:2])
        gdsync_without_persistent_pins(clients[2])
    else:
        for way in (REVOCABLE, FIXED):
            equal(f"{way} memory is refused", errno.EFAULT, error(Umem, way, alloc(4096), 4096))


# ---- gdrcopy: the CPU maps memory that is also registered. The word on the command line is the
# kind of pin.

MAPPED = 2 * MIB
SOME = 300001


class Map:
    """Maps GPU memory into the address space of this process."""

    def __init__(self, address):
        self.file = os.open("/dev/cpumap", os.O_RDWR | os.O_CLOEXEC)
        os.write(self.file, struct.pack("=QQ", address, MAPPED))
        self.bytes = mmap.mmap(self.file, MAPPED, trackfd=False)

    def error(self):
        """Returns the error if the kernel cannot access the memory. The kernel makes the access,
        because an access by this program itself would cause a signal."""
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


def mapped_and_registered(queue, peer, order, persistent):
    """Checks that bytes from the CPU reach the device, and bytes from the device reach the CPU.
    Checks that the mapping still works after the registration has ended, or the registration after
    the mapping has ended. Then frees the memory, so that another program gets the address. If the
    pin is persistent, the old memory must still exist."""

    def told(what, expected, found):
        equal(f"{' and '.join(order)}: {what}", expected, found)

    def rdma(opcode, at):
        return queue.post(opcode, far, other, SOME, made["registered"].rkey, address + at)

    make = {"mapped": lambda: Map(address), "registered": lambda: peer.register(address, MAPPED)}
    address, other = alloc(MAPPED), alloc(MAPPED)
    far = queue.register(other, MAPPED)
    made = {what: make[what]() for what in order}
    told("pinned twice, and the other buffer", 3, pinned())
    made["mapped"].bytes[77 : 77 + SOME] = pattern(2, SOME)
    told("read by RDMA", 0, rdma(e.IBV_WR_RDMA_READ, 77))
    told("it has read what the CPU wrote", True, get(other, SOME) == pattern(2, SOME))
    put(other, pattern(3, SOME))
    told("written by RDMA", 0, rdma(e.IBV_WR_RDMA_WRITE, 99))
    told(
        "the CPU reads what it wrote",
        True,
        made["mapped"].bytes[99 : 99 + SOME] == pattern(3, SOME),
    )
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
    heir = alloc(MAPPED)
    put(heir, pattern(7, SOME))
    told("its address is another's", address, heir)
    told("not read by the CPU after", errno.EFAULT, made["mapped"].error())
    told(
        "written by RDMA after",
        0 if persistent else e.IBV_WC_REM_ACCESS_ERR,
        rdma(e.IBV_WR_RDMA_WRITE, 0),
    )
    told("who has the address now keeps his bytes", True, get(heir, SOME) == pattern(7, SOME))
    told("and may register them", 0, error(peer.register, heir, MAPPED))
    for thing in (*made.values(), far):
        thing.close()
    free(heir)
    free(other)
    told(
        "nothing is left",
        [0] * 4,
        counters("live_pins", "live_persistent_pins", "live_allocations", "live_orphans"),
    )


def gdrcopy(setting):
    context()
    for order in (("mapped", "registered"), ("registered", "mapped")):
        queue, peer = connected()
        mapped_and_registered(queue, peer, order, setting == "persistent")


globals()[sys.argv[1]](*sys.argv[2:])
