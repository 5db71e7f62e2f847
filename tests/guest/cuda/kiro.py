# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""What KIRO does: whoever connects is told where the server's memory is, and from then on reads
it into his GPU whenever he likes, without the server's doing. The word says of what kind the
server's memory is, host or gpu, or it is `without` the module."""
import multiprocessing
import sys

from lab import *

LENGTH = (1 << 20) + 8


def server(pipe, kind):
    hca = Hca()
    queue = Queue(hca)
    if kind == "gpu":
        context()
        address = alloc(LENGTH)
    else:
        own = ctypes.create_string_buffer(LENGTH)
        address = ctypes.addressof(own)
    region = hca.register(address, LENGTH)
    pipe.send((queue.number, address, region.rkey))
    queue.connect(pipe.recv())
    # Other contents, each time the client wants some.
    while seed := pipe.recv():
        if kind == "gpu":
            put(address, pattern(seed, LENGTH))
        else:
            own.raw = pattern(seed, LENGTH)
        pipe.send("there")


def client(pipe, kind):
    context()
    hca = Hca()
    queue, target = Queue(hca), alloc(LENGTH)
    region = hca.register(target, LENGTH)
    number, address, rkey = pipe.recv()
    pipe.send(queue.number)
    queue.connect(number)
    put(target, before := bytes(LENGTH))
    for seed in 1, 2:
        pipe.send(seed)
        pipe.recv()
        check("nothing comes before it is synced", get(target, LENGTH) == before)
        equal("synced", 0, queue.read(region, target, LENGTH, rkey, address))
        before = pattern(seed, LENGTH)
        check(f"the server's memory {seed} is in this GPU", get(target, LENGTH) == before)
    pipe.send(None)
    region.close()


kind = sys.argv[1]
if kind == "without":
    context()
    Hca().not_without_a_client()
else:
    ours, theirs = multiprocessing.Pipe()
    other = multiprocessing.Process(target=server, args=(theirs, kind))
    other.start()
    theirs.close()
    client(ours, kind)
    other.join()
    equal("the server ends well", 0, other.exitcode)
