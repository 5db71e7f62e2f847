# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Asks RDMA devices whether they take a dma-buf, as NCCL and others do: they are to register a file
descriptor that is none. EBADF says that the driver has looked at it.

libibverbs and what it loads are other people's code, in states that nobody foresees: they run in a
process of their own, which may crash or hang.
"""

import os
import select
import signal
import time
from typing import Dict, Iterator, Tuple

# Seconds that all devices have together.
LIMIT = 5.0

YES = "EBADF"
NO_DESCRIPTOR, LENGTH, LOCAL_WRITE = -1, 4096, 1


def devices(limit: float = LIMIT) -> Dict[str, str]:
    """The name of the error of each device that has answered in time."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer_and_end(writing)
    os.close(writing)
    try:
        said = read_until(reading, time.monotonic() + limit)
    finally:
        os.close(reading)
        os.kill(child, signal.SIGKILL)
        leave(child)
    pairs = (line.partition(" ") for line in said.decode("utf-8", "surrogateescape").split("\n"))
    # What is cut off has no end of line behind it: the last piece is never an answer.
    return {name: error for name, _, error in list(pairs)[:-1]}


def leave(child: int) -> None:
    """Waits for a child that was killed to end; not for one that a driver keeps in the kernel."""
    for _ in range(50):
        if os.waitpid(child, os.WNOHANG)[0]:
            break
        time.sleep(0.01)


def read_until(reading: int, deadline: float) -> bytes:
    """What comes before the end or the deadline."""
    said = b""
    while select.select([reading], [], [], max(0.0, deadline - time.monotonic()))[0]:
        more = os.read(reading, 65536)
        if not more:
            break
        said += more
    return said


def answer_and_end(writing: int) -> None:
    """In the child: it prints nothing, and never returns. It ends also if its parent was killed."""
    status = 1
    try:
        signal.alarm(int(LIMIT) + 1)
        silence = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(silence, descriptor)
        for name, error in answers():
            os.write(writing, f"{name} {error}\n".encode("utf-8", "surrogateescape"))
        status = 0
    finally:
        os._exit(status)


def answers() -> Iterator[Tuple[str, str]]:
    from .selftest import Absent, Failure, verbs

    try:
        library = verbs.Library()
    except Absent:
        return
    register = library.reg_dmabuf_mr
    if not register:
        return  # a library from before the verb
    with library.devices() as devices_there:
        for name, device in devices_there:
            try:
                domain = library.alloc_pd(library.open_device(device))
            except Failure:
                continue  # closed to this user, or in a container without its file
            try:
                register(domain, 0, LENGTH, 0, NO_DESCRIPTOR, LOCAL_WRITE)
            except verbs.VerbsError as error:
                yield name, error.name
