# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""The trial of one GPU and one RDMA device: register, move, compare, free, deregister."""

import contextlib
import ctypes
import errno
import mmap
import random
import resource
import time

from ..machine import MODULE, PARAMETERS
from . import Failure, abi, cuda, verbs

# A transfer is made so often. The fastest counts, because the first one warms up.
TIMES = 4
# So much is read after the memory was freed.
PROBE = 4096
PAGE = 4096

# With these nobody has refused anything: nobody answered.
SILENCE = ("IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR", "IBV_WC_RESP_TIMEOUT_ERR")


def pattern(length, *seed):
    """Bytes that nobody writes by chance; the same for the same seed."""
    chance, part = random.Random(" ".join(map(str, seed))), 1 << 20
    return b"".join(
        chance.getrandbits(8 * part).to_bytes(part, "little") for _ in range(0, length, part)
    )[:length]


def poison(length):
    """The bytes in a buffer before something else arrives."""
    return b"\xdb" * length


def difference(expected, found):
    """What is wrong with the bytes that were found; empty if nothing is."""
    if expected == found:
        return ""
    pages = [
        at
        for at in range(0, len(expected), PAGE)
        if expected[at : at + PAGE] != found[at : at + PAGE]
    ]
    first = next(at for at in range(pages[0], len(expected)) if expected[at] != found[at])
    wrong = "wrong bytes in %d of %d pages of 4 KiB" % (len(pages), -(-len(expected) // PAGE))
    return "%s, the first at offset %d" % (
        "nothing arrived" if found == poison(len(found)) else wrong,
        first,
    )


class Trial:
    """What came of it, as far as it came: `to_gpu` and `from_gpu` are seconds."""

    def __init__(self, machine, gpu, port, options):
        self.machine, self.gpu, self.port = machine, gpu, port
        self.size, self.seed, self.limit = options.size, options.seed, options.timeout
        self.failure = self.to_gpu = self.from_gpu = self.freed = None

    def run(self, library):
        """Returns whether it passed."""
        try:
            # The stack gives everything back, however this ends.
            with contextlib.ExitStack() as stack:
                try:
                    self.prepare(stack, library)
                    self.to_gpu = self.move_to_gpu()
                    self.from_gpu = self.move_from_gpu()
                    self.freed = self.free()
                except Failure as failure:
                    self.failure = str(failure)
        except Failure as failure:
            # Of giving back. A failure before it is the reason.
            self.failure = self.failure or str(failure)
        return self.failure is None

    def prepare(self, stack, library):
        self.gpu.use()
        self.memory = cuda.Memory(stack, self.gpu.cuda, self.size)
        self.host = mmap.mmap(-1, self.size)
        try:
            self.device = verbs.Device(stack, library, self.port)
        except verbs.VerbsError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise Failure(
                    f"{error}: no right to open the device: /dev/infiniband/uverbs*; root has it"
                )
            raise
        self.message = min(self.size, self.device.attributes.max_msg_sz or self.size)
        self.host_region = self.register_host(stack)
        self.gpu_region = self.register_gpu(stack)
        self.queue = self.device.pair(stack)
        self.deadline = time.monotonic() + self.limit

    def register_host(self, stack):
        try:
            return self.device.register(
                stack, ctypes.addressof(ctypes.c_char.from_buffer(self.host)), self.size
            )
        except verbs.VerbsError as error:
            limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
            if error.errno == errno.ENOMEM and limit != resource.RLIM_INFINITY:
                raise Failure(
                    "%s of host memory: this user may lock %d KiB (ulimit -l): raise that limit, use --size with less, or be root"
                    % (error, limit >> 10)
                )
            raise Failure(f"{error} of host memory")

    def register_gpu(self, stack):
        try:
            region = self.device.register(stack, self.memory.address, self.size)
        except verbs.VerbsError as error:
            raise Failure(f"{error} of GPU memory")
        if not self.machine.loaded(MODULE):
            raise Failure("GPU memory was registered, but not by nv_peer_mem, which is not loaded")
        return region

    def transfer(self, what, opcode, local, remote, length, offset=0):
        """Returns the status that it ended with."""
        self.queue.post(opcode, local, remote, length, offset)
        status = self.device.completion(self.deadline)
        if status is None:
            raise Failure("%s: no completion within %d s" % (what, self.limit))
        return status

    def write(self, what, local, remote):
        """Writes it all a few times, in messages that the device takes. Returns the seconds of the fastest."""
        times = []
        for _ in range(TIMES):
            begun = time.monotonic()
            for offset in range(0, self.size, self.message):
                status = self.transfer(
                    what,
                    abi.IBV_WR_RDMA_WRITE,
                    local,
                    remote,
                    min(self.message, self.size - offset),
                    offset,
                )
                if status != "IBV_WC_SUCCESS":
                    raise Failure(f"{what}: the RDMA write ended with {status}")
            times.append(time.monotonic() - begun)
        return min(times)

    def move_to_gpu(self):
        data = pattern(self.size, self.seed, self.gpu.pci, self.port.device, "to")
        self.memory.put(poison(self.size))
        self.host[:] = data
        seconds = self.write("host to GPU", self.host_region, self.gpu_region)
        self.compare("host to GPU", data, self.memory.get())
        return seconds

    def move_from_gpu(self):
        data = pattern(self.size, self.seed, self.gpu.pci, self.port.device, "from")
        self.memory.put(data)
        self.host[:] = poison(self.size)
        seconds = self.write("GPU to host", self.gpu_region, self.host_region)
        self.compare("GPU to host", data, self.host[:])
        return seconds

    @staticmethod
    def compare(what, expected, found):
        wrong = difference(expected, found)
        if wrong:
            raise Failure(f"{what}: {wrong}")

    def free(self):
        """Frees the memory while it is registered. Only a read follows: if the device still reached memory that is no longer ours, a write would
        damage it."""
        what = "after cuMemFree"
        self.memory.free()
        status = self.transfer(
            what, abi.IBV_WR_RDMA_READ, self.host_region, self.gpu_region, min(PROBE, self.size)
        )
        if status in SILENCE:
            raise Failure(f"{what}: nobody answered, and nobody refused: {status}")
        if status != "IBV_WC_SUCCESS":
            return "revoked"
        if self.machine.text(PARAMETERS + "persistent_api_support") == "0":
            raise Failure(
                f"{what}: the device still reaches the memory, which persistent_api_support=0 rules out"
            )
        return "pinned"
