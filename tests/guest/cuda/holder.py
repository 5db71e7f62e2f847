# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""holder.py WAY MIB [WORD...]: registers one buffer on each side of a connection, prints its number
as `process=N`, and waits until it is killed.

The ways are `host`, `paged` (host memory, on demand), `pointer` and `dmabuf` (GPU memory), and
`nothing`. The words: `plain` uses no CUDA, `closed` closes the dma-buf's descriptor, `thread`
registers in a thread that stays, `ended` in one that ends, `child` leaves the registrations to a
child, and `traffic` writes all the time."""

import ctypes
import mmap
import os
import signal
import sys
import threading
import time

import pyverbs.enums as e
from pyverbs.mr import DmaBufMR

from verbs_on_cuda import ALL, MIB, alloc, call, connected, context

way, size, words = sys.argv[1], int(sys.argv[2]) * MIB, sys.argv[3:]
# Host memory must stay as long as it is registered.
kept = []


def host():
    memory = mmap.mmap(-1, size)
    kept.append(memory)
    return ctypes.addressof(ctypes.c_char.from_buffer(memory))


def export(address):
    """Returns a descriptor of GPU memory as a dma-buf."""
    descriptor = ctypes.c_int()
    call("cuMemGetHandleForAddressRange", ctypes.byref(descriptor), address, size, 1, 0)
    return descriptor.value


def register(queue):
    """Returns the registration and its address."""
    if way == "host":
        address = host()
        return queue.register(address, size), address
    if way == "paged":
        address = host()
        return queue.register(address, size, ALL | e.IBV_ACCESS_ON_DEMAND), address
    if way == "pointer":
        address = alloc(size)
        return queue.register(address, size), address
    if way == "dmabuf":
        descriptor = export(alloc(size))
        region = DmaBufMR(queue.pd, size, ALL, descriptor, 0)
        if "closed" in words:
            os.close(descriptor)
        return region, 0
    assert way == "nothing"
    return None, 0


def work(queues, found, done):
    if "plain" not in words:
        # A thread has a context of its own.
        context()
    found += [register(queue) for queue in queues]
    done.set()
    if "thread" in words:
        signal.pause()


queues = connected()
found, done = [], threading.Event()
if "thread" in words or "ended" in words:
    thread = threading.Thread(target=work, args=[queues, found, done], daemon=True)
    thread.start()
    done.wait()
    if "ended" in words:
        thread.join()
else:
    work(queues, found, done)
if "child" in words and os.fork():
    # The child has the descriptor of the device, and so the registrations stay.
    os._exit(0)
print(f"process={os.getpid()}", flush=True)
while "traffic" in words:
    (here, there), ((mine, address), (theirs, remote)) = queues, found
    status = here.post(e.IBV_WR_RDMA_WRITE, mine, address, MIB, theirs.rkey, remote)
    if status:
        sys.exit(f"the write ended with {status}")
    time.sleep(0.02)
signal.pause()
