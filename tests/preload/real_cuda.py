#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
"""Tests the preloaded library with NVIDIA's libcuda, on a machine with a GPU. Libibverbs and the
kernel's RDMA core are doubles, and the latter refuses each pointer (REAL_ERRNO). Prints the answer
for each kind of memory. The exit code is 1 if an answer is not as expected.

    real_cuda.py DIRECTORY [TIMES]

DIRECTORY has libnvpm_preload.so, kernel.so and, in new/, the libibverbs. conftest.py builds them.
One kind of memory is registered TIMES times (100000)."""

import ctypes
import errno
import os
import subprocess
import sys
import threading
import time
from ctypes import byref, c_int, c_size_t, c_uint64, c_void_p

EFAULT, LOCAL_WRITE = 14, 1
MIB = 1 << 20
DEVICE, PINNED, READ_WRITE = 1, 1, 3


class Mr(ctypes.Structure):
    _fields_ = [("context", c_void_p), ("pd", c_void_p), ("addr", c_uint64), ("length", c_size_t)]


class Location(ctypes.Structure):
    _fields_ = [("type", c_int), ("id", c_int)]


class Properties(ctypes.Structure):
    """CUmemAllocationProp"""

    _fields_ = [
        ("type", c_int),
        ("handles", c_int),
        ("location", Location),
        ("windows", c_void_p),
        ("compression", ctypes.c_ubyte),
        ("rdma", ctypes.c_ubyte),
        ("usage", ctypes.c_ushort),
        ("reserved", ctypes.c_ubyte * 4),
    ]


class Access(ctypes.Structure):
    """CUmemAccessDesc"""

    _fields_ = [("location", Location), ("flags", c_int)]


def main(directory, times):
    with open(os.path.join(directory, "events"), "w"):
        pass
    if "LD_PRELOAD" not in os.environ:
        preloaded = [os.path.join(directory, one) for one in ("libnvpm_preload.so", "kernel.so")]
        os.environ["LD_PRELOAD"] = ":".join(preloaded)
        os.environ["LD_LIBRARY_PATH"] = os.path.join(directory, "new")
        os.environ["EVENTS"] = os.path.join(directory, "events")
        os.environ["REAL_ERRNO"] = str(EFAULT)
        os.execv(sys.executable, [sys.executable, *sys.argv])
    return Trial(directory).all(times)


def bar1():
    """Returns how much of the GPU's BAR1 is in use, in nvidia-smi's words."""
    command = ["nvidia-smi", "-q", "-d", "MEMORY", "-i", "0"]
    said = subprocess.run(command, capture_output=True, text=True, env={}).stdout
    lines = said.partition("BAR1")[2].splitlines()
    return next((" ".join(line.split()) for line in lines if "Used" in line), "unknown")


class Trial:
    def __init__(self, directory):
        self.events = os.path.join(directory, "events")
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.verbs = ctypes.CDLL("libibverbs.so.1", use_errno=True)
        self.verbs.ibv_reg_mr.restype = ctypes.POINTER(Mr)
        self.verbs.ibv_reg_mr.argtypes = [c_void_p, c_void_p, c_size_t, c_int]
        self.wrong = 0
        self.call("cuInit", 0)
        self.device, self.context = c_int(), c_void_p()
        self.call("cuDeviceGet", byref(self.device), 0)
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), self.device)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        code = getattr(self.cuda, name)(*arguments)
        assert code == 0, f"{name}: {code}"

    def register(self, address, length):
        """Registers memory. Returns two values. The first value is the region, or the error number
        if the registration failed. The second value has the arguments of each call of
        ibv_reg_dmabuf_mr."""
        before = os.path.getsize(self.events)
        ctypes.set_errno(0)
        mr = self.verbs.ibv_reg_mr(None, address, length, LOCAL_WRITE)
        number = ctypes.get_errno()
        with open(self.events) as file:
            file.seek(before)
            asked = [line.split()[1:4] for line in file if line.startswith("reg_dmabuf_mr")]
        if not mr:
            return number, asked
        found = mr.contents
        assert (found.addr, found.length) == (address, length), "the region is the caller's"
        return found, asked

    def expect(self, text, address, length, wanted="registered"):
        found, asked = self.register(address, length)
        got = errno.errorcode.get(found, found) if isinstance(found, int) else "registered"
        right = got == wanted
        if right and wanted == "registered":
            offset = address % 4096
            right = asked == [[hex(offset) if offset else "0", str(length), hex(address)]]
        self.wrong += not right
        print("ok  " if right else "WRONG", f"{text}: {got} {asked}", flush=True)

    def memory(self, size):
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def mapped(self, rdma, parts):
        """Maps this number of allocations at consecutive addresses (VMM)."""
        properties = Properties(type=PINNED, location=Location(DEVICE, self.device.value))
        properties.rdma = rdma
        address, handle = c_uint64(), c_uint64()
        self.call("cuMemAddressReserve", byref(address), c_size_t(parts * 2 * MIB), 0, 0, 0)
        for part in range(parts):
            at, size = c_uint64(address.value + part * 2 * MIB), c_size_t(2 * MIB)
            self.call("cuMemCreate", byref(handle), size, byref(properties), c_uint64(0))
            self.call("cuMemMap", at, size, 0, handle, c_uint64(0))
        access = Access(properties.location, READ_WRITE)
        self.call("cuMemSetAccess", address, c_size_t(parts * 2 * MIB), byref(access), c_size_t(1))
        return address.value

    def all(self, times):
        for size in (1000, 65536, MIB, 64 * MIB, 1024 * MIB, 8192 * MIB):
            address = self.memory(size)
            self.expect(f"cuMemAlloc, {size} bytes", address, size)
            self.call("cuMemFree_v2", c_uint64(address))
        whole = self.memory(16 * MIB)
        self.expect("inside of an allocation", whole + 12345, 70000)
        self.expect("VMM, for RDMA", self.mapped(1, 1), 2 * MIB)
        self.expect("VMM, not for RDMA", self.mapped(0, 1), 2 * MIB)
        self.expect("VMM, two side by side", self.mapped(1, 2), 4 * MIB)
        pool = c_uint64()
        self.call("cuMemAllocAsync", byref(pool), c_size_t(MIB), None)
        self.call("cuCtxSynchronize")
        self.expect("memory of a pool", pool.value, MIB)
        managed = c_uint64()
        self.call("cuMemAllocManaged", byref(managed), c_size_t(MIB), 1)
        self.expect("managed memory", managed.value, MIB, "EFAULT")
        host = ctypes.create_string_buffer(8192)
        self.expect("memory of the host", ctypes.addressof(host), 8192, "EFAULT")
        self.expect("beyond an allocation", whole, 1 << 36, "EFAULT")
        freed = self.memory(64 * MIB)
        self.call("cuMemFree_v2", c_uint64(freed))
        self.expect("memory that was freed", freed, MIB, "EFAULT")
        words = ("a thread without a context", whole, MIB)
        thread = threading.Thread(target=self.expect, args=words)
        thread.start()
        thread.join()
        self.in_child(whole)
        self.eight()
        self.many(whole, times)
        self.cost(whole)
        print("all as expected" if not self.wrong else f"{self.wrong} WRONG")
        return bool(self.wrong)

    def in_child(self, address):
        """Registers memory in a child. CUDA does not work in a child. The child must therefore
        receive an error, and must be able to continue after it."""
        child = os.fork()
        if not child:
            found, _ = self.register(address, MIB)
            os._exit(0 if found == EFAULT else 1)
        status = os.waitpid(child, 0)[1]
        self.wrong += status != 0
        print("ok  " if not status else "WRONG", f"a child: status {status}", flush=True)

    def eight(self):
        """Prints how much of the GPU's BAR1 eight dma-bufs of the same 1 GiB take, and how long
        their exports take. A program registers the same memory with each of eight devices."""
        size = c_size_t(1024 * MIB)
        address, descriptor = c_uint64(self.memory(1024 * MIB)), c_int()
        print("BAR1 in use before:", bar1())
        for number in range(1, 9):
            begun = time.perf_counter()
            self.call(
                "cuMemGetHandleForAddressRange", byref(descriptor), address, size, 1, c_uint64(0)
            )
            print(f"export {number}: {(time.perf_counter() - begun) * 1e6:.0f} us, {bar1()}")

    def many(self, address, times):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(times):
            if not self.verbs.ibv_reg_mr(None, address, MIB, LOCAL_WRITE):
                self.wrong += 1
        left = len(os.listdir("/proc/self/fd")) - before
        self.wrong += left != 0
        print("ok  " if not left else "WRONG", f"{times} times: {left} descriptors are left")

    def cost(self, address):
        """Prints how many microseconds a registration takes that the library translates, and how
        many microseconds a registration takes if the program exports the memory itself. Both
        programs call from Python. The program that exports the memory itself makes three calls."""
        export, own = self.cuda.cuMemGetHandleForAddressRange, self.verbs.ibv_reg_dmabuf_mr
        own.restype = ctypes.POINTER(Mr)
        own.argtypes = [c_void_p, c_uint64, c_size_t, c_uint64, c_int, c_int]
        descriptor, start, size, flags = c_int(), c_uint64(address), c_size_t(MIB), c_uint64(0)

        def translated():
            self.verbs.ibv_reg_mr(None, address, MIB, LOCAL_WRITE)

        def by_itself():
            export(byref(descriptor), start, size, 1, flags)
            own(None, 0, MIB, address, descriptor, LOCAL_WRITE)
            os.close(descriptor.value)

        for text, register in ("translated", translated), ("by itself", by_itself):
            times = []
            for _ in range(20):
                begun = time.perf_counter()
                for _ in range(500):
                    register()
                times.append((time.perf_counter() - begun) / 500 * 1e6)
            print(f"cost {text}: {min(times):.2f} us at least, {sorted(times)[10]:.2f} us usually")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]) if sys.argv[2:] else 100000))
