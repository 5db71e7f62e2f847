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
    address = alloc(65536)
    sizes = {"a send queue": 32768, "a completion queue": 4096, "a doorbell": 8}
    owned = [served(name, fixed, FIXED, address + size, size) for name, size in sizes.items()]
    served("what can be revoked", revocable, REVOCABLE, address, 32768).close()
    equal("pins of queues are persistent", [3, 0], counters("live_persistent_pins", "live_pins"))
    # The network card works on with what the program frees.
    fired = counters("callbacks_fired")
    free(address)
    equal("freed: nothing is revoked", fired, counters("callbacks_fired"))
    equal("freed: nor is any of them told so", [False] * 3, [umem.revoked() for umem in owned])
    equal("freed: the memory stays", [1], counters("live_orphans"))
    for umem in owned:
        umem.close()
    equal("it goes with the last of them", [0, 0], counters("live_orphans", "live_persistent_pins"))


def without_persistent_pins(client):
    """The driver has none to give, as with some GPUs."""
    address = alloc(2 * MIB)
    with open(NVIDIA + "fail", "w") as file:
        file.write("get_pages_persistent ENOTSUPP 1 0")
    umem = served("what can be revoked, without persistent pins,", client, REVOCABLE, address, 2 * MIB)
    equal("what cannot is refused, with the driver's reason", errno.EOPNOTSUPP, error(Umem, FIXED, address, 2 * MIB))
    equal("and nothing of it is left", [1, 0], counters("live_pins", "live_persistent_pins"))
    free(address)
    check("freed: what can be revoked is", umem.revoked())
    umem.close()
    with open(NVIDIA + "fail", "w") as file:
        file.write("clear")


context()
if len(sys.argv) == 1:
    for way in (REVOCABLE, FIXED):
        equal(f"{way} memory is refused", errno.EFAULT, error(Umem, way, alloc(4096), 4096))
else:
    objects(*sys.argv[1:3])
    without_persistent_pins(sys.argv[3])
