# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tries one GPU with one RDMA device by one way. A trial registers GPU memory, moves data, compares
the data, frees the memory and ends the registration."""

import argparse
import contextlib
import ctypes
import errno
import mmap
import os
import random
import resource
import time
from typing import Any, Optional

from ..read import ways
from ..read.machine import Machine
from . import Failure, abi, cuda, verbs
from .port import Port

# The number of transfers in each direction. Only the fastest is reported, because the first is
# slower.
TIMES = 4
# The number of bytes that the device reads after the memory was freed.
PROBE = 4096
PAGE = 4096

# The two directions. In both, the RDMA device reads one memory and writes the other itself.
TO_GPU, FROM_GPU = "host to GPU", "GPU to host"

# A completion with one of these statuses is no refusal, because no device has answered.
SILENCE = ("IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR", "IBV_WC_RESP_TIMEOUT_ERR")

NO_RIGHT = "no right to open the device: /dev/infiniband/uverbs*; root has it"
NOT_BY_US = "GPU memory was registered, but not by nv_peer_mem, which is not loaded"
WITHOUT_ODP = ": the device cannot page on demand (ODP), which its driver needs for a dma-buf"
STILL_REACHED = "the device still reaches the memory, which persistent_api_support=0 rules out"


def pattern(length: int, *seed: object) -> bytes:
    """Returns LENGTH random bytes, which are the same for the same SEED."""
    chance, part = random.Random(" ".join(map(str, seed))), 1 << 20
    parts = (chance.getrandbits(8 * part).to_bytes(part, "little") for _ in range(0, length, part))
    return b"".join(parts)[:length]


def poison(length: int) -> bytes:
    """Returns the bytes that a buffer contains before data arrives."""
    return b"\xdb" * length


def difference(expected: bytes, found: bytes) -> str:
    """Returns a text about the difference of the bytes; an empty string for equal bytes."""
    if expected == found:
        return ""
    starts = range(0, len(expected), PAGE)
    pages = [at for at in starts if expected[at : at + PAGE] != found[at : at + PAGE]]
    first = next(at for at in range(pages[0], len(expected)) if expected[at] != found[at])
    if found == poison(len(found)):
        what = "nothing arrived"
    else:
        what = f"wrong bytes in {len(pages)} of {len(starts)} pages of 4 KiB"
    return f"{what}, the first at offset {first}"


def meaning(what: str, port: Port) -> str:
    """Returns a text about the meaning of a failure in this direction, which is a hint to the part
    that fails."""
    state = port.now()
    if state != "ACTIVE":
        return f"; port {port.number} is {state} now: look at the cable and the switch"
    if what == TO_GPU:
        return "; the RDMA device cannot write into the GPU"
    return (
        "; the RDMA device cannot read from the GPU: some root complexes forward no reads between "
        "their root ports; see ACS, IOMMU and distance in nvpm status"
    )


class Trial:
    """A trial and its results. If a step fails, the results of later steps are missing. `to_gpu`
    and `from_gpu` are the seconds that a transfer took."""

    # Transfers at a time.
    DEPTH = 1

    def __init__(
        self,
        machine: Machine,
        gpu: cuda.Gpu,
        port: Port,
        by_dma_buf: bool,
        options: argparse.Namespace,
    ) -> None:
        self.machine, self.gpu, self.port, self.by_dma_buf = machine, gpu, port, by_dma_buf
        self.size: int = options.size
        self.seed: int = options.seed
        self.limit: int = options.timeout
        self.seconds: int = options.seconds
        self.failure: Optional[str] = None
        self.to_gpu: Optional[float] = None
        self.from_gpu: Optional[float] = None
        self.freed = ""

    def run(self, library: verbs.Library) -> bool:
        """Runs the trial, and returns whether it passed."""
        try:
            # The stack releases all resources in every case.
            with contextlib.ExitStack() as stack:
                try:
                    self.prepare(stack, library)
                    self.steps()
                except Failure as failure:
                    self.failure = str(failure)
        except Failure as failure:
            # Releasing resources has failed. An earlier failure is reported instead.
            self.failure = self.failure or str(failure)
        return self.failure is None

    def steps(self) -> None:
        self.to_gpu = self.move_to_gpu()
        self.from_gpu = self.move_from_gpu()
        self.freed = self.free()

    def prepare(self, stack: contextlib.ExitStack, library: verbs.Library) -> None:
        self.gpu.use()
        self.memory = cuda.Memory(stack, self.gpu.cuda, self.size)
        self.host = mmap.mmap(-1, self.size)
        try:
            self.device = verbs.Device(stack, library, self.port, self.DEPTH)
        except verbs.VerbsError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise Failure(f"{error}: {NO_RIGHT}") from error
            raise
        self.message = min(self.size, self.device.attributes.max_msg_sz or self.size)
        self.host_region = self.register_host(stack)
        self.gpu_region = self.register_gpu(stack)
        self.queue = self.device.pair(stack)
        self.deadline = time.monotonic() + self.limit

    def register_host(self, stack: contextlib.ExitStack) -> verbs.Region:
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.host))
        try:
            return self.device.register(stack, address, self.size)
        except verbs.VerbsError as error:
            limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
            if error.errno == errno.ENOMEM and limit != resource.RLIM_INFINITY:
                raise Failure(
                    f"{error} of host memory: this user may lock {limit >> 10} KiB (ulimit -l): "
                    "raise that limit, use --size with less, or be root"
                ) from error
            raise Failure(f"{error} of host memory") from error

    def register_gpu(self, stack: contextlib.ExitStack) -> verbs.Region:
        try:
            if self.by_dma_buf:
                return self.register_exported(stack)
            region = self.device.register(stack, self.memory.address, self.size)
        except verbs.VerbsError as error:
            raise Failure(f"{error} of GPU memory{self.why_refused(error)}") from error
        if not ways.pointer_way_of(self.machine, self.gpu.pci, self.port.device):
            raise Failure(NOT_BY_US)
        return region

    def why_refused(self, error: verbs.VerbsError) -> str:
        """Returns why the driver of mlx5 has refused a dma-buf, if the device lacks ODP; otherwise
        an empty string. Only a registration shows whether a driver needs ODP."""
        if not self.by_dma_buf or error.name != "EOPNOTSUPP":
            return ""
        paging = self.device.library.pages_on_demand(self.device.context)
        return WITHOUT_ODP if paging is False else ""

    def register_exported(self, stack: contextlib.ExitStack) -> verbs.Region:
        descriptor = self.memory.exported()
        try:
            return self.device.register_dma_buf(stack, descriptor, self.memory.address, self.size)
        finally:
            # The registration keeps the memory, so the descriptor is not necessary any more.
            os.close(descriptor)

    def transfer(
        self, what: str, opcode: int, local: Any, remote: Any, length: int, offset: int = 0
    ) -> str:
        """Makes one transfer, and returns the status of the completion. WHAT names the transfer for
        messages."""
        self.queue.post(opcode, local, remote, length, offset)
        status = self.device.completion(self.deadline)
        if status is None:
            raise Failure(f"{what}: no completion within {self.limit} s")
        return status

    def write(self, what: str, local: Any, remote: Any) -> float:
        """Writes the whole buffer TIMES times. Returns the seconds that the fastest write took."""
        times = []
        for _ in range(TIMES):
            begun = time.monotonic()
            self.write_once(what, local, remote)
            times.append(time.monotonic() - begun)
        return min(times)

    def write_once(self, what: str, local: Any, remote: Any) -> None:
        """Writes the whole buffer. The messages are not longer than the device allows."""
        for offset in range(0, self.size, self.message):
            length = min(self.message, self.size - offset)
            status = self.transfer(what, abi.IBV_WR_RDMA_WRITE, local, remote, length, offset)
            if status != "IBV_WC_SUCCESS":
                raise Failure(
                    f"{what}: the RDMA write ended with {status}{meaning(what, self.port)}"
                )

    def move_to_gpu(self) -> float:
        data = pattern(self.size, self.seed, self.gpu.pci, self.port.device, "to")
        self.memory.put(poison(self.size))
        self.host[:] = data
        measured = self.write(TO_GPU, self.host_region, self.gpu_region)
        self.compare(TO_GPU, data, self.memory.get())
        return measured

    def move_from_gpu(self) -> float:
        data = pattern(self.size, self.seed, self.gpu.pci, self.port.device, "from")
        self.memory.put(data)
        self.host[:] = poison(self.size)
        measured = self.write(FROM_GPU, self.gpu_region, self.host_region)
        self.compare(FROM_GPU, data, self.host[:])
        return measured

    def compare(self, what: str, expected: bytes, found: bytes) -> None:
        wrong = difference(expected, found)
        if wrong:
            raise Failure(f"{what}: {wrong}{meaning(what, self.port)}")

    def free(self) -> str:
        """Frees the memory while it is registered, and then lets the device read the memory.
        Returns "revoked" if the device was refused, and "pinned" if the device still reached the
        memory. The device does not write, because the memory may belong to another program by
        then."""
        what, length = "after cuMemFree", min(PROBE, self.size)
        self.memory.free()
        status = self.transfer(
            what, abi.IBV_WR_RDMA_READ, self.host_region, self.gpu_region, length
        )
        if status in SILENCE:
            raise Failure(f"{what}: nobody answered, and nobody refused: {status}")
        if status != "IBV_WC_SUCCESS":
            return "revoked"
        revocable = ways.revokes(self.machine)
        if revocable and not self.by_dma_buf:
            raise Failure(f"{what}: {STILL_REACHED}")
        return "pinned"
