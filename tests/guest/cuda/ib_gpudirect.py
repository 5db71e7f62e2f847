# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""A program as ib_gpudirect's README has it: buffers of the GPU, announced to the kernel by an
ioctl, registered with a flag of their own, and sent. `exchange`: by one process to another,
two buffers each. `without`: the module. `unaided`: the preload."""
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
    """Of one buffer, for the next registration: the errno, or 0. The request's number does not matter."""
    tokens = ctypes.create_string_buffer(16)
    call("cuPointerGetAttribute", tokens, ctypes.c_int(5), address)
    with open("/dev/infiniband/uverbs0", "r+b", buffering=0) as uverbs:
        try:
            fcntl.ioctl(uverbs, 11, struct.pack("=16sQii", tokens.raw, address, LENGTH, 0))
        except OSError as found:
            return found.errno
    return 0


def side(pipe, sends):
    """Registers its buffers, and sends what is in them, or receives."""
    context()
    hca = Hca()
    queue = Queue(hca)
    buffers, regions = [alloc(LENGTH) for _ in SEEDS], []
    for address, seed in zip(buffers, SEEDS):
        put(address, pattern(seed, LENGTH) if sends else bytes(LENGTH))
        announce(address)
        regions.append(hca.register(address, LENGTH, ALL | IBV_ACCESS_GPU_MEMORY))
    pipe.send((queue.number, buffers))
    number, others = pipe.recv()
    queue.connect(number)
    if sends:
        sys.exit(any([queue.send(*what, LENGTH) for what in zip(regions, buffers)]))
    for what in zip(regions, buffers):
        queue.receive(*what, LENGTH)
    equal("both have them at the same addresses", others, buffers)
    equal("received", [0, 0], [queue.wait() for _ in SEEDS])
    for address, seed in zip(buffers, SEEDS):
        check(f"the bytes of buffer {seed}", get(address, LENGTH) == pattern(seed, LENGTH))


def exchange():
    ours, theirs = multiprocessing.Pipe()
    sender = multiprocessing.Process(target=side, args=(theirs, True))
    sender.start()
    theirs.close()
    side(ours, False)
    sender.join()
    equal("sent", 0, sender.exitcode)


if sys.argv[1] == "exchange":
    exchange()
else:
    context()
    hca = Hca()
    address = alloc(LENGTH)
    if sys.argv[1] == "without":
        hca.not_without_a_client()
    else:
        equal("its ioctl is none of today's", errno.ENOTTY, announce(address))
        equal("its flag means something else", errno.EOPNOTSUPP,
              hca.error(address, LENGTH, ALL | IBV_ACCESS_GPU_MEMORY))
