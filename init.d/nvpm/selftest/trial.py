# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""One GPU and one RDMA device: register, move, compare, free, deregister."""
import contextlib
import ctypes
import errno
import mmap
import resource
import time

from ..machine import MODULE, PARAMETERS
from . import Failure, abi, cuda, verbs
from .pattern import difference, pattern, poison

# How often a transfer is made; the fastest counts, for the first one warms up.
TIMES = 4
# What is read after the memory was freed.
PROBE = 4096

# Nobody has refused anything: nobody answered.
SILENCE = ("IBV_WC_RETRY_EXC_ERR", "IBV_WC_RNR_RETRY_EXC_ERR", "IBV_WC_RESP_TIMEOUT_ERR")


class Trial:
    """What came of it, as far as it came: `to_gpu` and `from_gpu` are seconds."""

    def __init__(self, machine, gpu, port, options):
        self.machine, self.gpu, self.port = machine, gpu, port
        self.size, self.seed, self.limit = options.size, options.seed, options.timeout
        self.failure = self.to_gpu = self.from_gpu = self.freed = None

    def run(self, library):
        try:
            # Whatever was made is given back when this block ends, however it does.
            with contextlib.ExitStack() as stack:
                try:
                    self.prepare(stack, library)
                    self.move_to_gpu()
                    self.move_from_gpu()
                    self.free()
                except Failure as failure:
                    self.failure = str(failure)
        except Failure as failure:
            # Giving back. What came before is the reason, if something did.
            self.failure = self.failure or str(failure)
        return self.failure is None

    def prepare(self, stack, library):
        self.gpu.use()
        self.memory = cuda.Memory(stack, self.gpu.cuda, self.size)
        self.host = mmap.mmap(-1, self.size)
        try:
            self.device = verbs.Device(stack, library, self.port.device, self.port)
        except verbs.VerbsError as error:
            if error.errno in (errno.EACCES, errno.EPERM):
                raise Failure("%s: no right to open the device: /dev/infiniband/uverbs*; root has it" % error)
            raise
        self.message = min(self.size, self.device.attributes.max_msg_sz or self.size)
        self.host_region = self.register_host(stack)
        self.gpu_region = self.register_gpu(stack)
        self.queue = self.device.pair(stack)
        self.deadline = time.monotonic() + self.limit

    def register_host(self, stack):
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.host))
        try:
            return self.device.register(stack, address, self.size)
        except verbs.VerbsError as error:
            limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
            if error.errno == errno.ENOMEM and limit != resource.RLIM_INFINITY:
                raise Failure("%s of host memory: this user may lock %d KiB (ulimit -l): raise that limit, use --size with "
                              "less, or be root" % (error, limit >> 10))
            raise Failure("%s of host memory" % error)

    def register_gpu(self, stack):
        try:
            region = self.device.register(stack, self.memory.address, self.size)
        except verbs.VerbsError as error:
            raise Failure("%s of GPU memory" % error)
        if not self.machine.loaded(MODULE):
            raise Failure("GPU memory was registered, but not by nv_peer_mem, which is not loaded")
        return region

    def transfer(self, what, opcode, local, remote, length, offset=0):
        """The status that it ended with."""
        self.queue.post(opcode, local, remote, length, offset)
        status = self.device.completion(self.deadline)
        if status is None:
            raise Failure("%s: no completion within %d s" % (what, self.limit))
        return status

    def write(self, what, local, remote):
        """The same write a few times, in messages that the device takes: seconds of the fastest."""
        fastest = None
        for _ in range(TIMES):
            begun = time.monotonic()
            for offset in range(0, self.size, self.message):
                length = min(self.message, self.size - offset)
                status = self.transfer(what, abi.IBV_WR_RDMA_WRITE, local, remote, length, offset)
                if status != "IBV_WC_SUCCESS":
                    raise Failure("%s: the RDMA write ended with %s" % (what, status))
            seconds = time.monotonic() - begun
            fastest = seconds if fastest is None else min(fastest, seconds)
        return fastest

    def bytes_for(self, direction):
        return pattern(self.size, self.seed, self.gpu.pci, self.port.device, direction)

    def move_to_gpu(self):
        what, data = "host to GPU", self.bytes_for("to")
        self.memory.put(poison(self.size))
        self.host[:] = data
        seconds = self.write(what, self.host_region, self.gpu_region)
        self.compare(what, data, self.memory.get())
        self.to_gpu = seconds

    def move_from_gpu(self):
        what, data = "GPU to host", self.bytes_for("from")
        self.memory.put(data)
        self.host[:] = poison(self.size)
        seconds = self.write(what, self.gpu_region, self.host_region)
        self.compare(what, data, self.host[:])
        self.from_gpu = seconds

    @staticmethod
    def compare(what, expected, found):
        wrong = difference(expected, found)
        if wrong:
            raise Failure("%s: %s" % (what, wrong))

    def free(self):
        """Frees the memory while it is registered. Only a read follows: were the device able
        to reach what is not ours any more, a write would harm somebody."""
        what = "after cuMemFree"
        self.memory.free()
        status = self.transfer(what, abi.IBV_WR_RDMA_READ, self.host_region, self.gpu_region, min(PROBE, self.size))
        self.host[:] = poison(self.size)
        if status in SILENCE:
            raise Failure("%s: nobody answered, and nobody refused: %s" % (what, status))
        if status != "IBV_WC_SUCCESS":
            self.freed = "revoked"
        elif self.machine.text(PARAMETERS + "/persistent_api_support") != "0":
            self.freed = "pinned"
        else:
            raise Failure("%s: the device still reaches the memory, which persistent_api_support=0 rules out" % what)
