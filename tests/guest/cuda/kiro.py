# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What KIRO does: whoever connects is told where the server's memory is, and from then on reads
it into his GPU whenever he likes, without the server's doing. The server's memory is the host's,
then a GPU's."""
import multiprocessing

from lab import *

LENGTH = MIB + 8


def server(pipe, kind):
    if kind == "gpu":
        context()
        address, write = alloc(LENGTH), put
    else:
        own = ctypes.create_string_buffer(LENGTH)
        address, write = ctypes.addressof(own), lambda _, data: ctypes.memmove(own, data, len(data))
    queue = Queue()
    region = queue.register(address, LENGTH)
    pipe.send((queue.number, region.rkey, address))
    queue.connect(pipe.recv())
    # Other contents, each time the client wants some.
    while seed := pipe.recv():
        write(address, pattern(seed, LENGTH))
        pipe.send("there")


servers = []
for kind in "host", "gpu":
    pipe, theirs = multiprocessing.Pipe()
    servers.append((kind, pipe, multiprocessing.Process(target=server, args=(theirs, kind))))
    servers[-1][-1].start()
# A child would have nothing of its parent's CUDA.
context()
for kind, pipe, other in servers:
    number, *there = pipe.recv()
    queue, target = Queue(), alloc(LENGTH)
    region = queue.register(target, LENGTH)
    pipe.send(queue.number)
    queue.connect(number)
    put(target, before := bytes(LENGTH))
    for seed in 1, 2:
        pipe.send(seed)
        pipe.recv()
        check(f"{kind}: nothing comes before it is synced", get(target, LENGTH) == before)
        equal(f"{kind}: synced", 0, queue.post(e.IBV_WR_RDMA_READ, region, target, LENGTH, *there))
        before = pattern(seed, LENGTH)
        check(f"{kind}: the server's memory {seed} is in this GPU", get(target, LENGTH) == before)
    pipe.send(None)
    region.close()
    other.join()
    equal(f"{kind}: the server ends well", 0, other.exitcode)
