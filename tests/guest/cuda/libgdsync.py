# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What libgdsync has in GPU memory: buffers, and the queues and doorbells of a network card.
The words are the clients that must serve: what can be revoked, what cannot, and what can
where the driver has no persistent pins. Without words, nobody serves."""
import os
import sys

from lab import *

CORE = "/sys/kernel/debug/peer_mem_lab/"
PEERS = "/sys/kernel/mm/memory_peers/"
# Of what can and what cannot be revoked, in the words of the RDMA core's file.
REVOCABLE, FIXED = "revocable", "fixed"


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


def served(text, client, *what):
    """Something that this client must serve, and no other."""
    def counts():
        return {name: int(open(f"{PEERS}{name}/num_alloc_mrs").read()) for name in os.listdir(PEERS)}
    before = counts()
    umem = Umem(*what)
    equal(f"{text} is served by {client}", [client], [name for name, count in counts().items() if count > before[name]])
    return umem


def objects(revocable, fixed):
    # As in libgdsync they are small and lie together, all in one page of the GPU.
    sizes = {"a send queue": 32768, "a completion queue": 4096, "a doorbell": 8}
    buffers = [alloc(size) for size in sizes.values()]
    equal("all of them lie in one page", 1, len({address // 65536 for address in buffers}))
    owned = [served(name, fixed, FIXED, address, size) for address, (name, size) in zip(buffers, sizes.items())]
    served("what can be revoked", revocable, REVOCABLE, buffers[0], 32768).close()
    equal("pins of queues are persistent", (3, 0), (counter("live_persistent_pins"), counter("live_pins")))
    # The network card works on with what the program frees.
    fired = counter("callbacks_fired")
    for address in buffers:
        free(address)
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
    umem = served("what can be revoked, without persistent pins,", client, REVOCABLE, address, 2 * MIB)
    equal("what cannot is refused, with the driver's reason", errno.EOPNOTSUPP, refusal(FIXED, address, 2 * MIB))
    equal("and nothing of it is left", (1, 0), (counter("live_pins"), counter("live_persistent_pins")))
    free(address)
    check("freed: what can be revoked is", umem.revoked())
    umem.close()
    with open(NVIDIA + "fail", "w") as file:
        file.write("clear")


context()
if len(sys.argv) == 1:
    for way in (REVOCABLE, FIXED):
        equal(f"{way} memory is refused", errno.EFAULT, refusal(way, alloc(4096), 4096))
else:
    objects(*sys.argv[1:3])
    without_persistent_pins(sys.argv[3])
