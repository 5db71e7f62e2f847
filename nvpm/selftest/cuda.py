# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""libcuda, the driver's own library: GPUs and their memory."""

import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

from . import Absent, Failure

LIBRARY = "libcuda.so.1"
INSTALL = "Install the part of NVIDIA's driver that runs programs: libcuda1 (Debian), libnvidia-compute-NNN (Ubuntu), nvidia-driver-cuda-libs (RHEL), nvidia-compute-GNN (SLES). In a container: give it the GPUs."
BROKEN = "See nvidia-smi, and the kernel's log: dmesg | grep NVRM. After an update of the driver: reboot."
CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NO_DEVICE = 2, 100
CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6

# A buffer of this size has blocks of the driver of its own. Smaller ones share a block with others of the process, which the driver keeps while
# one of them lives.
BLOCK = 2 << 20


class CudaError(Failure):
    def __init__(self, call, code, name):
        super().__init__(f"{call}: {name}")
        self.code = code


class Library:
    def __init__(self):
        # As nvidia-smi numbers them.
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Absent(f"no {LIBRARY} ({error})", INSTALL)
        try:
            self.call("cuInit", c_uint(0))
        except CudaError as error:
            if error.code != CUDA_ERROR_NO_DEVICE:
                raise Absent(f"no GPU that CUDA can use: {error}", BROKEN)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(c_int(code), byref(text))
            raise CudaError(name, code, (text.value or b"error %d" % code).decode())

    def gpus(self):
        count = c_int()
        try:
            self.call("cuDeviceGetCount", byref(count))
        except CudaError:
            return []
        return [Gpu(self, index) for index in range(count.value)]


class Gpu:
    def __init__(self, cuda, index):
        self.cuda, self.index, self.device, self.context = cuda, index, c_int(), None
        name = ctypes.create_string_buffer(32)
        cuda.call("cuDeviceGet", byref(self.device), c_int(index))
        cuda.call("cuDeviceGetPCIBusId", name, c_int(len(name)), self.device)
        # As sysfs has it.
        self.pci = name.value.decode().lower()

    def use(self):
        """Allocations are of this GPU from now on. Making its context takes a while: it is kept for the next RDMA device."""
        if self.context is None:
            context = c_void_p()
            self.cuda.call("cuDevicePrimaryCtxRetain", byref(context), self.device)
            self.context = context
        self.cuda.call("cuCtxSetCurrent", self.context)

    def release(self):
        if self.context is not None:
            self.context = None
            self.cuda.call("cuCtxSetCurrent", None)
            self.cuda.call("cuDevicePrimaryCtxRelease_v2", self.device)


class Memory:
    """GPU memory. The stack frees it, if nobody has before."""

    def __init__(self, stack, cuda, size):
        self.cuda, self.size = cuda, size
        address, whole = c_uint64(), max(-(-size // BLOCK), 2) * BLOCK
        try:
            cuda.call("cuMemAlloc_v2", byref(address), c_size_t(whole))
        except CudaError as error:
            if error.code == CUDA_ERROR_OUT_OF_MEMORY:
                raise Failure(
                    "%s: the GPU has not %d MiB left; --size takes less" % (error, whole >> 20)
                )
            raise
        self.address = address.value
        stack.callback(self.free)
        # Copies wait for what came before, and are complete when they return.
        self.cuda.call(
            "cuPointerSetAttribute",
            byref(c_uint(1)),
            c_int(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS),
            address,
        )

    def put(self, data):
        self.cuda.call(
            "cuMemcpyHtoD_v2", c_uint64(self.address), ctypes.c_char_p(data), c_size_t(self.size)
        )

    def get(self):
        data = ctypes.create_string_buffer(self.size)
        self.cuda.call("cuMemcpyDtoH_v2", data, c_uint64(self.address), c_size_t(self.size))
        return data.raw

    def free(self):
        address, self.address = self.address, None
        if address is not None:
            self.cuda.call("cuMemFree_v2", c_uint64(address))
