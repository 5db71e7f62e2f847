# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Asks RDMA devices whether they support dma-buf, in the same way as NCCL and other programs: by
registering the file descriptor -1. The error EBADF shows that the device's driver has looked at the
descriptor, so it supports dma-buf.

libibverbs and the drivers that it loads are foreign code, which may crash or hang, so they run in a
child process.
"""

import os
import signal
import time
from typing import Dict, Iterator, Tuple

from . import programs
from .reader import can_be_read

# Seconds for the answers of all devices.
LIMIT = 5.0

YES = "EBADF"
NO_DESCRIPTOR, LENGTH, LOCAL_WRITE = -1, 4096, 1


def devices(limit: float = LIMIT) -> Dict[str, str]:
    """Returns the name of the error that each device gave, for the devices that answered in
    time."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        answer_and_end(writing)
    os.close(writing)
    try:
        said = read_until(reading, time.monotonic() + limit)
    finally:
        os.close(reading)
        programs.stop(child, "the process that asks RDMA devices for dma-buf")
    pairs = (line.partition(" ") for line in said.decode("utf-8", "surrogateescape").split("\n"))
    # An answer ends with a line break, so the last piece is empty or incomplete, and is left out.
    return {name: error for name, _, error in list(pairs)[:-1]}


def read_until(reading: int, deadline: float) -> bytes:
    """Returns the bytes that arrive until the pipe is closed or the deadline has come."""
    said = b""
    while can_be_read(reading, deadline):
        more = os.read(reading, 65536)
        if not more:
            break
        said += more
    return said


def answer_and_end(writing: int) -> None:
    """Writes the answers to the pipe WRITING and ends the process. Runs in the child, which must
    print nothing. An alarm ends the child if the parent was killed."""
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
    from ..selftest import Absent, Failure, verbs

    try:
        library = verbs.Library()
    except Absent:
        return
    register = library.reg_dmabuf_mr
    if not register:
        return  # the library is older than the verb
    with library.devices() as devices_there:
        for name, device in devices_there:
            try:
                domain = library.alloc_pd(library.open_device(device))
            except Failure:
                continue  # this user may not open the device, or the container lacks its file
            try:
                register(domain, 0, LENGTH, 0, NO_DESCRIPTOR, LOCAL_WRITE)
            except verbs.VerbsError as error:
                yield name, error.name
