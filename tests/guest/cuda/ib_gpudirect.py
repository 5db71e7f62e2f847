# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program as ib_gpudirect's README has it: buffers of the GPU, announced to the kernel by an
ioctl, registered with a flag of their own, and sent by one process to another, two buffers each.
`unaided`: without the preload."""
import fcntl
import multiprocessing
import struct
import sys

from lab import *

# The patched verbs.h had it.
IBV_ACCESS_GPU_MEMORY = 1 << 5
LENGTH = 1500001
SEEDS = 1, 2


def announce(address):
    """Of one buffer, for the next registration, with the tokens that CUDA had for it."""
    with open("/dev/infiniband/uverbs0", "r+b", buffering=0) as uverbs:
        # The request's number does not matter.
        fcntl.ioctl(uverbs, 11, struct.pack("=16sQii", bytes(16), address, LENGTH, 0))
        return uverbs


def side(pipe, sends):
    """Registers its buffers, and sends what is in them, or receives."""
    context()
    queue = Queue()
    buffers, regions = [alloc(LENGTH) for _ in SEEDS], []
    for address, seed in zip(buffers, SEEDS):
        put(address, pattern(seed, LENGTH) if sends else bytes(LENGTH))
        announce(address)
        regions.append(queue.register(address, LENGTH, ALL | IBV_ACCESS_GPU_MEMORY))
    pipe.send((queue.number, buffers))
    number, others = pipe.recv()
    queue.connect(number)
    if sends:
        sys.exit(any([queue.post(e.IBV_WR_SEND, *what, LENGTH) for what in zip(regions, buffers)]))
    for what in zip(regions, buffers):
        queue.receive(*what, LENGTH)
    equal("both have them at the same addresses", others, buffers)
    equal("received", [0, 0], [queue.wait() for _ in SEEDS])
    for address, seed in zip(buffers, SEEDS):
        check(f"the bytes of buffer {seed}", get(address, LENGTH) == pattern(seed, LENGTH))


if sys.argv[1] == "unaided":
    context()
    address = alloc(LENGTH)
    equal("its ioctl is none of today's", errno.ENOTTY, error(announce, address))
    equal("its flag means something else", errno.EOPNOTSUPP,
          error(Queue().register, address, LENGTH, ALL | IBV_ACCESS_GPU_MEMORY))
else:
    ours, theirs = multiprocessing.Pipe()
    sender = multiprocessing.Process(target=side, args=(theirs, True))
    sender.start()
    theirs.close()
    side(ours, False)
    sender.join()
    equal("sent", 0, sender.exitcode)
