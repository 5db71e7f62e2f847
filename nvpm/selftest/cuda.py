# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Calls libcuda, the driver's own library, to find GPUs and to allocate their memory."""

import contextlib
import ctypes
import os
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p
from typing import Any, List, Optional

from . import Absent, Failure

LIBRARY = "libcuda.so.1"
INSTALL = (
    "Install the part of NVIDIA's driver that runs programs: libcuda1 (Debian), "
    "libnvidia-compute-NNN (Ubuntu), nvidia-driver-cuda-libs (RHEL), nvidia-compute-GNN (SLES). "
    "In a container: give it the GPUs."
)
BROKEN = (
    "See nvidia-smi, and the kernel's log: dmesg | grep NVRM. "
    "After an update of the driver: reboot."
)
CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_NO_DEVICE = 2, 100
CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6
CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD = 1

# The driver gives a buffer of this size its own blocks. Smaller buffers share a block, which the
# driver keeps while any of the buffers exists, so the selftest allocates whole blocks.
BLOCK = 2 << 20


class CudaError(Failure):
    def __init__(self, call: str, code: int, name: str) -> None:
        super().__init__(f"{call}: {name}")
        self.code = code


class Library:
    def __init__(self) -> None:
        # The GPUs are numbered in the same order as in nvidia-smi.
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        try:
            self.library = ctypes.CDLL(LIBRARY)
        except OSError as error:
            raise Absent(f"no {LIBRARY} ({error})", INSTALL) from error
        try:
            self.call("cuInit", c_uint(0))
        except CudaError as error:
            if error.code != CUDA_ERROR_NO_DEVICE:
                raise Absent(f"no GPU that CUDA can use: {error}", BROKEN) from error

    def call(self, name: str, *arguments: Any) -> None:
        code = getattr(self.library, name)(*arguments)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorName(c_int(code), byref(text))
            raise CudaError(name, code, text.value.decode() if text.value else f"error {code}")

    def gpus(self) -> List["Gpu"]:
        count = c_int()
        try:
            self.call("cuDeviceGetCount", byref(count))
        except CudaError:
            return []
        return [Gpu(self, index) for index in range(count.value)]


class Gpu:
    def __init__(self, cuda: Library, index: int) -> None:
        self.cuda, self.index, self.device = cuda, index, c_int()
        self.context: Optional[c_void_p] = None
        name = ctypes.create_string_buffer(32)
        cuda.call("cuDeviceGet", byref(self.device), c_int(index))
        cuda.call("cuDeviceGetPCIBusId", name, c_int(len(name)), self.device)
        # sysfs has the address in small letters.
        self.pci = name.value.decode().lower()

    def use(self) -> None:
        """Makes this GPU current, so that allocations take its memory. The context is kept for the
        next RDMA device, because making a context takes a while."""
        if self.context is None:
            context = c_void_p()
            self.cuda.call("cuDevicePrimaryCtxRetain", byref(context), self.device)
            self.context = context
        self.cuda.call("cuCtxSetCurrent", self.context)

    def release(self) -> None:
        if self.context is not None:
            self.context = None
            self.cuda.call("cuCtxSetCurrent", None)
            self.cuda.call("cuDevicePrimaryCtxRelease_v2", self.device)


class Memory:
    """GPU memory. It is freed by free(), or when the stack is closed."""

    def __init__(self, stack: contextlib.ExitStack, cuda: Library, size: int) -> None:
        self.cuda, self.size, self.freed = cuda, size, False
        address, self.whole = c_uint64(), max(-(-size // BLOCK), 2) * BLOCK
        try:
            cuda.call("cuMemAlloc_v2", byref(address), c_size_t(self.whole))
        except CudaError as error:
            if error.code != CUDA_ERROR_OUT_OF_MEMORY:
                raise
            raise Failure(
                f"{error}: the GPU has not {self.whole >> 20} MiB left; --size takes less"
            ) from error
        self.address = address.value
        stack.callback(self.free)
        # With this attribute, copies wait for earlier work, and are complete when they return.
        attribute = c_int(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
        self.cuda.call("cuPointerSetAttribute", byref(c_uint(1)), attribute, address)

    def exported(self) -> int:
        """Returns a file descriptor of the memory as a dma-buf. The caller must close the
        descriptor. All blocks are exported, because only whole pages can be exported."""
        descriptor = c_int(-1)
        start, length = c_uint64(self.address), c_size_t(self.whole)
        kind, flags = c_int(CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD), c_uint64(0)
        self.cuda.call(
            "cuMemGetHandleForAddressRange", byref(descriptor), start, length, kind, flags
        )
        return descriptor.value

    def put(self, data: bytes) -> None:
        source = ctypes.c_char_p(data)
        self.cuda.call("cuMemcpyHtoD_v2", c_uint64(self.address), source, c_size_t(self.size))

    def get(self) -> bytes:
        data = ctypes.create_string_buffer(self.size)
        self.cuda.call("cuMemcpyDtoH_v2", data, c_uint64(self.address), c_size_t(self.size))
        return data.raw

    def free(self) -> None:
        if not self.freed:
            self.freed = True
            self.cuda.call("cuMemFree_v2", c_uint64(self.address))
