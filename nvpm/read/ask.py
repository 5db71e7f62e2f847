# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Asks RDMA devices whether they support dma-buf, in the same way as NCCL and other programs: by
registering the file descriptor -1. The error EBADF shows that the device's driver has looked at the
descriptor, so it supports dma-buf. Such a device is also asked whether it can page on demand (ODP),
because newer drivers of mlx5 look at the descriptor first, and then refuse the dma-buf of a device
without ODP.

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
# The answer of a device that gives YES and cannot page on demand.
WITHOUT_ODP = f"{YES} without ODP"
NO_DESCRIPTOR, LENGTH, LOCAL_WRITE = -1, 4096, 1


def devices(limit: float = LIMIT) -> Dict[str, str]:
    """Returns the answer of each device that answered in time: the name of the error, or
    WITHOUT_ODP."""
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
    # The second answer of a device replaces its first.
    return {name: answer for name, _, answer in list(pairs)[:-1]}


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
        for name, answer in answers():
            os.write(writing, f"{name} {answer}\n".encode("utf-8", "surrogateescape"))
        status = 0
    finally:
        os._exit(status)


def answers() -> Iterator[Tuple[str, str]]:
    """Yields names of devices and their answers. All devices are asked about dma-buf first, so that
    a crash in the second question loses no answer to the first."""
    from ..selftest import Absent, Failure, verbs

    try:
        library = verbs.Library()
    except Absent:
        return
    register = library.reg_dmabuf_mr
    if not register:
        return  # the library is older than the verb
    contexts = {}
    with library.devices() as devices_there:
        for name, device in devices_there:
            try:
                context = library.open_device(device)
                domain = library.alloc_pd(context)
            except Failure:
                continue  # this user may not open the device, or the container lacks its file
            try:
                register(domain, 0, LENGTH, 0, NO_DESCRIPTOR, LOCAL_WRITE)
            except verbs.VerbsError as error:
                yield name, error.name
                if error.name == YES:
                    contexts[name] = context
    for name, context in contexts.items():
        if library.pages_on_demand(context) is False:
            yield name, WITHOUT_ODP
